"""Plan a new set: manifest, references and settings become what is to run; nothing is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from steelyard.components.clock import Clock
from steelyard.components.known import REGISTRY
from steelyard.config.errors import BadInput, Problem
from steelyard.config.resolve import InvalidSettings, Resolution, resolve_orchestration
from steelyard.config.schema.request import Output
from steelyard.config.source import plain
from steelyard.engine.every_problem import with_plan_problems
from steelyard.engine.launch import Prepared, prepare
from steelyard.evalset.agent_refs import Deployment
from steelyard.evalset.expansion import Expansion, expand
from steelyard.evalset.find_set import find_set
from steelyard.evalset.layout import cell_folder, set_namespace
from steelyard.evalset.manifest import ReadManifest, read_manifest
from steelyard.evalset.orchestrate import set_orchestration
from steelyard.evalset.project import Project, read_project
from steelyard.evalset.references import References, resolve_references
from steelyard.evalset.scan_asked import checked_scanners
from steelyard.evalset.set_document import PinnedAgent, SetCell, SetDocument
from steelyard.evalset.set_reader import CellStatus, OpenedSet
from steelyard.evalset.surroundings import Surroundings
from steelyard.results.layout import RunIdInUse


@dataclass(frozen=True, slots=True)
class SetPlan:
    """What a submission will do; nothing has been made yet."""

    kind: str
    read: ReadManifest
    document: SetDocument
    """What `evalset.json` is to say; for a new set without id."""
    references: References
    project: Project
    cells: tuple[SetCell, ...]
    """What runs in this submission, in order."""
    prepared: Prepared
    budget_usd: float | None
    """What the whole set may spend; None for no limit."""
    namespace: Path
    """The folder of all sets of the name."""
    set_id: str | None = None
    opened: OpenedSet | None = None
    """The set that is gone on with; None for a new one."""
    submissions: int = 0
    """How many the set had when it was looked at: with one more, the plan is of the past."""
    kept: tuple[CellStatus, ...] = ()
    """Where the cells stand that do not run."""
    warnings: tuple[Problem, ...] = ()


def plan_submission(
    path: Path,
    around: Surroundings,
    *,
    budget_usd: float | None = None,
    max_combinations: int | None = None,
    clock: Clock | None = None,
) -> SetPlan:
    """Plan a new set. Blocking; touches nothing but the files that packs consist of.

    Args:
        path: the manifest.
        around: where other settings come from.
        budget_usd: in place of the manifest's `limits.budget_usd`.
        max_combinations: a lower cap than the product's own.
        clock: the system's by default.

    Raises:
        BadInput: everything that is wrong, at once.
    """
    read = read_manifest(path)
    expansion = expand(read, max_combinations=max_combinations)
    project = read_project(around.config_files, environ=around.environ, cwd=around.cwd)
    references = resolve_references(read, expansion, project)
    document = set_document(read, expansion, references, path, around)
    budget = read.manifest.limits.budget_usd if budget_usd is None else budget_usd
    resolution, output = resolved_cells(
        read, document.cells, references, around, budget, reuses=False
    )
    namespace = _namespace(resolution, output, document.name)
    if output.run_id is not None and (namespace / output.run_id).exists():
        raise RunIdInUse(namespace / output.run_id)
    prepared = prepare(resolution, clock=clock)
    check_scanners(read, project, path)
    check_baseline(read, Path(resolution.orchestration.runtime.results_dir), path)
    return SetPlan(
        kind="submit",
        read=read,
        document=document,
        references=references,
        project=project,
        cells=document.cells,
        prepared=prepared,
        budget_usd=budget,
        namespace=namespace,
        set_id=output.run_id,
        warnings=resolution.warnings,
    )


def set_document(
    read: ReadManifest,
    expansion: Expansion,
    references: References,
    file: Path | None,
    around: Surroundings,
) -> SetDocument:
    """Give what `evalset.json` says of a set that is made anew."""
    agents = {key: _pinned(key, deployment) for key, deployment in references.agents.items()}
    cells = tuple(
        SetCell(
            cell.index,
            cell_folder(cell.index, cell.matrix_key),
            cell,
            references.packs[cell.pack_ref],
            agents[cell.agent_ref, cell.agent_label],
        )
        for cell in expansion.cells
    )
    return SetDocument(
        set_id="",
        name=read.manifest.name,
        created_at="",
        manifest=plain(read.root),
        manifest_file=None if file is None else str(file.resolve()),
        packs=tuple(references.packs.values()),
        agents=tuple(agents.values()),
        cells=cells,
        around=around,
    )


def _pinned(key: tuple[str, str | None], deployment: Deployment) -> PinnedAgent:
    ref, label = key
    return PinnedAgent(ref, deployment.name, deployment.uuid, label, deployment.digest)


def check_scanners(read: ReadManifest, project: Project, file: Path | None) -> None:
    """Make the manifest's scanners once, so that what is wrong with one is said before it costs.

    Raises:
        BadInput: one cannot be made, cannot run here, or asks a judge that there is not.
    """
    folder = project.folder if file is None else file.parent
    checked_scanners(
        read.manifest.scanners,
        project,
        folder,
        place_of=lambda number: read.root.nearest(("scanners", number)).origin.where,
    )


def check_baseline(read: ReadManifest, results_dir: Path, file: Path) -> None:
    """Find the set that this one is to be held against, before it costs anything.

    Raises:
        BadInput: there is none; or a gate needs one, and none is named.
    """
    manifest = read.manifest
    if manifest.baseline is None:
        if manifest.gates.max_regression is not None:
            raise BadInput(
                "gates.max_regression holds the set against a baseline, and none is named",
                where=read.root.nearest(("gates", "max_regression")).origin.where,
                remedy="name an earlier set: `baseline: ID`",
            )
        return
    beside = file.parent / manifest.baseline
    try:
        find_set(str(beside) if beside.is_dir() else manifest.baseline, results_dir)
    except BadInput as error:
        where = read.root.nearest(("baseline",)).origin.where
        raise BadInput.of([replace(problem, where=where) for problem in error.problems]) from error


def resolved_cells(
    read: ReadManifest,
    cells: Sequence[SetCell],
    references: References,
    around: Surroundings,
    budget_usd: float | None,
    *,
    reuses: bool,
) -> tuple[Resolution, Output]:
    """Resolve the orchestration of cells; its `output` is the set's, not the requests'."""
    tree = set_orchestration(read, cells, references, budget_usd=budget_usd, reuses=reuses)
    try:
        resolution = resolve_orchestration(
            tree,
            config_files=around.config_files,
            overrides=around.overrides,
            environ=around.environ,
            cwd=around.cwd,
            components=REGISTRY,
        )
    except InvalidSettings as error:
        raise with_plan_problems(error) from error
    whole = resolution.orchestration
    output = whole.requests[0].output
    requests = [request.model_copy(update={"output": Output()}) for request in whole.requests]
    whole = whole.model_copy(update={"requests": requests})
    return replace(resolution, orchestration=whole), output


def _namespace(resolution: Resolution, output: Output, name: str) -> Path:
    results_dir = Path(resolution.orchestration.runtime.results_dir)
    return set_namespace(results_dir, output.run_name, name)
