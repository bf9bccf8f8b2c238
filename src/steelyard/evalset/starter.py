"""What `evalset init` writes: a manifest that runs as it stands, and the project it refers to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from steelyard.config.errors import BadInput, Where
from steelyard.config.layers import PROJECT_FILE, project_file
from steelyard.config.starter import write_project
from steelyard.evalset.project import read_project

DEFAULT_FILE: Final = "steelyard.evalset.yaml"
DEPLOYMENTS: Final = ("mock-model", "mock-model-weak")

_MANIFEST: Final = """\
# An eval set: each pack by each agent, so many times. `steelyard evalset submit @FILE@`.
# Add --dry-run to see what would run and what it would cost; `evalset expand` shows the cells.
schema: evalset/v1
name: first-sweep

packs:                        # catalog/<slug> ships with us; your own: slug, slug@N, ./folder
  - catalog/code-review

agents:                       # deployments of steelyard.yaml, by exact name or UUID
  - deployment: mock-model
    label: strong             # what it is called in keys and reports
  - deployment: mock-model-weak
    label: weak

models: []                    # ids that take the place of the deployments' own; none: their own
repeats: 2                    # of each combination; more repeats, narrower intervals
seeds:
  strategy: auto              # or explicit, with one number for each repeat: seeds: [1, 2]

limits:
  max_concurrent_runs: 4      # cells at once
  budget_usd: 1               # for the whole set; what it stops, `evalset resume` goes on with

case_fanout: true             # cases of a cell at once; false: one after the other
# scanners:                   # read what the agents did, once the set completes
#   - reward-hacking
#   - tool-misuse
# include: ["*/strong/*"]     # patterns of matrix keys
# gates: {min_score: 0.5}     # exit status 3 where a set misses them
# execution: {limit: 10}      # of each pack only the first ten cases
"""

DEPLOYMENT_LINES: Final = """\
deployments:                  # the agents that eval sets name
  # A stand-in that needs no provider: it knows the pack's answers, and gives so many of them.
  - name: mock-model
    harness: {id: chat}       # one model call a task
    model: {id: mock, base_url: "mock-model://code-review/0.9", params: {max_tokens: 400}}
  - name: mock-model-weak
    harness: {id: chat}
    model: {id: mock, base_url: "mock-model://code-review/0.6", params: {max_tokens: 400}}
  # - name: my-agent          # yours: its variables are read only where a set uses it
  #   harness: {id: chat}
  #   model: {id: my-model, base_url: "${MODEL_URL}", api_key: "${MODEL_KEY}"}

prices:                       # made up, so that the stand-in costs something
  mock: {input_per_mtok: 1, output_per_mtok: 4}
"""

_PROJECT: Final = f"""\
# This project's packs and agents. `steelyard config docs` explains every setting.

packs: ["packs/*"]            # your own: folders, or patterns; `steelyard pack init packs/first`

{DEPLOYMENT_LINES}
# judge:                      # the model that judges, for packs and scanners that ask one
#   model: {{id: my-judge, base_url: "${{MODEL_URL}}", api_key: "${{MODEL_KEY}}"}}
"""


@dataclass(frozen=True, slots=True)
class WrittenSet:
    """What `evalset init` put on the disk, and what is left to do."""

    files: tuple[Path, ...]
    ignored: Path | None
    """The `.gitignore` that got a line for the results."""
    add_to: Path | None = None
    """The project's file, where it was there and lacks the deployments."""


def write_starter(file: Path) -> WrittenSet:
    """Write a manifest, and `steelyard.yaml` where there is none.

    Args:
        file: the manifest's; its folder may be new.

    Raises:
        BadInput: it is there already, or cannot be written.
    """
    if file.suffix.lower() not in (".yaml", ".yml"):
        raise BadInput(
            "a manifest that is written here is YAML",
            where=Where(str(file)),
            remedy=f"name it {file.with_suffix('.yaml').name}; JSON manifests work as well",
        )
    folder = file.parent
    there = project_file(folder.absolute()) if folder.is_dir() else None
    lacks = there is not None and not _has_deployments(folder)
    text = _MANIFEST.replace("@FILE@", file.name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with file.open("x", encoding="utf-8") as out:
            out.write(text)
    except FileExistsError as error:
        raise BadInput(
            "is there already, and nothing was written",
            where=Where(str(file)),
            remedy="name another file: steelyard evalset init FILE",
        ) from error
    except OSError as error:
        raise BadInput(f"it cannot be written: {error.strerror}", where=Where(str(file))) from error
    if there is not None:
        return WrittenSet((file,), None, there if lacks else None)
    project = write_project(folder, {PROJECT_FILE: _PROJECT}, overwrite=False)
    return WrittenSet((file, *project.files), project.ignored)


def _has_deployments(folder: Path) -> bool:
    project = read_project(cwd=folder.absolute())
    return all(project.agents.find(name) for name in DEPLOYMENTS)
