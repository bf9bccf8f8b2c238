"""Candidates: a slot and a decision in one transaction, then editing, sealed, and an end."""

from __future__ import annotations

from dataclasses import dataclass

from steelyard.fix.ids import Kind
from steelyard.fix.ledger import documents
from steelyard.fix.ledger.database import Database, Reader
from steelyard.fix.ledger.errors import NoSuchRow, NotNow, OtherContent, RevisionConflict
from steelyard.fix.ledger.rows import candidate_from
from steelyard.fix.ledger.run_writing import RunWriting, long_id, run_writing
from steelyard.fix.ledger.values import (
    MAX_CANDIDATES,
    CandidateEnd,
    CandidateRow,
    CandidateStage,
    Lease,
    NewCandidate,
    Sealed,
)


@dataclass(frozen=True, slots=True)
class ReservedCandidate:
    """A candidate, and whether this call took its slot."""

    candidate: CandidateRow
    is_new: bool


def reserve(
    database: Database,
    lease: Lease,
    new: NewCandidate,
    at: float,
    *,
    expected_revision: int | None = None,
) -> ReservedCandidate:
    """Take a slot for a proposal and record the decision for its parent.

    A proposal that was cut off before its worktree was made is given again, as is one of the same
    origin at any time; nothing is spent then.

    Args:
        database: the ledger.
        lease: of the run.
        new: the proposal.
        at: now.
        expected_revision: of the snapshot that the decision was made on.

    Raises:
        BudgetExhausted: no slot or no time is left.
        RevisionConflict: the run changed since the decision.
        NotNow: the run is not open.
    """
    with run_writing(database, lease, at) as writing:
        return reserve_within(writing, new, expected_revision=expected_revision)


def reserve_within(
    writing: RunWriting, new: NewCandidate, *, expected_revision: int | None = None
) -> ReservedCandidate:
    """Do what `reserve` does, within a transaction."""
    request = _request(new)
    if (found := _taken(writing, new, request)) is not None:
        return ReservedCandidate(found, is_new=False)
    writing.require_open()
    writing.require_revision(expected_revision)
    if new.decision.number != writing.run.decisions:
        raise RevisionConflict(writing.run.run, new.decision.number, writing.run.decisions)
    candidate_of(writing.writer, new.parent, run=writing.run.run)
    writing.spend(MAX_CANDIDATES)
    run, writer = writing.run.run, writing.writer
    count = writer.number("SELECT count(*) FROM candidates WHERE run = ?", run)
    candidate = long_id(run, Kind.CANDIDATE, count)
    next_round = writer.number("SELECT max(round) + 1 FROM candidates WHERE run = ?", run)
    writer.insert(
        "candidates",
        candidate=candidate,
        run=run,
        parent=new.parent,
        round=next_round if new.round is None else new.round,
        stage=CandidateStage.RESERVED,
        hypothesis=documents.text(new.hypothesis, "the hypothesis"),
        author=documents.text(new.author, "the author"),
        request=request,
        origin=new.origin,
        created_at=writing.at,
        detail="{}",
    )
    _record_decision(writing, new, candidate)
    writing.touch()
    writing.event("candidate", candidate, {"parent": new.parent, "decision": new.decision.number})
    return ReservedCandidate(candidate_of(writer, candidate), is_new=True)


def begin_editing(database: Database, lease: Lease, candidate: str, at: float) -> CandidateRow:
    """Say that a candidate's worktree is there.

    Raises:
        NotNow: it is sealed or has ended.
    """
    with run_writing(database, lease, at) as writing:
        found = candidate_of(writing.writer, candidate, run=lease.run)
        if found.stage is CandidateStage.EDITING:
            return found
        if found.stage is not CandidateStage.RESERVED:
            raise _not_now(found)
        _set_stage(writing, candidate, CandidateStage.EDITING)
        return candidate_of(writing.writer, candidate)


def seal(
    database: Database, lease: Lease, candidate: str, sealed: Sealed, at: float
) -> CandidateRow:
    """Record a candidate's sealed tree; one that is there already makes it a duplicate, at its end.

    Raises:
        OtherContent: another tree of it is sealed.
        NotNow: it has ended, or has no worktree.
    """
    with run_writing(database, lease, at) as writing:
        found = candidate_of(writing.writer, candidate, run=lease.run)
        if found.tree_id is not None:
            if (found.tree_id, found.manifest) != (sealed.tree_id, sealed.manifest):
                raise OtherContent(f"the sealed tree of {found.short}")
            return found
        if found.stage is not CandidateStage.EDITING:
            raise _not_now(found)
        same = writing.writer.row(
            "SELECT candidate FROM candidates WHERE run = ? AND tree_id = ? ORDER BY number",
            lease.run,
            sealed.tree_id,
        )
        writing.writer.execute(
            "UPDATE candidates SET stage = ?, tree_id = ?, manifest = ?, detail = ?"
            " WHERE candidate = ?",
            CandidateStage.SEALED,
            sealed.tree_id,
            sealed.manifest,
            documents.written(sealed.detail, "the seal's detail"),
            candidate,
        )
        writing.touch()
        writing.event("sealed", candidate, {"tree_id": sealed.tree_id})
        if same is not None:
            writing.writer.execute(
                "UPDATE candidates SET duplicate_of = ? WHERE candidate = ?",
                same["candidate"],
                candidate,
            )
            end_within(writing, candidate, CandidateEnd.DUPLICATE, "its tree was sealed before")
        return candidate_of(writing.writer, candidate)


def end(
    database: Database,
    lease: Lease,
    candidate: str,
    ended_as: CandidateEnd,
    reason: str | None,
    at: float,
) -> CandidateRow:
    """Say that nothing about a candidate is still to come.

    Raises:
        OtherContent: it ended in another way.
    """
    with run_writing(database, lease, at) as writing:
        candidate_of(writing.writer, candidate, run=lease.run)
        return end_within(writing, candidate, ended_as, reason)


def end_within(
    writing: RunWriting, candidate: str, ended_as: CandidateEnd, reason: str | None
) -> CandidateRow:
    """Do what `end` does, within a transaction."""
    found = candidate_of(writing.writer, candidate)
    if found.stage is CandidateStage.ENDED:
        if found.ended_as is not ended_as:
            raise OtherContent(f"the end of {found.short}")
        return found
    writing.writer.execute(
        "UPDATE candidates SET stage = ?, ended_as = ?, reason = ? WHERE candidate = ?",
        CandidateStage.ENDED,
        ended_as,
        None if reason is None else documents.text(reason, "the reason"),
        candidate,
    )
    writing.touch()
    writing.event("ended", candidate, {"as": ended_as.value})
    return candidate_of(writing.writer, candidate)


def release(database: Database, lease: Lease, candidate: str, at: float) -> CandidateRow:
    """Say that a candidate's worktree is gone."""
    with run_writing(database, lease, at) as writing:
        found = candidate_of(writing.writer, candidate, run=lease.run)
        if not found.is_released:
            writing.writer.execute(
                "UPDATE candidates SET is_released = 1 WHERE candidate = ?", candidate
            )
            writing.event("released", candidate)
        return candidate_of(writing.writer, candidate)


def candidate_of(reader: Reader, candidate: str, *, run: str | None = None) -> CandidateRow:
    """Read a candidate.

    Raises:
        NoSuchRow: there is none, or it is another run's.
    """
    row = reader.row("SELECT * FROM candidates WHERE candidate = ?", candidate)
    if row is None or (run is not None and row["run"] != run):
        raise NoSuchRow("candidate", candidate)
    return candidate_from(row)


def _request(new: NewCandidate) -> str:
    # A parent that a policy chose is no part of what was asked for.
    asked = new.parent if new.is_explicit else None
    return documents.digest_of([asked, new.hypothesis, new.author, new.round, new.origin])


def _taken(writing: RunWriting, new: NewCandidate, request: str) -> CandidateRow | None:
    if new.origin is not None:
        row = writing.writer.row(
            "SELECT * FROM candidates WHERE run = ? AND origin = ?", writing.run.run, new.origin
        )
    else:
        row = writing.writer.row(
            "SELECT * FROM candidates WHERE run = ? AND stage = ? AND request = ?",
            writing.run.run,
            CandidateStage.RESERVED,
            request,
        )
    return None if row is None else candidate_from(row)


def _record_decision(writing: RunWriting, new: NewCandidate, candidate: str) -> None:
    inline, digest = documents.kept(new.decision.document, writing.writer.evidence)
    run, number = writing.run.run, new.decision.number
    writing.writer.insert(
        "decisions",
        run=run,
        number=number,
        candidate=candidate,
        parent=new.decision.parent,
        at=writing.at,
        document=inline,
        document_at=digest,
    )
    writing.writer.execute("UPDATE runs SET decisions = ? WHERE run = ?", number + 1, run)
    writing.writer.execute(
        "UPDATE candidates SET last_decision = ? WHERE candidate = ?", number, new.parent
    )


def _set_stage(writing: RunWriting, candidate: str, stage: CandidateStage) -> None:
    writing.writer.execute("UPDATE candidates SET stage = ? WHERE candidate = ?", stage, candidate)
    writing.touch()
    writing.event(stage.value, candidate)


def _not_now(found: CandidateRow) -> NotNow:
    how = found.stage.value if found.ended_as is None else f"at its end: {found.ended_as.value}"
    return NotNow(f"{found.short} is {how}", remedy="`status` shows what comes next for it")
