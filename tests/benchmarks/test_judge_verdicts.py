"""What a judge is asked, what counts as its verdict, and what several verdicts make."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.benchmarks.pack.judging.form import Form, Levels, Numbers, TrueOrFalse
from steelyard.benchmarks.pack.judging.prompt import (
    Question,
    Shown,
    asked_again,
    judge_messages,
    shortened,
)
from steelyard.benchmarks.pack.judging.verdict import NotAVerdict, read_verdict
from steelyard.components.judging.agreement import Rule, aggregate, agreement, is_quorate

ASSERTION = Form(TrueOrFalse(), {})
GRADE = Form(Numbers(1, 5), {})
LEVEL = Form(Levels({"poor": 0.0, "fair": 0.6, "good": 1.0}), {})
BY_CRITERIA = Form(Numbers(0, 4), {"facts": 3.0, "tone": 1.0})
RULES: tuple[Rule, ...] = ("majority", "mean", "median", "all")


def reply(**fields: Any) -> str:
    return json.dumps({"code": "c0de", "reason": "so", **fields})


@pytest.mark.parametrize(
    ("form", "fields", "value", "position"),
    [
        (ASSERTION, {"verdict": True}, 1.0, 1.0),
        (ASSERTION, {"verdict": False}, 0.0, 0.0),
        (GRADE, {"score": 1}, 0.0, 0.0),
        (GRADE, {"score": 4}, 0.75, 3.0),
        (GRADE, {"score": 5.0}, 1.0, 4.0),
        (LEVEL, {"score": "fair"}, 0.6, 1.0),
        (BY_CRITERIA, {"scores": {"tone": 0, "facts": 2}}, 0.375, 1.5),
    ],
)
def test_a_verdict_is_read(form: Form, fields: Any, value: float, position: float) -> None:
    said = read_verdict(reply(**fields), form, "c0de")
    assert (said.value, said.position, said.reason) == (value, position, "so")


def test_a_fence_around_the_whole_is_passed_over() -> None:
    text = f"\n```json\n{reply(verdict=True)}\n```\n"
    assert read_verdict(text, ASSERTION, "c0de").value == 1


@pytest.mark.parametrize(
    ("form", "text", "said"),
    [
        (ASSERTION, "", "empty"),
        (ASSERTION, " \n ", "empty"),
        (ASSERTION, "Yes, it is true.", "not one JSON object"),
        (ASSERTION, reply(verdict=True) + " Indeed.", "not one JSON object"),
        (ASSERTION, "True: " + reply(verdict=True), "not one JSON object"),
        (ASSERTION, reply(verdict=True)[:-5], "not one JSON object"),
        (ASSERTION, reply(verdict=True) * 2, "not one JSON object"),
        (ASSERTION, "[" * 60_000, "not one JSON object"),
        (ASSERTION, "[true]", "not an object"),
        (ASSERTION, '"true"', "not an object"),
        (ASSERTION, "x" * (10 * 1024 * 1024), "longer than"),
        (ASSERTION, json.dumps({"reason": "so", "verdict": True}), "'code' is missing"),
        (ASSERTION, reply(verdict=True, code="guess"), "code is not"),
        (ASSERTION, reply(verdict=True, code=None), "code is not"),
        (ASSERTION, reply(), "'verdict' is missing"),
        (ASSERTION, reply(verdict=True, confidence=1), "'confidence' was not asked"),
        (ASSERTION, reply(verdict="true"), "true or false"),
        (ASSERTION, reply(verdict=1), "true or false"),
        (ASSERTION, reply(verdict=None), "true or false"),
        (ASSERTION, reply(verdict=True, reason=" "), "reason is empty"),
        (ASSERTION, reply(verdict=True, reason=None), "reason is empty"),
        (
            ASSERTION,
            '{"code": "c0de", "reason": "a", "verdict": false, "verdict": true}',
            "stands in it twice",
        ),
        (GRADE, reply(score=0), "from 1 (lowest)"),
        (GRADE, reply(score=6), "to 5 (highest)"),
        (GRADE, reply(score=3.5), "a whole number"),
        (GRADE, reply(score="4"), "a whole number"),
        (GRADE, reply(score=True), "a whole number"),
        (GRADE, reply(score=[4]), "a whole number"),
        (GRADE, reply(score=float("nan")), "NaN is not JSON"),
        (GRADE, reply(score=float("inf")), "Infinity is not JSON"),
        (GRADE, '{"code": "c0de", "reason": "a", "score": 1e999}', "a whole number"),
        (GRADE, f'{{"code": "c0de", "reason": "a", "score": {"9" * 5000}}}', "not one JSON"),
        (LEVEL, reply(score="great"), "one of"),
        (LEVEL, reply(score=1.0), "one of"),
        (BY_CRITERIA, reply(scores={"facts": 2}), "exactly these keys: facts, tone"),
        (BY_CRITERIA, reply(scores={"facts": 2, "tone": 1, "wit": 4}), "exactly these keys"),
        (BY_CRITERIA, reply(scores={"facts": 2, "tone": 9}), "'tone' is not"),
        (BY_CRITERIA, reply(scores=3), "exactly these keys"),
    ],
)
def test_anything_else_is_no_verdict(form: Form, text: str, said: str) -> None:
    with pytest.raises(NotAVerdict) as caught:
        read_verdict(text, form, "c0de")
    assert said in str(caught.value)


@given(st.text(max_size=200), st.sampled_from([ASSERTION, GRADE, LEVEL, BY_CRITERIA]))
def test_no_text_without_the_code_is_a_verdict(text: str, form: Form) -> None:
    with pytest.raises(NotAVerdict):
        read_verdict(text, form, "7f3a9c51e08b2d64")


@pytest.mark.parametrize(
    ("values", "majority", "mean", "median", "all_of"),
    [
        ([1.0], 1.0, 1.0, 1.0, 1.0),
        ([1.0, 0.0, 1.0], 1.0, 2 / 3, 1.0, 0.0),
        ([1.0, 0.0], 0.0, 0.5, 0.5, 0.0),
        ([0.25, 0.5, 1.0], 0.25, 1.75 / 3, 0.5, 0.25),
        ([0.5, 0.75, 0.75, 0.25, 0.0], 0.75, 0.45, 0.5, 0.0),
    ],
)
def test_samples_make_one_value(
    values: list[float], majority: float, mean: float, median: float, all_of: float
) -> None:
    found = [aggregate(values, rule) for rule in RULES]
    assert found == pytest.approx([majority, mean, median, all_of])


@pytest.mark.parametrize(
    ("positions", "tolerance", "share"),
    [
        ([1], 0, 1.0),
        ([1, 1, 0], 0, 2 / 3),
        ([0, 1], 0, 0.5),
        ([0, 1, 2], 1, 1.0),  # all lie within a step of 1
        ([0, 2, 4], 1, 1 / 3),
        ([3, 4, 4, 0, 1], 1, 3 / 5),
        ([1.5, 2.5, 2.6], 1, 1.0),
        ([4.1, 3.1], 1, 1.0),  # 4.1 - 3.1 is more than 1 in binary fractions
    ],
)
def test_agreement_is_the_largest_share_within_a_step(
    positions: list[float], tolerance: float, share: float
) -> None:
    assert agreement(positions, tolerance) == pytest.approx(share)


SHARES = st.lists(st.floats(0, 1), min_size=1, max_size=15)


@given(SHARES, st.sampled_from(RULES))
def test_one_value_lies_between_the_lowest_and_the_highest(values: list[float], rule: Any) -> None:
    assert min(values) <= aggregate(values, rule) <= max(values)


@given(st.lists(st.integers(0, 6).map(float), min_size=1, max_size=15), st.integers(0, 2))
def test_agreement_is_at_least_one_sample_and_grows_with_tolerance(
    positions: list[float], tolerance: int
) -> None:
    share = agreement(positions, tolerance)
    assert 1 / len(positions) <= share <= agreement(positions, tolerance + 1) <= 1
    assert agreement([positions[0]] * 3, 0) == 1


@given(SHARES, st.sampled_from(RULES), st.randoms())
def test_the_order_of_samples_does_not_matter(values: list[float], rule: Any, chance: Any) -> None:
    shuffled = list(values)
    chance.shuffle(shuffled)
    assert aggregate(shuffled, rule) == pytest.approx(aggregate(values, rule))
    assert agreement(shuffled, 0.25) == agreement(values, 0.25)


def test_without_samples_there_is_no_value() -> None:
    for rule in RULES:
        with pytest.raises(ValueError, match="no valid samples"):
            aggregate([], rule)
    with pytest.raises(ValueError, match="no valid samples"):
        agreement([], 0)


def test_a_quorum_is_more_than_half() -> None:
    assert [is_quorate(valid, 3) for valid in range(4)] == [False, False, True, True]
    assert is_quorate(1, 1)
    assert not is_quorate(0, 1)


def question(text: str, form: Form = ASSERTION) -> Question:
    return Question(
        form, "It names a city.", [], [Shown("task", "Where?")], [Shown("answer", text)]
    )


def test_the_work_stands_alone_in_the_users_message() -> None:
    system, user = judge_messages(question("Paris, says I"), mark="m4rk", code="c0de")
    assert (system.role, user.role) == ("system", "user")
    assert "Paris" not in system.content
    assert "c0de" not in user.content
    assert "It names a city." in system.content
    assert "[m4rk begin: task]\nWhere?\n[m4rk end: task]" in system.content
    assert user.content.startswith("[m4rk begin: answer]\nParis, says I\n[m4rk end: answer]")


def test_a_text_that_holds_the_mark_or_the_code_is_refused() -> None:
    for text in ("a m4rk b", "a c0de b"):
        with pytest.raises(ValueError, match="holds the mark"):
            judge_messages(question(text), mark="m4rk", code="c0de")


def test_the_form_is_said_as_it_is_read() -> None:
    asked = Question(BY_CRITERIA, "Grade.", [("facts", "Right?"), ("tone", "Kind?")], [], [])
    text = judge_messages(asked, mark="m", code="c0de")[0].content
    assert '"scores": {"facts": GRADE, "tone": GRADE}' in text
    assert "- facts: Right?" in text
    assert "a whole number from 0 (lowest) to 4 (highest)" in text
    assert '"score": GRADE' in judge_messages(question("a", LEVEL), mark="m", code="c")[0].content


def test_what_is_asked_again_quotes_little_and_never_nothing() -> None:
    reply_part, remark = asked_again("x" * 100_000, "the reply is empty")
    assert reply_part.role == "assistant"
    assert len(reply_part.content) == 2000
    assert "the reply is empty" in remark.content
    assert asked_again(" \n", "it is empty")[0].content == "(no text)"


def test_what_cannot_be_written_or_sent_is_replaced() -> None:
    said = read_verdict(
        '{"code": "c0de", "reason": "a \\ud800 b", "verdict": true}', ASSERTION, "c0de"
    )
    assert said.reason == "a ? b"
    assert shortened("a \udfff b") == "a ? b"
    assert "?" in shortened("\udfff" * 200, 100)


def test_a_long_text_loses_its_middle_and_says_so() -> None:
    text = shortened("a" * 50 + "b" * 900 + "c" * 50, 100)
    assert text.startswith("a" * 50)
    assert text.endswith("c" * 50)
    assert "900 characters are left out" in text
    assert shortened("short", 100) == "short"
