"""Plan to go on with a set: what has not ended (`resume`), or what failed (`retry`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from steelyard.components.clock import Clock
from steelyard.components.issues import Outcome
from steelyard.config.errors import BadInput, SteelyardError
from steelyard.config.resolve import Resolution
from steelyard.config.source import plain, read_file
from steelyard.engine.launch import prepare
from steelyard.evalset.changes import Changes, changes_between
from steelyard.evalset.expansion import expand
from steelyard.evalset.manifest import ReadManifest, checked_manifest, read_manifest
from steelyard.evalset.project import read_project
from steelyard.evalset.references import resolve_references
from steelyard.evalset.set_document import SetCell, SetDocument
from steelyard.evalset.set_folder import SetIsRunning
from steelyard.evalset.set_plan import SetPlan, check_scanners, resolved_cells, set_document
from steelyard.evalset.set_reader import CellStatus, OpenedSet, SetUnreadable
from steelyard.evalset.spent import set_charge_usd, set_spending
from steelyard.evalset.states import CellState
from steelyard.evalset.surroundings import Surroundings
from steelyard.results.consumption import dollars
from steelyard.results.documents import part, read_run_document

_UNENDED = frozenset(
    {
        CellState.PENDING,
        CellState.INTERRUPTED,
        CellState.CANCELLED,
        CellState.TIMED_OUT,
        CellState.SKIPPED_BUDGET,
    }
)
_DECIDES_TASKS = ("attempts", "limit", "sample_ids", "exclude_ids", "shard")
_NOT_DONE = (Outcome.NOT_STARTED, Outcome.CANCELLED, Outcome.SKIPPED_BUDGET)


class ManifestChanged(BadInput):
    """A manifest, a pack or a deployment is not what it was when the set was made."""


class NothingToDo(SteelyardError):
    """A set has no cell of the kind that was asked for: not a failure."""

    exit_status = 0


def plan_resume(
    opened: OpenedSet,
    around: Surroundings,
    *,
    kind: str = "resume",
    budget_usd: float | None = None,
    accepts_changes: bool = False,
    manifest_file: Path | None = None,
    clock: Clock | None = None,
) -> SetPlan:
    """Plan to go on with a set: what has not ended (`resume`), or what failed (`retry`).

    Args:
        opened: the set.
        around: where other settings come from.
        kind: `resume` or `retry`.
        budget_usd: a new limit of the whole set, what is spent included.
        accepts_changes: whether cells may be added.
        manifest_file: in place of the one that the set was made from.
        clock: the system's by default.

    Raises:
        BadInput: everything that is wrong, at once.
        ManifestChanged: what the set is made of has changed, other than by what is accepted.
        NothingToDo: there is no such cell.
    """
    submissions = len(opened.submissions())  # before anything else of it is read
    if opened.is_running():
        raise SetIsRunning(opened.root)
    around = opened.document.around.with_more(around)
    read = _manifest_of(opened, manifest_file)
    statuses = {status.cell.index: status for status in opened.statuses()}
    wanted = _failed if kind == "retry" else _is_missing
    if plain(read.root) == opened.document.manifest and not any(map(wanted, statuses.values())):
        raise _nothing(opened, kind)  # whatever has become of the project
    expansion = expand(read)
    project = read_project(around.config_files, environ=around.environ, cwd=around.cwd)
    references = resolve_references(read, expansion, project)
    file = manifest_file or _file_of(opened)
    now = set_document(read, expansion, references, file, opened.document.around)
    changes = changes_between(opened.document, now)
    document = _accepted(opened, now, changes, accepts_changes)
    cells = tuple(
        cell
        for cell in document.cells
        if cell.index not in statuses or wanted(statuses[cell.index])
    )
    if kind == "retry":
        cells = tuple(cell for cell in cells if cell.index in statuses)
    if not cells:
        raise _nothing(opened, kind)
    limit = _limit(opened, read, changes, budget_usd)
    left = _left(opened, limit)
    resolution, _ = resolved_cells(read, cells, references, around, left, reuses=True)
    _check_tasks(opened, cells, resolution)
    running = {cell.index for cell in cells}
    prepared = prepare(resolution, clock=clock)
    check_scanners(read, project, file)
    return SetPlan(
        kind=kind,
        read=read,
        document=document,
        references=references,
        project=project,
        cells=cells,
        prepared=prepared,
        budget_usd=limit,
        namespace=opened.root.parent,
        set_id=opened.set_id,
        opened=opened,
        submissions=submissions,
        kept=tuple(each for index, each in statuses.items() if index not in running),
        warnings=resolution.warnings,
    )


def _file_of(opened: OpenedSet) -> Path | None:
    file = opened.document.manifest_file
    return None if file is None else Path(file)


def _manifest_of(opened: OpenedSet, given: Path | None) -> ReadManifest:
    """Read the manifest that a set was made from; as the set keeps it where the file is gone."""
    file = given or _file_of(opened)
    if file is not None and (given is not None or file.exists()):
        return read_manifest(file)
    document = opened.files.document
    kept = read_file(document, layer="manifest").at(("manifest",))
    if kept is None:
        raise SetUnreadable(opened.root, "evalset.json holds no manifest")
    return checked_manifest(kept)


def _accepted(opened: OpenedSet, now: SetDocument, changes: Changes, accepts: bool) -> SetDocument:
    if changes.is_none:
        return opened.document
    if not changes.only_adds or not accepts:
        lines = "".join(f"\n  {line}" for line in changes.lines())
        remedy = "submit it as a new set; or put back what was changed, and resume"
        if changes.only_adds:
            remedy = "`--accept-changes` takes this: what the set has stays as it is"
        raise ManifestChanged(f"{opened.name} is not what it was:{lines}", remedy=remedy)
    made = opened.document
    kept = {cell.index: cell for cell in (*made.cells, *changes.added)}
    return replace(
        made,
        manifest=now.manifest,
        manifest_file=now.manifest_file,
        packs=tuple(dict.fromkeys((*made.packs, *now.packs))),
        agents=tuple(dict.fromkeys((*made.agents, *now.agents))),
        cells=tuple(kept[index] for index in sorted(kept)),
    )


def _check_tasks(opened: OpenedSet, cells: Sequence[SetCell], resolution: Resolution) -> None:
    """Refuse other tasks or attempts than a cell's earlier run has: its results would be hidden.

    They may come from a configuration file, which is no part of the set.

    Raises:
        ManifestChanged: they are others.
    """
    for cell, request in zip(cells, resolution.orchestration.requests, strict=True):
        root = opened.run_dir(cell)
        if root is None:
            continue
        before = part(part(read_run_document(root), "request"), "execution")
        now = request.execution.model_dump(mode="json")
        changed = [
            f"execution.{name}: {before.get(name)} -> {now[name]}"
            for name in _DECIDES_TASKS
            if (before.get(name) or None) != (now[name] or None)
        ]
        if changed:
            raise ManifestChanged(
                f"{cell.matrix_key} would run other tasks than it did: {'; '.join(changed)}",
                remedy="put back what a configuration file changed, or submit a new set",
            )
        return  # what decides it is the same for all cells


def _is_missing(status: CellStatus) -> bool:
    return status.state in _UNENDED or any(status.outcomes.get(word) for word in _NOT_DONE)


def _failed(status: CellStatus) -> bool:
    """True where something failed for a reason that is not the agent's: a FATAL, no tasks."""
    return status.state is CellState.FAILED or bool(status.outcomes.get(Outcome.FAILED_FATAL))


def _nothing(opened: OpenedSet, kind: str) -> NothingToDo:
    if kind == "retry":
        return NothingToDo(f"{opened.name}: nothing failed for a reason that is not the agent's")
    return NothingToDo(
        f"{opened.name}: every cell has ended",
        remedy=f"`steelyard evalset retry {opened.set_id}` runs what failed FATAL once more",
    )


def _limit(
    opened: OpenedSet, read: ReadManifest, changes: Changes, given: float | None
) -> float | None:
    if given is not None:
        return given
    if any(line.startswith("limits.budget_usd") for line in changes.free):
        return read.manifest.limits.budget_usd
    return opened.budget_usd()


def _left(opened: OpenedSet, limit: float | None) -> float | None:
    """Give what may still be spent.

    Raises:
        BadInput: nothing is left of it.
    """
    if limit is None:
        return None
    spent = set_spending(opened)
    charged_usd = set_charge_usd(opened, spent)
    left = limit - charged_usd
    if left <= 0:
        known = dollars(spent.cost_usd, spent.known_usd)
        guess_usd = charged_usd - spent.known_usd
        more = f", and up to {dollars(guess_usd)} by what was ended in the middle"
        raise BadInput(
            f"the budget of ${limit:g} is spent: {known}{more if guess_usd else ''}",
            remedy="give a new limit of the whole set: `--budget-usd`",
        )
    return left
