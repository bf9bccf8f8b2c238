"""Whether a review counts: its template, what it must name, who may write it. Pure.

A review is judged against what counts now. It sets no metric and no exit code, and what it names
must be exactly what was measured: another tree, another trial, and it is stale.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Literal

from steelyard.fix.schema.review import Assessments, Review

PENDING: Final = "pending"
"""The verdict of a template that nobody has filled in."""


@dataclass(frozen=True, slots=True)
class ReviewSubject:
    """What a review is about, as it stands now."""

    run_id: str
    candidate_id: str
    source_digest: str
    """Of the sealed tree."""
    evaluation_digest: str
    """Of the frozen spec, checks and evaluation files."""
    inputs_digest: str
    """Of the frozen overlays and inputs."""
    trial_ids: tuple[str, ...]
    """The trials whose measurements count."""
    author: str | None
    """Who wrote the candidate; None for the baseline."""
    evidence: tuple[str, ...] = ()
    """What may be cited besides the trials: digests of kept output."""
    missing: tuple[str, ...] = ()
    """What is not measured yet; nothing is reviewed before."""


class Refusal(StrEnum):
    """Why a review does not count."""

    NOT_MEASURED = "not_measured"
    OTHER_RUN = "other_run"
    OTHER_CANDIDATE = "other_candidate"
    STALE_SOURCE = "stale_source"
    STALE_EVALUATION = "stale_evaluation"
    STALE_INPUTS = "stale_inputs"
    STALE_TRIALS = "stale_trials"
    UNKNOWN_EVIDENCE = "unknown_evidence"
    BY_THE_AUTHOR = "by_the_author"


@dataclass(frozen=True, slots=True)
class Objection:
    """One reason why a review does not count, and what to do."""

    refusal: Refusal
    field: str
    """Of the review file."""
    message: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Judged:
    """What came of a review."""

    objections: tuple[Objection, ...]
    verdict: Literal["pass", "reject"]

    @property
    def is_valid(self) -> bool:
        """True where it counts, for or against."""
        return not self.objections

    @property
    def is_accepted(self) -> bool:
        """True where the candidate is accepted by it."""
        return self.is_valid and self.verdict == "pass"


def template(subject: ReviewSubject) -> dict[str, Any]:
    """Give the review file to be filled in: identities are there, the judgement is not.

    Read back as it is it is refused, field by field.
    """
    return {
        "version": 1,
        "run_id": subject.run_id,
        "candidate_id": subject.candidate_id,
        "source_digest": subject.source_digest,
        "evaluation_digest": subject.evaluation_digest,
        "inputs_digest": subject.inputs_digest,
        "trial_ids": list(subject.trial_ids),
        "reviewer": "",
        "verdict": PENDING,
        "rationale": "",
        "evidence": [*subject.trial_ids],
        "assessments": dict.fromkeys(Assessments.model_fields, False),
    }


def judge(review: Review, subject: ReviewSubject) -> Judged:
    """Judge a review against what counts now; every objection at once."""
    found = [*_identities(review, subject), *_trials(review, subject), *_evidence(review, subject)]
    if subject.missing:
        found.insert(
            0,
            Objection(
                Refusal.NOT_MEASURED,
                "trial_ids",
                f"there is nothing to review yet: {', '.join(subject.missing)}",
                "measure it first, then fill in the template that comes back",
            ),
        )
    if subject.author is not None and is_same_person(review.reviewer, subject.author):
        found.append(
            Objection(
                Refusal.BY_THE_AUTHOR,
                "reviewer",
                f"{review.reviewer!r} wrote this candidate",
                "let somebody else review it",
            )
        )
    return Judged(tuple(found), review.verdict)


def is_same_person(one: str, other: str) -> bool:
    """True where two names are one but for case, spacing and Unicode form."""
    return _person(one) == _person(other)


def _person(name: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


_RETAKE: Final = "review what is there now: take a fresh template from `fix run`"


def _identities(review: Review, subject: ReviewSubject) -> list[Objection]:
    rows: Sequence[tuple[Refusal, str, str]] = (
        (Refusal.OTHER_RUN, "run_id", "it is a review for the run {was}, not for {now}"),
        (
            Refusal.OTHER_CANDIDATE,
            "candidate_id",
            "it is a review of the candidate {was}, not of {now}",
        ),
        (
            Refusal.STALE_SOURCE,
            "source_digest",
            "it looked at another source ({was}); the sealed tree is {now}",
        ),
        (
            Refusal.STALE_EVALUATION,
            "evaluation_digest",
            "it looked at another benchmark or other checks ({was}); frozen are {now}",
        ),
        (
            Refusal.STALE_INPUTS,
            "inputs_digest",
            "it looked at other inputs ({was}); frozen are {now}",
        ),
    )
    return [
        Objection(refusal, field, said.format(was=was, now=now), _RETAKE)
        for refusal, field, said in rows
        if (was := getattr(review, field)) != (now := getattr(subject, field))
    ]


def _trials(review: Review, subject: ReviewSubject) -> list[Objection]:
    named, counted = set(review.trial_ids), set(subject.trial_ids)
    found = []
    if unnamed := [trial for trial in subject.trial_ids if trial not in named]:
        found.append(
            Objection(
                Refusal.STALE_TRIALS,
                "trial_ids",
                f"it does not name {', '.join(unnamed)}, whose measurements count",
                _RETAKE,
            )
        )
    if other := [trial for trial in review.trial_ids if trial not in counted]:
        found.append(
            Objection(
                Refusal.STALE_TRIALS,
                "trial_ids",
                f"{', '.join(other)} do not count for this candidate",
                _RETAKE,
            )
        )
    return found


def _evidence(review: Review, subject: ReviewSubject) -> list[Objection]:
    known = {*subject.trial_ids, *subject.evidence}
    return [
        Objection(
            Refusal.UNKNOWN_EVIDENCE,
            f"evidence[{index}]",
            f"{cited!r} is no trial and no kept output of this candidate",
            "cite trials, or digests that `fix show` lists",
        )
        for index, cited in enumerate(review.evidence)
        if cited not in known
    ]


def reviewed(
    subject: ReviewSubject,
    *,
    reviewer: str,
    verdict: Literal["pass", "reject"],
    rationale: str,
    assessments: Mapping[str, bool] | None = None,
) -> dict[str, Any]:
    """Fill a template in with what a person answered; it is read like any review file.

    Args:
        subject: what is reviewed.
        reviewer: who answered.
        verdict: `pass` or `reject`.
        rationale: why.
        assessments: by name; where none are given, all are right for `pass` and none for `reject`.
    """
    answers = assessments or dict.fromkeys(Assessments.model_fields, verdict == "pass")
    return {
        **template(subject),
        "reviewer": reviewer,
        "verdict": verdict,
        "rationale": rationale,
        "assessments": dict(answers),
    }
