"""Trials: reserved and paid for in one transaction before anything starts, launched, ended once.

A repetition is decided by its first `completed`, `failed` or `timed_out`, and has at most one open
trial; unique indexes say so as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Final

from steelyard.fix.ids import Kind
from steelyard.fix.ledger import documents
from steelyard.fix.ledger.candidates import candidate_of
from steelyard.fix.ledger.database import Database, Reader
from steelyard.fix.ledger.errors import (
    MayNotRepeat,
    NoSuchRow,
    NotNow,
    OtherContent,
    Unresolved,
)
from steelyard.fix.ledger.rows import NO_BLOCK, checks_from, trial_from
from steelyard.fix.ledger.run_writing import RunWriting, long_id, run_writing
from steelyard.fix.ledger.values import (
    MAX_TRIALS,
    CandidateEnd,
    CandidateStage,
    Lease,
    RepeatRules,
    Slot,
    TrialEnd,
    TrialRow,
)
from steelyard.fix.trial_plan import Outcome
from steelyard.results.lock import OwnerIdentity

DECIDING: Final = frozenset({Outcome.COMPLETED, Outcome.FAILED, Outcome.TIMED_OUT})
"""After these a repetition is not measured again."""
_MAX_REASON_CHARACTERS: Final = 400


@dataclass(frozen=True, slots=True)
class ReservedTrial:
    """The trial of a repetition, and whether this call paid for it."""

    trial: TrialRow
    is_new: bool

    @property
    def is_to_be_run(self) -> bool:
        """True where it is not decided yet: `launch` it, unless an owner was named, and run it."""
        return self.trial.is_open


def reserve(
    database: Database,
    lease: Lease,
    slot: Slot,
    at: float,
    *,
    rules: RepeatRules | None = None,
    owner: OwnerIdentity | None = None,
) -> ReservedTrial:
    """Pay for a trial of a repetition.

    A repetition that is decided is given with what decided it; one that was paid for by a process
    that died before the launch is given to this one. Neither is paid again.

    Args:
        database: the ledger.
        lease: of the run.
        slot: what is measured.
        at: now.
        rules: when a repetition is tried again.
        owner: the process that starts it at once: saves the transaction of `launch`.

    Raises:
        Unresolved: one was launched and has not ended, or nobody knows how.
        MayNotRepeat: it was tried as often as it may be.
        BudgetExhausted: no trial or no time is left.
        NotNow: the run is not open, or the candidate has no sealed tree that counts.
    """
    with run_writing(database, lease, at) as writing:
        candidate = candidate_of(writing.writer, slot.candidate, run=lease.run)
        tries = _tries(writing.writer, slot)
        for row in tries:
            if row.outcome in DECIDING:
                return ReservedTrial(row, is_new=False)
        writing.require_open()
        for row in tries:
            if row.outcome is Outcome.INCONCLUSIVE or (row.is_open and row.launched_at):
                raise Unresolved(row.short)
            if row.is_open:
                _adopt(writing, row, owner)
                return ReservedTrial(trial_of(writing.writer, row.trial), is_new=False)
        if (
            candidate.stage is not CandidateStage.SEALED
            and candidate.ended_as is not CandidateEnd.REVIEWED
        ):
            raise NotNow(f"{candidate.short} has no sealed tree", remedy="`fix run` seals it first")
        _require_valid(writing.writer, slot.candidate)
        _require_repeatable(tries, rules or RepeatRules())
        writing.spend(MAX_TRIALS)
        return ReservedTrial(_insert(writing, slot, len(tries) + 1, owner), is_new=True)


def launch(
    database: Database,
    lease: Lease,
    trial: str,
    owner: OwnerIdentity,
    at: float,
    *,
    never_started: bool = False,
) -> TrialRow:
    """Say who is about to start a trial: recorded before anything of it runs.

    Args:
        database: the ledger.
        lease: of the run.
        trial: its long id.
        owner: the process that starts it.
        at: now.
        never_started: whoever was to start it before is gone, and left nothing of it on the disk:
            it is started now, and not paid again.

    Raises:
        NotNow: it has ended, or somebody else starts it.
    """
    with run_writing(database, lease, at) as writing:
        row = trial_of(writing.writer, trial, run=lease.run)
        if row.owner == owner and row.token == lease.token and row.is_open:
            return row
        if not row.is_open or (row.launched_at is not None and not never_started):
            raise NotNow(f"{row.short} was started before", remedy="reserve another one")
        writing.require_open()
        writing.writer.execute(
            "UPDATE trials SET owner = ?, launched_at = ?, token = ? WHERE trial = ?",
            documents.owner_text(owner),
            at,
            lease.token,
            trial,
        )
        writing.event("launched", trial)
        return trial_of(writing.writer, trial)


def end(database: Database, lease: Lease, trial: str, ended: TrialEnd, at: float) -> TrialRow:
    """Record how a trial ended; one that was `inconclusive` may still be resolved.

    Raises:
        OtherContent: it is recorded with another end.
        NotNow: it is said to have run and was never launched.
        ValueError: a value is not finite.
    """
    values = [*ended.metrics.values(), *ended.tasks.values()]
    if not all(isfinite(value) for value in values):
        raise ValueError(f"a value of {trial} is not finite")
    digest = _digest(ended)
    with run_writing(database, lease, at) as writing:
        row = trial_of(writing.writer, trial, run=lease.run)
        if row.end is not None:
            if digest == _recorded_digest(writing.writer, trial):
                return row
            if row.outcome is not Outcome.INCONCLUSIVE:
                raise OtherContent(f"the end of {row.short}")
        elif row.launched_at is None and ended.outcome in DECIDING:
            raise NotNow(f"{row.short} was never launched", remedy="launch it first")
        _record_end(writing, trial, ended, digest)
        return trial_of(writing.writer, trial)


def trial_of(reader: Reader, trial: str, *, run: str | None = None) -> TrialRow:
    """Read a trial.

    Raises:
        NoSuchRow: there is none, or it is another run's.
    """
    row = reader.row("SELECT * FROM trials WHERE trial = ?", trial)
    if row is None or (run is not None and row["run"] != run):
        raise NoSuchRow("trial", trial)
    checks = checks_from(reader.rows("SELECT * FROM checks WHERE trial = ? ORDER BY place", trial))
    return trial_from(row, checks.get(trial, ()), reader.evidence)


def _tries(reader: Reader, slot: Slot) -> list[TrialRow]:
    rows = reader.rows(
        "SELECT trial FROM trials WHERE candidate = ? AND purpose = ? AND repetition = ?"
        " AND block = ? ORDER BY number",
        slot.candidate,
        slot.purpose,
        slot.repetition,
        NO_BLOCK if slot.block is None else slot.block,
    )
    tries = [trial_of(reader, row["trial"]) for row in rows]
    if any(row.slot.seed != slot.seed for row in tries):
        raise OtherContent(f"the seed of repetition {slot.repetition}")
    return tries


def _adopt(writing: RunWriting, row: TrialRow, owner: OwnerIdentity | None) -> None:
    writing.writer.execute(
        "UPDATE trials SET token = (SELECT token FROM leases WHERE run = ?), owner = ?,"
        " launched_at = ? WHERE trial = ?",
        row.run,
        None if owner is None else documents.owner_text(owner),
        None if owner is None else writing.at,
        row.trial,
    )


def _require_valid(reader: Reader, candidate: str) -> None:
    row = reader.row(
        "WITH RECURSIVE line (candidate, parent, invalidated) AS ("
        " SELECT candidate, parent, invalidated FROM candidates WHERE candidate = ?"
        " UNION SELECT c.candidate, c.parent, c.invalidated FROM candidates c"
        " JOIN line ON c.candidate = line.parent)"
        " SELECT candidate FROM line WHERE invalidated IS NOT NULL",
        candidate,
    )
    if row is not None:
        raise NotNow(
            f"{candidate} is invalid, by itself or through its ancestor {row['candidate']}",
            remedy="measure another candidate",
        )


def _require_repeatable(tries: Sequence[TrialRow], rules: RepeatRules) -> None:
    faults = [row for row in tries if row.outcome in (Outcome.ERROR, Outcome.LOST)]
    if len(faults) > rules.retries:
        raise MayNotRepeat(
            f"repetition {faults[-1].slot.repetition} went wrong {len(faults)} times: "
            f"{faults[-1].end and faults[-1].end.reason}",
            remedy="mend what `fix show` says of its trials, or raise trial_retries in a new run",
        )
    if tries and tries[-1].outcome is Outcome.CANCELLED and not rules.may_repeat_cancelled:
        raise MayNotRepeat(
            f"{tries[-1].short} was cancelled", remedy="`fix run RUN --continue` measures it again"
        )


def _insert(writing: RunWriting, slot: Slot, tried: int, owner: OwnerIdentity | None) -> TrialRow:
    run, writer = writing.run.run, writing.writer
    count = writer.number("SELECT count(*) FROM trials WHERE run = ?", run)
    trial = long_id(run, Kind.TRIAL, count)
    writer.insert(
        "trials",
        trial=trial,
        run=run,
        candidate=slot.candidate,
        purpose=slot.purpose,
        repetition=slot.repetition,
        block=NO_BLOCK if slot.block is None else slot.block,
        **{"try": tried},
        seed=str(slot.seed),
        token=writer.number("SELECT token FROM leases WHERE run = ?", run),
        reserved_at=writing.at,
        owner=None if owner is None else documents.owner_text(owner),
        launched_at=None if owner is None else writing.at,
    )
    writing.event("trial", trial)
    return trial_of(writer, trial)


def _digest(ended: TrialEnd) -> str:
    checks = [[one.id, one.passed, one.as_expected, one.reason] for one in ended.checks]
    return documents.digest_of(
        [
            ended.outcome.value,
            ended.trust,
            ended.reason,
            dict(ended.metrics),
            dict(ended.tasks),
            checks,
            dict(ended.detail),
        ]
    )


def _recorded_digest(reader: Reader, trial: str) -> str | None:
    row = reader.row("SELECT digest FROM trials WHERE trial = ?", trial)
    return None if row is None else row["digest"]


def _record_end(writing: RunWriting, trial: str, ended: TrialEnd, digest: str) -> None:
    writer = writing.writer
    result = {
        "metrics": dict(ended.metrics),
        "tasks": dict(ended.tasks),
        "detail": dict(ended.detail),
    }
    inline, result_at = documents.kept(result, writer.evidence)
    reason = None if ended.reason is None else ended.reason[:_MAX_REASON_CHARACTERS]
    writer.execute(
        "UPDATE trials SET outcome = ?, trust = ?, reason = ?, ended_at = ?, result = ?,"
        " result_at = ?, digest = ? WHERE trial = ?",
        ended.outcome,
        ended.trust,
        reason,
        writing.at,
        inline,
        result_at,
        digest,
        trial,
    )
    writer.execute("DELETE FROM checks WHERE trial = ?", trial)
    for place, check in enumerate(ended.checks):
        writer.insert(
            "checks",
            trial=trial,
            name=check.id,
            place=place,
            passed=int(check.passed),
            as_expected=int(check.as_expected),
            reason=None if check.reason is None else check.reason[:_MAX_REASON_CHARACTERS],
        )
    writing.event("trial_ended", trial, {"outcome": ended.outcome.value})
