"""The project that `steelyard init` writes: its files as texts, and how they reach the disk."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from steelyard.config.errors import BadInput, Problem, Where
from steelyard.config.layers import PROJECT_FILE

IGNORE_FILE: Final = ".gitignore"
EXAMPLE_FILE: Final = "example.yaml"
EXAMPLE_PACK: Final = "packs/inbox"
_IGNORED: Final = "results/"

_PROJECT: Final = """\
# Settings of this project: what `steelyard run` and `steelyard launch` use where nothing else
# says otherwise. `steelyard config docs` explains every setting, `config check` finds mistakes.

runtime:
  results_dir: results            # a folder for each run: records, scores, summary

execution:
  task_concurrency: 8             # attempts at once
  # attempts: {k: 3}              # tries of each task; more tries, narrower intervals

# model:
#   base_url: ${MODEL_URL}        # an environment variable; keys, too, are never written here
#   api_key: ${MODEL_KEY}
#   params: {temperature: 0}

# prices:                         # what a million tokens cost, where the model is not a known one
#   my-model: {input_per_mtok: 0.5, output_per_mtok: 2}

# budget: {usd: 5}                # what a launch may spend

# packs: ["packs/*"]              # what eval sets name; `steelyard evalset init` says what else
"""

_EXAMPLE: Final = """\
# Two models on one benchmark, side by side: `steelyard launch example.yaml`.
# README.md says how to run it, at first without any provider.
name: first-steps

defaults:                         # what both requests share
  benchmark: {id: ./packs/inbox}
  harness: {id: chat}             # one model call a task
  model: {base_url: "${MODEL_URL}"}
  execution:
    attempts: {k: 3}              # each task is tried three times

requests:
  - name: strong
    model: {id: strong}
  - name: quick
    model: {id: quick}
"""

_PACK: Final = """\
# A benchmark without code. `steelyard pack check ./packs/inbox` says what is wrong with it.
schema: pack/v1
slug: inbox
version: 1                        # count it up when a change makes old scores incomparable
name: Inbox
description: Which team should read a customer's message?

# A template; the fields of a case are its variables.
prompt: |
  A customer of a bicycle shop writes:

  "{{ message }}"

  Which team should read it? Answer with one word of: workshop, sales, accounts, delivery.

cases: cases.yaml
category: difficulty
reference: "{{ team }}"           # what `oracle` answers: the ceiling

scoring:
  validators:
    - type: choice
      options: [workshop, sales, accounts, delivery]
      expected: "{{ team }}"
  threshold: 1.0                  # `correct` from this score on
"""

_CASES: Final = """\
# `team` is the right answer; the prompt does not read it, so no model sees it.
- id: flat-tyre
  difficulty: easy
  team: workshop
  message: >-
    My rear tyre has lost its air twice this week. Can you have a look?
- id: which-size
  difficulty: easy
  team: sales
  message: >-
    I am 1.85 m tall. Which frame of the Heron do you recommend?
- id: paid-twice
  difficulty: easy
  team: accounts
  message: >-
    Your invoice of March has been taken from my account two times.
- id: box-missing
  difficulty: easy
  team: delivery
  message: >-
    The tracking page says handed over, but nothing has come.
- id: bent-fork
  difficulty: hard
  team: delivery
  message: >-
    The new bicycle came in a torn box and its fork is bent. The driver has noted it.
- id: trade-in
  difficulty: hard
  team: sales
  message: >-
    The workshop says that mending mine is not worth it. What would you give me for it
    towards a new one?
- id: warranty-bill
  difficulty: hard
  team: accounts
  message: >-
    The brakes work again, thank you. But they were under warranty, so why is there a
    bill?
- id: squeak-again
  difficulty: hard
  team: workshop
  message: >-
    I paid for new brakes on Monday, they were delivered and fitted, and they squeak
    already.
"""

_README: Final = """\
# A first project

| file | what it is |
| --- | --- |
| `packs/inbox/` | a benchmark of eight cases, written as files |
| `example.yaml` | what is run: that benchmark, with two models, three tries of each case |
| `steelyard.yaml` | settings that hold for every run of this project |

Run it, first with a stand-in that answers for both models, right in 9 of 10 and 6 of 10 cases:

```sh
@COMMAND@
```

The table says what came out and how sure that is. Then:

```sh
steelyard show results/quick --failed         # which attempts failed, and why
export MODEL_URL=https://api.example.com/v1   # your endpoint; its model ids go into example.yaml
steelyard launch example.yaml --dry-run       # what would run, and what is missing
steelyard launch example.yaml
```

To go on: change a case, add one, run `steelyard pack check ./packs/inbox`.
`steelyard list benchmarks` shows what else there is to run.
"""

EXAMPLE_COMMAND: Final = (
    f"steelyard mock-model --benchmark ./{EXAMPLE_PACK} --accuracy strong=0.9 "
    f"--accuracy quick=0.6 -- steelyard launch {EXAMPLE_FILE}"
)
"""Runs the example in its folder, without a provider."""

PROJECT_FILES: Final[Mapping[str, str]] = MappingProxyType({PROJECT_FILE: _PROJECT})
EXAMPLE_FILES: Final[Mapping[str, str]] = MappingProxyType(
    {
        PROJECT_FILE: _PROJECT,
        EXAMPLE_FILE: _EXAMPLE,
        f"{EXAMPLE_PACK}/pack.yaml": _PACK,
        f"{EXAMPLE_PACK}/cases.yaml": _CASES,
        "README.md": _README.replace("@COMMAND@", EXAMPLE_COMMAND),
    }
)


class WouldOverwrite(BadInput):
    """Files that are there already (exit status 2); nothing has been written."""


@dataclass(frozen=True, slots=True)
class Written:
    """What was put on the disk."""

    files: tuple[Path, ...]
    ignored: Path | None
    """The `.gitignore` that got a line for the results; None where it had one."""


def write_project(folder: Path, files: Mapping[str, str], *, overwrite: bool) -> Written:
    """Write a project into a folder, which may be new.

    Args:
        folder: where.
        files: texts by their paths below it.
        overwrite: write over files that are there.

    Raises:
        WouldOverwrite: some are there, and may not be written over.
        BadInput: something cannot be written.
    """
    paths = {folder / name: text for name, text in files.items()}
    there = [path for path in paths if os.path.lexists(path)]
    if there and not overwrite:
        remedy = "choose another folder, or write over what is there with --force"
        raise WouldOverwrite.of(
            [
                Problem("is there already", Where(str(path)), remedy if path == there[-1] else None)
                for path in there
            ]
        )
    at = folder
    try:
        for at, text in paths.items():
            at.parent.mkdir(parents=True, exist_ok=True)
            if at.is_symlink():
                at.unlink()  # the file that it leads to is somebody else's
            at.write_text(text, "utf-8")
        at = folder / IGNORE_FILE
        return Written(tuple(paths), at if _ignore_results(at) else None)
    except OSError as error:
        raise BadInput(
            f"it cannot be written: {error.strerror}", where=Where(str(error.filename or at))
        ) from error


def _ignore_results(path: Path) -> bool:
    """Have Git pass over the results; a file keeps its lines. True where one was added."""
    text = path.read_text("utf-8", "surrogateescape") if path.is_file() else ""
    if {_IGNORED, f"/{_IGNORED}", "results", "/results"} & {
        line.strip() for line in text.split("\n")
    }:
        return False
    with path.open("a", encoding="utf-8") as file:
        file.write(("\n" if text and not text.endswith("\n") else "") + f"/{_IGNORED}\n")
    return True
