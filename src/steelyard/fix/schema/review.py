"""The review of a baseline or candidate, as its reviewer fills it in.

It holds a judgement and what was looked at: no metric, no exit code.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from steelyard.config.schema.request import Strict
from steelyard.config.source import Node
from steelyard.fix.schema.reading import Breach, checked_document, read_document
from steelyard.fix.schema.words import Words


class Assessments(Strict):
    """What the reviewer looked at; an accepted review says true to all."""

    patch: bool
    """The sealed change does what it says; of a baseline: the source is what it should be."""
    evaluator_integrity: bool
    """Benchmark, checks and inputs are untouched, and measure what they should."""
    issue_relevance: bool
    """The change bears on the goal and the issues of the run."""
    measurements: bool
    """The engine's measurements support the judgement."""


class Review(Strict):
    """An independent review; every identity is copied from the template."""

    version: Literal[1]
    """The format: 1."""
    run_id: Words
    """The run."""
    candidate_id: Words
    """The candidate, or the baseline."""
    source_digest: Words
    """The sealed tree."""
    evaluation_digest: Words
    """The frozen benchmark, checks and evaluation files."""
    inputs_digest: Words
    """The frozen overlays and inputs."""
    trial_ids: Annotated[list[Words], Field(min_length=1)]
    """Every trial that the judgement rests on."""
    reviewer: Words
    """Who reviewed: not the author."""
    verdict: Literal["pass", "reject"]
    """`pass` accepts, `reject` refuses."""
    rationale: Words
    """Why; lessons that were used are cited here."""
    evidence: Annotated[list[Words], Field(min_length=1)]
    """What was looked at: trials, or digests of kept output."""
    assessments: Assessments
    """What was looked at, one by one."""


def review_breaches(review: Review) -> list[Breach]:
    """Give what a review breaks by itself."""
    found = [*_twice("trial_ids", review.trial_ids), *_twice("evidence", review.evidence)]
    if review.verdict == "pass":
        found += [
            Breach(
                ("assessments", name),
                f"the verdict is pass, and {name} is not found right",
                "write the verdict reject, or look again",
            )
            for name in Assessments.model_fields
            if not getattr(review.assessments, name)
        ]
    return found


def _twice(field: str, values: Sequence[str]) -> list[Breach]:
    return [
        Breach((field, index), f"{value!r} is named twice", "name it once")
        for index, value in enumerate(values)
        if value in values[:index]
    ]


def read_review(path: Path, *, shown: str | None = None) -> tuple[Review, Node]:
    """Read a review file and the document it was read from.

    Raises:
        BadInput: everything that is wrong with it, at once, with places.
    """
    root = read_document(path, layer="review", shown=shown)
    return checked_review(root), root


def checked_review(root: Node) -> Review:
    """Hold a document against the review's schema and rules.

    Raises:
        InvalidFixFile: everything that is wrong with it, at once, with places.
    """
    return checked_document(root, Review, review_breaches, called="the review")
