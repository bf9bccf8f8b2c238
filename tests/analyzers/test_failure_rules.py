"""The rules of `failures` on a labelled table: what each class has, and what only looks like it."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.analyzers.failures import phrases
from steelyard.analyzers.failures.classes import CLASS_OF_CODE, WORDS, Diagnosis, FailureClass
from steelyard.analyzers.failures.course import course_of
from steelyard.analyzers.failures.rules import Case, diagnose
from steelyard.components.issues import SEVERITY, IssueCode, Severity
from steelyard.components.steps import Step
from tests.analyzers.labelled import CASES, Labelled, calls, says


def diagnosis(case: Labelled, name: str = "t") -> Diagnosis:
    return diagnose(Case(case.record(name), case.answer, course_of(case.steps)))


@pytest.mark.parametrize("name", CASES)
def test_a_labelled_attempt_gets_its_class(name: str) -> None:
    case = CASES[name]
    found = diagnosis(case)
    assert found.cause.failure is case.label, found
    assert found.cause.where
    assert len(found.cause.quote) <= phrases.QUOTE_CHARS


def test_every_class_has_an_example_and_a_hard_negative_every_inferred_one_more() -> None:
    labels = {case.label for case in CASES.values()}
    assert labels == set(FailureClass)
    inferred = {
        FailureClass.REFUSAL, FailureClass.LOOP, FailureClass.TRUNCATED, FailureClass.FORMAT,
        FailureClass.EMPTY_ANSWER, FailureClass.TOOL_MISUSE,
    }  # fmt: skip
    negatives = Counter(case.looks_like for case in CASES.values() if case.looks_like)
    no_cause = {FailureClass.WRONG_ANSWER, FailureClass.UNKNOWN}  # what is left
    assert set(negatives) == set(FailureClass) - no_cause
    assert all(negatives[one] >= 2 for one in inferred), negatives


def test_every_code_that_ends_an_attempt_has_a_class() -> None:
    assert set(CLASS_OF_CODE) == set(IssueCode)
    ending = {code for code, severity in SEVERITY.items() if severity is not Severity.WARNING}
    assert {code for code, failure in CLASS_OF_CODE.items() if failure is not None} == ending
    assert set(WORDS) == set(FailureClass)


def test_what_lies_behind_a_limit_is_a_sign_of_it() -> None:
    found = diagnosis(CASES["turns used up in a loop"])
    assert found.is_recorded
    (sign,) = found.signs
    assert sign.failure is FailureClass.LOOP
    assert sign.where == "step 9, call of ls, 9 times"
    assert sign.quote == 'ls {"path": "."}'


def test_a_round_of_several_actions_is_named_with_its_length() -> None:
    found = diagnosis(CASES["round of two"])
    assert found.cause.where == "step 10, call of read, 5 times, in rounds of 2"


def test_too_little_for_a_cause_is_a_sign() -> None:
    found = diagnosis(CASES["one error, then right"])
    assert [sign.failure for sign in found.signs] == [FailureClass.TOOL_MISUSE]
    assert found.signs[0].where == "step 1, result of search"


def test_where_it_was_seen_is_named() -> None:
    places = {name: diagnosis(CASES[name]).cause for name in CASES}
    assert places["429 to the end"].where == "issue 1 (run, model_unavailable)"
    assert places["refusal"].where == "answer"
    assert places["refusal"].quote.startswith("I'm sorry, but I can't help")
    assert places["max tokens"].where == "step 1, stop reason"
    assert places["unknown tool"].where == "step 1, result of serch"
    assert places["not JSON"].where == "scorer's reason exact"
    assert places["program died of its model call"].where == "step 1, model call"


def test_a_call_is_no_loop_while_its_result_changes() -> None:
    steps = [calls("status", {}, f"{n}") for n in range(50)]
    assert course_of(steps).repetition is None
    assert course_of([calls("status", {}, "0")] * 50).repetition is not None


def test_results_that_lie_loose_belong_to_the_calls_in_order() -> None:
    from dataclasses import replace

    from steelyard.components.steps import ToolResult

    step = replace(calls("a", {}, None), results=(ToolResult(None, "Error: no"),))
    assert course_of([step]).errors == 1


def test_quotes_move_no_cursor_and_are_one_line() -> None:
    hostile = "I must decline\x1b[2J\x1b]0;title\x07\r\n\u202egnihton\u2028end " + "x" * 500
    found = diagnosis(Labelled(FailureClass.WRONG_ANSWER, hostile))
    assert all(char.isprintable() for char in found.cause.quote)
    assert len(found.cause.quote) <= phrases.QUOTE_CHARS


@given(st.text(max_size=400))
def test_no_text_makes_the_phrases_raise(text: str) -> None:
    phrases.refusal_in(text)
    phrases.tool_fault_in(text)
    phrases.is_wrong_form(text, text)
    phrases.says_nothing_is_there(text)
    phrases.repeated_end(text * 3)
    quoted = phrases.quote(text)
    assert len(quoted) <= phrases.QUOTE_CHARS
    assert "\n" not in quoted
    quoted.encode()


@given(
    st.lists(
        st.builds(
            Step,
            st.sampled_from(["agent", "user", "system", "odd"]),
            st.text(max_size=20),
            st.dictionaries(
                st.sampled_from(["stop_reason", "fault", "fault_message", "given"]),
                st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=9)),
            ),
        )
    )
)
def test_no_steps_make_a_diagnosis_raise(steps: list[Step]) -> None:
    for case in (CASES["wrong"], CASES["program of another cause"], CASES["blanks"]):
        diagnose(Case(case.record("t"), case.answer, course_of(steps)))


def test_a_fault_that_this_version_does_not_know_is_no_cause() -> None:
    case = CASES["program of another cause"]
    odd = Labelled(case.label, None, case.issues, case.outcome, {}, [says("", fault="from_later")])
    assert diagnosis(odd).cause.failure is FailureClass.AGENT_FAILED
