"""The retry policy: by severity, by pattern, by what is left. No launch, no clock."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.components.artifacts import EvaluationMode
from steelyard.components.issue_patterns import IssuePatterns
from steelyard.components.issues import SEVERITY, Issue, IssueCode, Outcome, Phase, Severity
from steelyard.components.values import Usage
from steelyard.engine.retries import (
    ATTEMPT_BACKOFF,
    NEVER,
    RetryPolicy,
    can_rescore,
    has_allowance,
    wait_s,
)
from steelyard.engine.spec import ExecutionResult, SavedWork
from steelyard.models.allowance import Charge

FATAL = IssueCode.HARNESS_CRASHED
ERROR = IssueCode.AGENT_FAILED
WARNING = IssueCode.CLEANUP_FAILED


def ended(
    *codes: IssueCode,
    message: str = "it broke",
    phase: Phase = Phase.RUN,
    outcome: Outcome = Outcome.FAILED_FATAL,
    retry_after_s: float | None = None,
    work: SavedWork | None = None,
    mode: EvaluationMode | None = None,
) -> ExecutionResult:
    issues = tuple(Issue(SEVERITY[code], phase, code, message, 1, retry_after_s) for code in codes)
    return ExecutionResult(outcome, issues=issues, work=work, mode=mode)


def is_retried(
    result: ExecutionResult,
    *patterns: str,
    retries: int = 1,
    execution: int = 1,
    stops_request: bool = False,
) -> bool:
    policy = RetryPolicy(retries, IssuePatterns.of(patterns))
    may = policy.may_retry(result, execution, stops_request=stops_request)
    return may and policy.cause(result) is not None


@pytest.mark.parametrize("code", sorted(set(IssueCode) - NEVER))
def test_without_patterns_exactly_fatal_issues_are_retried(code: IssueCode) -> None:
    assert is_retried(ended(code)) is (SEVERITY[code] is Severity.FATAL)


@pytest.mark.parametrize("code", sorted(IssueCode))
def test_with_a_pattern_for_everything_only_warnings_and_configuration_are_left(
    code: IssueCode,
) -> None:
    expected = SEVERITY[code] is not Severity.WARNING and code not in NEVER
    assert is_retried(ended(code), ".") is expected


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [("connection.*reset", True), ("^agent_failed$", True), ("timed out", False)],
)
def test_an_error_is_retried_where_a_pattern_matches_its_message_or_code(
    pattern: str, expected: bool
) -> None:
    result = ended(ERROR, message="connection was reset", outcome=Outcome.FAILED_ERROR)
    assert is_retried(result, pattern) is expected


def test_a_warning_beside_an_error_does_not_lend_it_its_message() -> None:
    result = ended(WARNING, ERROR, outcome=Outcome.FAILED_ERROR)
    assert not is_retried(result, "cleanup")


def test_a_fatal_issue_counts_beside_an_error_that_no_pattern_matches() -> None:
    assert is_retried(ended(ERROR, FATAL), "no such thing")


@pytest.mark.parametrize(
    "result",
    [ended(FATAL, outcome=Outcome.CANCELLED), ended(), ended(FATAL, IssueCode.CONFIGURATION)],
    ids=["cancelled", "nothing went wrong", "a setting is wrong as well"],
)
def test_what_no_retry_can_mend_is_not_retried(result: ExecutionResult) -> None:
    assert not is_retried(result, ".")


def test_a_fault_of_the_request_is_not_retried() -> None:
    rejected = ended(IssueCode.MODEL_ENDPOINT_REJECTED)
    assert not is_retried(rejected, stops_request=True)
    assert is_retried(rejected), "later in the run it is a FATAL issue like others"


@given(st.integers(0, 5), st.integers(1, 8))
def test_an_attempt_has_as_many_executions_as_retries_and_one(retries: int, execution: int) -> None:
    assert is_retried(ended(FATAL), retries=retries, execution=execution) is (execution <= retries)


WORK = SavedWork("an answer")


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (ended(IssueCode.SCORER_CRASHED, phase=Phase.EVALUATE, work=WORK), True),
        (ended(IssueCode.SCORER_CRASHED, phase=Phase.EVALUATE), False),
        (ended(FATAL, phase=Phase.RUN, work=WORK), False),
        (
            ended(
                IssueCode.SCORER_CRASHED,
                phase=Phase.EVALUATE,
                work=WORK,
                mode=EvaluationMode.REUSE,
            ),
            False,
        ),
        (ended(WARNING, phase=Phase.CLEANUP, work=WORK), False),
    ],
    ids=["all is at hand", "something is gone", "the agent failed", "mode reuse", "a warning"],
)
def test_scoring_alone_is_repeated_where_only_it_failed_and_its_inputs_are_whole(
    result: ExecutionResult, expected: bool
) -> None:
    assert can_rescore(result) is expected


@pytest.mark.parametrize(
    ("usage", "usd", "tokens", "expected"),
    [
        (Usage(cost_usd=0.5), None, None, True),
        (Usage(cost_usd=0.5), 1.0, None, True),
        (Usage(cost_usd=1.0), 1.0, None, False),
        (Usage(input_tokens=60, output_tokens=40), None, 100, False),
        (Usage(input_tokens=60, output_tokens=39), None, 100, True),
        (Usage(cost_usd=None), 1.0, None, True),
    ],
)
def test_an_attempt_with_nothing_left_to_spend_is_not_run_again(
    usage: Usage, usd: float | None, tokens: int | None, expected: bool
) -> None:
    assert has_allowance(Charge.of(usage), usd, tokens) is expected


@given(st.integers(1, 100), st.text(max_size=20))
def test_a_wait_lies_between_nothing_and_its_doubling_bound(execution: int, seed: str) -> None:
    found = wait_s(ATTEMPT_BACKOFF, ended(FATAL), execution, seed=seed)
    assert 0 <= found <= min(60.0, 2.0 ** (execution - 1))


def test_the_same_seed_gives_the_same_wait_and_another_seed_another() -> None:
    first, again, other = (
        wait_s(ATTEMPT_BACKOFF, ended(FATAL), 4, seed=seed) for seed in ("r/t/1/4", "r/t/1/4", "q")
    )
    assert first == again != other


def test_waits_are_spread_over_the_whole_range() -> None:
    waits = [wait_s(ATTEMPT_BACKOFF, ended(FATAL), 5, seed=f"{n}") for n in range(400)]
    assert min(waits) < 1 < 15 < max(waits)
    assert sum(waits) / len(waits) == pytest.approx(8, rel=0.15)


def test_what_the_endpoint_asked_for_is_waited_in_full() -> None:
    asked = ended(IssueCode.MODEL_UNAVAILABLE, retry_after_s=20.0)
    assert 20 <= wait_s(ATTEMPT_BACKOFF, asked, 1, seed="x") <= 21


def test_no_endpoint_can_ask_for_more_than_five_minutes() -> None:
    asked = ended(IssueCode.MODEL_UNAVAILABLE, retry_after_s=1e9)
    assert wait_s(ATTEMPT_BACKOFF, asked, 1, seed="x") <= 301


def test_drawing_a_wait_leaves_the_global_generator_alone() -> None:
    state = random.getstate()
    wait_s(ATTEMPT_BACKOFF, ended(FATAL), 3, seed="x")
    assert random.getstate() == state
