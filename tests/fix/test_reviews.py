"""Reviews: what they must name, who may write them, when they are stale."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.fix.reviews import Refusal, ReviewSubject, is_same_person, judge, reviewed, template
from steelyard.fix.schema.reading import InvalidFixFile
from steelyard.fix.schema.review import Review, checked_review
from steelyard.fix.verify.constraints import Constraint
from steelyard.fix.verify.constraints import judge as judge_constraint
from steelyard.fix.verify.measured import measured_of
from steelyard.fix.verify.qualification import Qualification, ReviewState, Shown, qualify
from tests.fix.documents import node

SUBJECT = ReviewSubject(
    run_id="run-1",
    candidate_id="cand-2",
    source_digest="tree-2",
    evaluation_digest="eval-1",
    inputs_digest="inputs-1",
    trial_ids=("trial-4", "trial-5", "trial-6"),
    author="Ada Lovelace",
    evidence=("sha256-of-log",),
)


def review(**changes: Any) -> Review:
    document = reviewed(SUBJECT, reviewer="Robin", verdict="pass", rationale="one call less")
    return checked_review(node({**document, **changes}))


def refusals(found: Review, subject: ReviewSubject = SUBJECT) -> list[Refusal]:
    judged = judge(found, subject)
    assert judged.is_valid == (not judged.objections)
    assert all(one.message and one.remedy and one.field for one in judged.objections)
    return [one.refusal for one in judged.objections]


def test_a_review_of_what_is_there_is_accepted() -> None:
    assert judge(review(), SUBJECT).is_accepted
    assert judge(review(evidence=["sha256-of-log"]), SUBJECT).is_accepted
    assert judge(review(trial_ids=["trial-6", "trial-4", "trial-5"]), SUBJECT).is_accepted


def test_a_rejection_counts_and_accepts_nothing() -> None:
    found = judge(review(verdict="reject"), SUBJECT)
    assert found.is_valid
    assert not found.is_accepted


def test_a_template_must_be_filled_in() -> None:
    with pytest.raises(InvalidFixFile) as caught:
        checked_review(node(template(SUBJECT)))
    said = str(caught.value)
    assert "reviewer" in said
    assert "rationale" in said
    assert "one of: pass, reject" in said
    assert set(template(SUBJECT)) == set(Review.model_fields)


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        ({"run_id": "run-2"}, Refusal.OTHER_RUN),
        ({"candidate_id": "cand-3"}, Refusal.OTHER_CANDIDATE),
        ({"source_digest": "tree-3"}, Refusal.STALE_SOURCE),
        ({"evaluation_digest": "eval-2"}, Refusal.STALE_EVALUATION),
        ({"inputs_digest": "inputs-2"}, Refusal.STALE_INPUTS),
        ({"trial_ids": ("trial-4", "trial-5", "trial-7")}, Refusal.STALE_TRIALS),
    ],
)
def test_a_review_is_stale_once_anything_it_names_has_changed(
    change: dict[str, Any], refusal: Refusal
) -> None:
    assert refusal in refusals(review(), replace(SUBJECT, **change))


def test_every_trial_that_counts_must_be_named_and_no_other() -> None:
    assert refusals(review(trial_ids=["trial-4", "trial-5"])) == [Refusal.STALE_TRIALS]
    more = review(trial_ids=["trial-4", "trial-5", "trial-6", "trial-9"])
    assert refusals(more) == [Refusal.STALE_TRIALS]
    assert "trial-9" in judge(more, SUBJECT).objections[0].message


def test_evidence_is_a_trial_or_kept_output_of_this_candidate() -> None:
    found = review(evidence=["trial-4", "https://elsewhere"])
    assert refusals(found) == [Refusal.UNKNOWN_EVIDENCE]
    assert judge(found, SUBJECT).objections[0].field == "evidence[1]"


@pytest.mark.parametrize(
    "name", ["Ada Lovelace", "ada lovelace", " Ada  Lovelace ", "ＡＤＡ Lovelace", "ADA\tLOVELACE"]
)
def test_nobody_reviews_their_own_candidate(name: str) -> None:
    assert refusals(review(reviewer=name)) == [Refusal.BY_THE_AUTHOR]
    assert refusals(review(reviewer=name, verdict="reject")) == [Refusal.BY_THE_AUTHOR]


def test_the_baseline_has_no_author() -> None:
    assert refusals(review(reviewer="Ada Lovelace"), replace(SUBJECT, author=None)) == []


def test_nothing_is_reviewed_before_it_is_measured() -> None:
    waiting = replace(SUBJECT, missing=("2 of 3 repetitions",))
    assert refusals(review(), waiting) == [Refusal.NOT_MEASURED]


def test_every_objection_comes_at_once() -> None:
    other = ReviewSubject("r", "c", "s", "e", "i", ("t",), "Robin")
    assert set(refusals(review(), other)) == set(Refusal) - {Refusal.NOT_MEASURED}


@settings(deadline=None)
@given(st.text(max_size=12))
def test_a_person_is_the_same_as_themselves(name: str) -> None:
    assert is_same_person(name, f" {name.upper().lower()} ") or name.upper().lower() != name


# -- what a candidate qualifies for ------------------------------------------------------------

KEPT = judge_constraint(Constraint("m", "lte", 5), measured_of("c", "m", [1, 2, 3]), None)
BROKEN = judge_constraint(Constraint("m", "lte", 1), measured_of("c", "m", [1, 2, 3]), None)


def qualified(**changes: Any) -> Qualification:
    shown = Shown("c1", False, 3, 3, (), (KEPT,), ReviewState.ACCEPTED)
    return qualify(replace(shown, **changes))


def test_a_verified_candidate_has_passed_everything() -> None:
    found = qualified()
    assert found.is_verified
    assert found.is_eligible
    assert found.lacking == ()


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"completed": 2}, "2 of 3 repetitions"),
        ({"failed_checks": ("regressions",)}, "checks failed: regressions"),
        ({"constraints": (KEPT, BROKEN)}, "constraints failed: m ≤ 1"),
        ({"review": ReviewState.MISSING}, "the review is missing"),
        ({"review": ReviewState.REJECTED}, "the review is rejected"),
        ({"review": ReviewState.STALE}, "the review is stale"),
        ({"is_invalidated": True}, "it is invalidated"),
    ],
)
def test_what_is_lacking_keeps_a_candidate_out_and_is_said(
    changes: dict[str, Any], word: str
) -> None:
    found = qualified(**changes)
    assert not found.is_verified
    assert not found.is_eligible
    assert any(word in one for one in found.lacking)


def test_an_exhausted_candidate_is_verified_still() -> None:
    found = qualified(is_exhausted=True)
    assert found.is_verified
    assert not found.is_eligible


def test_a_baseline_that_breaks_constraints_may_be_improved_all_the_same() -> None:
    found = qualified(is_baseline=True, constraints=(BROKEN,))
    assert found.is_eligible
    assert not found.is_verified
    assert not qualified(is_baseline=True, review=ReviewState.MISSING).is_eligible
    assert not qualified(is_baseline=True, failed_checks=("x",)).is_eligible
