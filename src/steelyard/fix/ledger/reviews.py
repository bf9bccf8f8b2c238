"""Reviews that count: kept whole, the last one of a candidate in force."""

from __future__ import annotations

from steelyard.fix.ledger import documents
from steelyard.fix.ledger.candidates import candidate_of, end_within
from steelyard.fix.ledger.database import Database
from steelyard.fix.ledger.errors import NoSuchRow, NotNow
from steelyard.fix.ledger.rows import review_from
from steelyard.fix.ledger.run_writing import run_writing
from steelyard.fix.ledger.values import (
    CandidateEnd,
    CandidateStage,
    Lease,
    NewReview,
    ReviewRow,
)


def record(database: Database, lease: Lease, new: NewReview, at: float) -> ReviewRow:
    """Keep a review, which ends its candidate; the same one again changes nothing.

    Raises:
        NotNow: the candidate has no sealed tree, or ended without being reviewed.
    """
    digest = documents.digest_of([new.reviewer, new.verdict, dict(new.document)])
    with run_writing(database, lease, at) as writing:
        found = candidate_of(writing.writer, new.candidate, run=lease.run)
        sql = "SELECT * FROM reviews WHERE candidate = ? AND digest = ?"
        row = writing.writer.row(sql, new.candidate, digest)
        if row is not None:
            return review_from(row, database.evidence)
        if found.stage is not CandidateStage.SEALED and found.ended_as is not CandidateEnd.REVIEWED:
            raise NotNow(
                f"{found.short} is {(found.ended_as or found.stage).value}: it is not reviewed",
                remedy="`status` shows what comes next for it",
            )
        inline, document_at = documents.kept(new.document, writing.writer.evidence)
        writing.writer.insert(
            "reviews",
            run=lease.run,
            candidate=new.candidate,
            digest=digest,
            reviewer=documents.text(new.reviewer, "the reviewer"),
            verdict=new.verdict,
            at=at,
            document=inline,
            document_at=document_at,
        )
        writing.event("review", new.candidate, {"verdict": new.verdict})
        if found.stage is CandidateStage.ENDED:
            writing.touch()
        else:
            end_within(writing, new.candidate, CandidateEnd.REVIEWED, None)
        row = writing.writer.row(sql, new.candidate, digest)
        if row is None:
            raise NoSuchRow("review", digest)
        return review_from(row, database.evidence)
