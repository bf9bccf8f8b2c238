"""Submit a set, go on with it, retry it: each is cells that are to run, made an orchestration.

Planning makes nothing and says everything that is wrong at once. Running is `engine.launch`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from steelyard.components.clock import Clock, SystemClock
from steelyard.components.issues import Outcome
from steelyard.components.known import REGISTRY
from steelyard.config.errors import BadInput, Problem, SteelyardError
from steelyard.config.layers import Override
from steelyard.config.resolve import InvalidSettings, Resolution, resolve_orchestration
from steelyard.config.schema.request import Output
from steelyard.config.source import plain, read_file
from steelyard.engine.control import Controls
from steelyard.engine.events import LaunchResult, Observer, RunOutcome
from steelyard.engine.every_problem import with_plan_problems
from steelyard.engine.launch import Prepared, launch, prepare
from steelyard.engine.outcomes import EXIT_STATUS, orchestration_outcome
from steelyard.evalset.agent_refs import Deployment
from steelyard.evalset.changes import Changes, changes_between
from steelyard.evalset.expansion import Expansion, expand
from steelyard.evalset.layout import cell_folder, set_namespace
from steelyard.evalset.manifest import ReadManifest, checked_manifest, read_manifest
from steelyard.evalset.orchestrate import set_orchestration
from steelyard.evalset.project import Project, read_project
from steelyard.evalset.references import References, resolve_references
from steelyard.evalset.set_document import PinnedAgent, SetCell, SetDocument
from steelyard.evalset.set_folder import OwnedSet, create_set, own_set
from steelyard.evalset.set_reader import CellStatus, OpenedSet, SetUnreadable
from steelyard.evalset.spent import set_spending
from steelyard.evalset.states import CellState
from steelyard.evalset.submissions import Submission
from steelyard.results.consumption import dollars
from steelyard.results.files import NO_FAULTS, Faults
from steelyard.results.layout import RunIdInUse

_UNENDED = frozenset(
    {
        CellState.PENDING,
        CellState.INTERRUPTED,
        CellState.CANCELLED,
        CellState.TIMED_OUT,
        CellState.SKIPPED_BUDGET,
    }
)
_NOT_DONE = (Outcome.NOT_STARTED, Outcome.CANCELLED, Outcome.SKIPPED_BUDGET)

_OUTCOME_OF: Mapping[CellState, RunOutcome] = {
    CellState.COMPLETED: RunOutcome.COMPLETED,
    CellState.FAILED: RunOutcome.FAILED,
    CellState.TIMED_OUT: RunOutcome.TIMED_OUT,
    CellState.CANCELLED: RunOutcome.CANCELLED,
    CellState.SKIPPED_BUDGET: RunOutcome.BUDGET_EXCEEDED,
    CellState.PENDING: RunOutcome.CANCELLED,
    CellState.INTERRUPTED: RunOutcome.CANCELLED,
    CellState.RUNNING: RunOutcome.CANCELLED,
}


class ManifestChanged(BadInput):
    """A manifest, a pack or a deployment is not what it was when the set was made."""


class NothingToDo(SteelyardError):
    """A set has no cell of the kind that was asked for: not a failure."""

    exit_status = 0


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where settings come from beside the manifest."""

    config_files: tuple[Path, ...] = ()
    overrides: tuple[Override, ...] = ()
    """The command line's shared controls."""
    environ: Mapping[str, str] | None = None
    cwd: Path | None = None


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
    kept: tuple[CellStatus, ...] = ()
    """Where the cells stand that do not run."""
    warnings: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class SetResult:
    """How a submission ended."""

    opened: OpenedSet
    submission: Submission
    launch: LaunchResult

    @property
    def outcome(self) -> RunOutcome:
        """The set's, the cells that did not run included."""
        return self.submission.outcome or RunOutcome.FAILED

    @property
    def exit_status(self) -> int:
        """Of the command."""
        return self.submission.exit_status or 0


# -- planning ----------------------------------------------------------------------------------


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
    document = set_document(read, expansion, references, path)
    budget = read.manifest.limits.budget_usd if budget_usd is None else budget_usd
    resolution, output = _resolved(read, document.cells, references, around, budget, reuses=False)
    namespace = _namespace(resolution, output, document.name)
    if output.run_id is not None and (namespace / output.run_id).exists():
        raise RunIdInUse(namespace / output.run_id)
    return SetPlan(
        kind="submit",
        read=read,
        document=document,
        references=references,
        project=project,
        cells=document.cells,
        prepared=prepare(resolution, clock=clock),
        budget_usd=budget,
        namespace=namespace,
        set_id=output.run_id,
        warnings=resolution.warnings,
    )


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
    if opened.is_running():
        own_set(opened)  # raises: it is running
    read = _manifest_of(opened, manifest_file)
    expansion = expand(read)
    project = read_project(around.config_files, environ=around.environ, cwd=around.cwd)
    references = resolve_references(read, expansion, project)
    now = set_document(read, expansion, references, manifest_file or _file_of(opened))
    changes = changes_between(opened.document, now)
    document = _accepted(opened, now, changes, accepts_changes)
    statuses = {status.cell.index: status for status in opened.statuses()}
    wanted = _failed if kind == "retry" else _is_missing
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
    resolution, _ = _resolved(read, cells, references, around, left, reuses=True)
    running = {cell.index for cell in cells}
    return SetPlan(
        kind=kind,
        read=read,
        document=document,
        references=references,
        project=project,
        cells=cells,
        prepared=prepare(resolution, clock=clock),
        budget_usd=limit,
        namespace=opened.root.parent,
        set_id=opened.set_id,
        opened=opened,
        kept=tuple(each for index, each in statuses.items() if index not in running),
        warnings=resolution.warnings,
    )


def set_document(
    read: ReadManifest, expansion: Expansion, references: References, file: Path | None
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
    )


def _pinned(key: tuple[str, str | None], deployment: Deployment) -> PinnedAgent:
    ref, label = key
    return PinnedAgent(ref, deployment.name, deployment.uuid, label, deployment.digest)


def _resolved(
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


# -- going on ----------------------------------------------------------------------------------


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
        remedy = (
            "`--accept-changes` takes what is added; what the set has stays as it is"
            if changes.only_adds
            else "submit it as a new set; or put back what was changed, and resume"
        )
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
    left = limit - spent.known_usd
    if left <= 0:
        raise BadInput(
            f"the budget of ${limit:g} is spent: {dollars(spent.cost_usd, spent.known_usd)}",
            remedy="give a new limit of the whole set: `--budget-usd`",
        )
    return left


# -- running -----------------------------------------------------------------------------------


async def run_set(
    plan: SetPlan,
    *,
    clock: Clock | None = None,
    observer: Observer | None = None,
    controls: Controls | None = None,
    faults: Faults = NO_FAULTS,
    handle_signals: bool = False,
    reap: bool = False,
    on_begun: Callable[[OpenedSet], None] | None = None,
) -> SetResult:
    """Run a planned submission to its end.

    Args:
        plan: what `plan_submission` or `plan_resume` gave; used once.
        clock: the system's by default.
        observer: is told of progress, on the event loop.
        controls: a new handle, to steer it with while it runs.
        faults: what a test does to writes.
        handle_signals: whether SIGINT, SIGTERM and SIGHUP cancel it.
        reap: whether what dead runs of these cells left is ended first.
        on_begun: is told of the set once its folder is there.

    Raises:
        BadInput: its folder is taken, or another process runs it; nothing has started.
        CancelledError: it was cancelled from outside; all cells have ended.
    """
    clock = clock or SystemClock()
    owned = _owned(plan, clock, faults)
    try:
        if on_begun is not None:
            on_begun(owned.opened)
        places = [cell.index for cell in plan.cells]
        submission = owned.begin(plan.kind, places, plan.budget_usd, clock=clock)
        cells_dir = owned.opened.files.cells
        prepared = replace(plan.prepared, plan=plan.prepared.plan.placed_in(cells_dir))
        try:
            result = await launch(
                prepared,
                observer=observer,
                controls=controls,
                faults=faults,
                handle_signals=handle_signals,
                reap=reap,
            )
        except BadInput as error:
            failed = RunOutcome.FAILED
            owned.end(submission, failed, error.exit_status, str(error), clock=clock)
            raise
        except BaseException as error:
            outcome = RunOutcome.CANCELLED
            said = f"{type(error).__name__}: {error}"
            owned.end(submission, outcome, EXIT_STATUS[outcome], said, clock=clock)
            raise
        outcome, status = _ended(plan, result)
        reason = None if outcome is RunOutcome.COMPLETED else _reason(result)
        ended = owned.end(submission, outcome, status, reason, clock=clock)
        return SetResult(owned.opened, ended, result)
    finally:
        owned.release()


def _owned(plan: SetPlan, clock: Clock, faults: Faults) -> OwnedSet:
    redact = plan.prepared.redactor.raw
    if plan.opened is None:
        return create_set(
            plan.namespace,
            plan.document,
            set_id=plan.set_id,
            clock=clock,
            faults=faults,
            redact=redact,
        )
    owned = own_set(plan.opened, faults=faults, redact=redact)
    if plan.document != plan.opened.document:
        try:
            return owned.replace_document(plan.document)
        except BaseException:
            owned.release()
            raise
    return owned


def _ended(plan: SetPlan, result: LaunchResult) -> tuple[RunOutcome, int]:
    """Judge the set: the cells that ran, and those that did not."""
    outcomes = [request.outcome for request in result.requests]
    outcomes += [_OUTCOME_OF[status.state] for status in plan.kept]
    outcome = orchestration_outcome(outcomes)
    is_same = outcome is result.outcome
    return outcome, result.exit_status if is_same else EXIT_STATUS[outcome]


def _reason(result: LaunchResult) -> str | None:
    """Give the first reason that a cell gives."""
    return next((request.reason for request in result.requests if request.reason), None)
