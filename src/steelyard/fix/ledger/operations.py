"""Controls: an operation id is taken once, with all that it changes, in one transaction.

They need no lease, so that a run can be steered while a worker holds it: their revision is compared
instead. What may be done is judged by `fix/controls.py` on a snapshot; here it is recorded if
nothing changed since.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from steelyard.fix.control_state import Status
from steelyard.fix.ledger import documents
from steelyard.fix.ledger.candidates import candidate_of, reserve_within
from steelyard.fix.ledger.database import Database, Reader
from steelyard.fix.ledger.errors import NoSuchRow, OperationIdReused
from steelyard.fix.ledger.rows import operation_from
from steelyard.fix.ledger.run_writing import RunWriting, control_writing
from steelyard.fix.ledger.runs import change_stage, extend
from steelyard.fix.ledger.values import NewCandidate, OperationRow, RunStage

CANDIDATE_ID = "candidate_id"
"""In an answer: whom an expansion reserved."""


@dataclass(frozen=True, slots=True)
class NewOperation:
    """A control that was judged."""

    operation_id: str
    digest: str
    """Of its content (`controls.control_digest`)."""
    action: str
    status: Status
    document: Mapping[str, Any]
    answer: Mapping[str, Any] = field(default_factory=dict)
    host_id: str | None = None
    is_retryable: bool = False


@dataclass(frozen=True, slots=True)
class SetPolicy:
    """Another search policy is in force: an epoch begins."""

    policy: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SetStage:
    """The run is stopped, goes on, or is over."""

    stage: RunStage
    why: str


@dataclass(frozen=True, slots=True)
class SetLimits:
    """Limits are extended."""

    limits: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Select:
    """A candidate is chosen for delivery."""

    candidate: str


@dataclass(frozen=True, slots=True)
class Invalidate:
    """A candidate does not count any more; descendants follow by themselves."""

    candidate: str
    reason: str


@dataclass(frozen=True, slots=True)
class Exhaust:
    """A candidate is not expanded any more."""

    candidate: str
    reason: str


@dataclass(frozen=True, slots=True)
class Settle:
    """An operation that was taken before goes on."""

    operation_id: str
    status: Status
    host_id: str | None = None
    """None leaves whose it is."""
    is_retryable: bool = False
    answer: Mapping[str, Any] | None = None
    """None leaves what is answered."""


@dataclass(frozen=True, slots=True)
class Expand:
    """A candidate is reserved; its id goes into the answer."""

    new: NewCandidate


@dataclass(frozen=True, slots=True)
class SpendOne:
    """One of a limit is used: a scan."""

    limit: str


@dataclass(frozen=True, slots=True)
class SetHost:
    """A host drives the run."""

    host: str | None


Effect = (
    SetPolicy
    | SetStage
    | SetLimits
    | Select
    | Invalidate
    | Exhaust
    | Settle
    | Expand
    | SpendOne
    | SetHost
)


@dataclass(frozen=True, slots=True)
class Recorded:
    """An operation, and whether this call did it."""

    operation: OperationRow
    is_new: bool


def stored(database: Database, run: str, operation_id: str) -> OperationRow | None:
    """Give what is recorded under an operation id."""
    with database.reading() as reader:
        return _find(reader, run, operation_id)


def record(
    database: Database,
    run: str,
    new: NewOperation,
    effects: Sequence[Effect],
    at: float,
    *,
    expected_revision: int,
    again: bool = False,
) -> Recorded:
    """Take a control with all its effects.

    A known operation id is answered from what is stored before the revision is compared.

    Args:
        database: the ledger.
        run: its long id.
        new: the control, judged.
        effects: what it changes at once; none for one that is queued.
        at: now.
        expected_revision: of the snapshot it was judged on.
        again: it failed for a passing reason and was judged anew.

    Raises:
        OperationIdReused: the id was used with other contents.
        RevisionConflict: the run changed since the snapshot: judge again.
        BudgetExhausted: an effect finds its limit used up.
    """
    with control_writing(database, run, at) as writing:
        before = _find(writing.writer, run, new.operation_id)
        if before is not None:
            if before.digest != new.digest:
                raise OperationIdReused(new.operation_id)
            if not again:
                return Recorded(before, is_new=False)
        writing.require_revision(expected_revision)
        answer = {**new.answer, **_apply(writing, effects)}
        _put(writing, new, answer, before)
        writing.touch()
        writing.event("control", new.operation_id, {"action": new.action, "status": new.status})
        return Recorded(_found(writing.writer, run, new.operation_id), is_new=True)


def settle(
    database: Database, run: str, settled: Settle, effects: Sequence[Effect], at: float
) -> OperationRow:
    """Let an operation that was taken before go on, with what it now changes.

    One that stands so already changes nothing.
    """
    with control_writing(database, run, at) as writing:
        before = _found(writing.writer, run, settled.operation_id)
        if (before.status, before.is_retryable) == (settled.status, settled.is_retryable):
            return before
        answer = {**(settled.answer or before.answer), **_apply(writing, effects)}
        _settle(writing, settled, answer)
        writing.touch()
        return _found(writing.writer, run, settled.operation_id)


def _find(reader: Reader, run: str, operation_id: str) -> OperationRow | None:
    row = reader.row(
        "SELECT * FROM operations WHERE run = ? AND operation_id = ?", run, operation_id
    )
    return None if row is None else operation_from(row)


def _found(reader: Reader, run: str, operation_id: str) -> OperationRow:
    found = _find(reader, run, operation_id)
    if found is None:
        raise NoSuchRow("operation", operation_id)
    return found


def _put(
    writing: RunWriting, new: NewOperation, answer: Mapping[str, Any], before: OperationRow | None
) -> None:
    writer, run = writing.writer, writing.run.run
    said = documents.written(answer, "the answer", documents.MAX_DOCUMENT_BYTES)
    if before is not None:
        writer.execute(
            "UPDATE operations SET status = ?, answer = ?, host_id = ?, is_retryable = ?,"
            " changed_at = ? WHERE run = ? AND operation_id = ?",
            new.status,
            said,
            new.host_id or before.host_id,
            int(new.is_retryable),
            writing.at,
            run,
            new.operation_id,
        )
        return
    place = writer.number("SELECT count(*) + 1 FROM operations WHERE run = ?", run)
    writer.insert(
        "operations",
        run=run,
        operation_id=documents.text(new.operation_id, "the operation id"),
        place=place,
        digest=new.digest,
        action=new.action,
        status=new.status,
        document=documents.written(new.document, "the control", documents.MAX_DOCUMENT_BYTES),
        answer=said,
        host_id=new.host_id,
        is_retryable=int(new.is_retryable),
        sent_at=writing.at,
        changed_at=writing.at,
    )


def _settle(writing: RunWriting, settled: Settle, answer: Mapping[str, Any]) -> None:
    before = _found(writing.writer, writing.run.run, settled.operation_id)
    writing.writer.execute(
        "UPDATE operations SET status = ?, answer = ?, host_id = ?, is_retryable = ?,"
        " changed_at = ? WHERE run = ? AND operation_id = ?",
        settled.status,
        documents.written(answer, "the answer", documents.MAX_DOCUMENT_BYTES),
        settled.host_id or before.host_id,
        int(settled.is_retryable),
        writing.at,
        writing.run.run,
        settled.operation_id,
    )
    detail = {"action": before.action, "status": settled.status.value}
    writing.event("control", settled.operation_id, detail)


def _apply(writing: RunWriting, effects: Sequence[Effect]) -> dict[str, Any]:
    """Do what an operation changes; give what its answer gains by it."""
    gained: dict[str, Any] = {}
    for effect in effects:
        match effect:
            case SetPolicy(policy):
                _set_policy(writing, policy)
            case SetStage(stage, why):
                change_stage(writing, stage, why)
            case SetLimits(limits):
                extend(writing, limits)
            case Select(candidate):
                _select(writing, candidate)
            case Invalidate(candidate, reason):
                _mark(writing, "invalidated", candidate, reason)
            case Exhaust(candidate, reason):
                _mark(writing, "exhausted", candidate, reason)
            case Settle():
                target = _found(writing.writer, writing.run.run, effect.operation_id)
                answer = target.answer if effect.answer is None else effect.answer
                _settle(writing, effect, {**answer, **gained})
            case Expand(new):
                gained[CANDIDATE_ID] = reserve_within(writing, new).candidate.candidate
            case SpendOne(limit):
                writing.spend(limit)
            case SetHost(host):
                writing.writer.execute(
                    "UPDATE runs SET active_host = ? WHERE run = ?", host, writing.run.run
                )
    return gained


def _set_policy(writing: RunWriting, policy: Mapping[str, Any]) -> None:
    writing.writer.execute(
        "UPDATE runs SET policy = ?, policy_revision = policy_revision + 1,"
        " epoch_start = decisions WHERE run = ?",
        documents.written(policy, "the policy"),
        writing.run.run,
    )
    writing.event("policy", writing.run.run, {"strategy": policy.get("strategy")})


def _select(writing: RunWriting, candidate: str) -> None:
    candidate_of(writing.writer, candidate, run=writing.run.run)
    writing.writer.execute("UPDATE runs SET selected = ? WHERE run = ?", candidate, writing.run.run)
    writing.event("selected", candidate)


def _mark(writing: RunWriting, column: str, candidate: str, reason: str) -> None:
    candidate_of(writing.writer, candidate, run=writing.run.run)
    said = documents.text(reason, "the reason")
    writing.writer.execute(
        f"UPDATE candidates SET {column} = ? WHERE candidate = ?",  # noqa: S608 - one of ours
        said,
        candidate,
    )
    writing.event(column, candidate)
