"""What a launch says while it runs and at its end: each thing once, in 80 columns."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from steelyard.cli.news import News, plug_in_frame
from steelyard.cli.progress import make_renderer
from steelyard.cli.report import report_lines, score_lines
from steelyard.components.issues import Outcome
from steelyard.config.redaction import Redactor
from steelyard.config.secrets import SecretStore
from steelyard.engine.budget import BudgetLimits
from steelyard.engine.events import LaunchResult, RequestResult, RunOutcome
from steelyard.engine.run_log import current_run

LOG = logging.getLogger("steelyard.test_execute")


# -- the final report --------------------------------------------------------------------------


def score(metric: str, estimator: str, value: float | None, **changes: Any) -> dict[str, Any]:
    """A score of `metrics/1`; `counted` of 18 attempts."""
    counted = changes.pop("counted", 18)
    interval = None if value is None else [max(0.0, value - 0.2), min(1.0, value + 0.2)]
    fields: dict[str, Any] = {
        "metric": metric,
        "estimator": estimator,
        "is_primary": metric == "correct",
        "is_headline": False,
        "official": value if counted == 18 else None,
        "estimate": {
            "value": value,
            "interval": interval,
            "interval_method": "t",
            "note": None if value is not None else "nothing was scored",
            "tasks": 6,
            "clusters": 6,
        },
        "bounds": None if value is None else [value, min(1.0, value + 0.1)],
        "coverage": {"counted": counted, "planned": 18},
    }
    return fields | changes


def metrics(scores: list[dict[str, Any]], k: int = 3, **reused: int) -> dict[str, Any]:
    return {
        "plan": {"k": k},
        "scores": scores,
        "usage": USAGE,
        "reused": {
            "attempts": sum(reused.values()),
            "runs": reused,
            "usage": dict.fromkeys(USAGE, 0),
        },
    }


USAGE = {
    "requests": 18,
    "input_tokens": 3_600,
    "output_tokens": 360,
    "cost_usd": 0.0123,
    "known_cost_usd": 0.0123,
}


def two_validators(counted: int = 18) -> list[dict[str, Any]]:
    return [
        score("correct", "avg@3", 0.5, is_headline=True, counted=counted),
        score("correct", "pass@3", 0.75, counted=counted),
        score("correct", "pass^3", 0.25, counted=counted),
        score("score", "avg@3", 0.55, counted=counted),
        score("validator.hidden-tests", "avg@3", 0.5, counted=counted),
        score("validator.hidden-tests", "pass@3", 0.5, counted=counted),
        score("validator.still-documented", "avg@3", 0.9, counted=counted),
    ]


def request(name: str = "first", **changes: Any) -> RequestResult:
    fields: dict[str, Any] = {
        "outcome": RunOutcome.COMPLETED,
        "reason": None,
        "run_dir": Path("results") / name / "20260801_000000",
        "planned": 18,
        "counts": {Outcome.SCORED: 18, Outcome.CANCELLED: 0},
        "metrics": metrics(two_validators()),
    }
    return RequestResult(name, **(fields | changes))


GOLDEN = """
first: completed
  metric                      est.    value  95% interval    tasks  coverage
> correct                     avg@3   0.500  [0.300, 0.700]  6      18/18
  correct                     pass@3  0.750  [0.550, 0.950]  6      18/18
  correct                     pass^3  0.250  [0.050, 0.450]  6      18/18
  score                       avg@3   0.550  [0.350, 0.750]  6      18/18
  validator.hidden-tests      avg@3   0.500  [0.300, 0.700]  6      18/18
  validator.still-documented  avg@3   0.900  [0.700, 1.000]  6      18/18
  attempts: 18 scored (of 18)
  usage: 18 model requests, 3,600 input and 360 output tokens; cost $0.0123
  results/first/20260801_000000

second: cancelled
  SIGINT was received
  metric                 est.    value  95% interval    coverage  worst, best
> correct                avg@3   0.500  [0.300, 0.700]  16/18     [0.500, 0.600]
  correct                pass@3  0.750  [0.550, 0.950]  16/18     [0.750, 0.850]
  correct                pass^3  0.250  [0.050, 0.450]  16/18     [0.250, 0.350]
  score                  avg@3   0.550  [0.350, 0.750]  16/18     [0.550, 0.650]
  validator.…dden-tests  avg@3   0.500  [0.300, 0.700]  16/18     [0.500, 0.600]
  validator.…documented  avg@3   0.900  [0.700, 1.000]  16/18     [0.900, 1.000]
  not official: over 6 tasks; 16/18 (89%) of the attempts count
  attempts: 11 scored, 2 cancelled, 5 not needed (task already passed) (of 18);
    of these 4 reused from 20260731_000000
  usage: 18 model requests, 3,600 input and 360 output tokens; cost $0.0123
  results/second/20260801_000000

third: failed
  no tasks
  nothing was scored
  attempts: none (of 0)
  results/third/20260801_000000

request  headline       value   95% interval    coverage
first    correct avg@3  0.500   [0.300, 0.700]  18/18 (100%)
second   correct avg@3  0.500*  [0.300, 0.700]  16/18 (89%)
third    failed         –       –               –
* not official: over what was scored

usage of all: 54 model requests, 10,800 input and 1,080 output tokens; cost
  $0.0369
cancelled in 12.3 s
continue: the same command with --reuse
""".removesuffix("\n").split("\n")


def three_requests() -> LaunchResult:
    second = request(
        "second",
        outcome=RunOutcome.CANCELLED,
        reason="SIGINT was received",
        counts={Outcome.SCORED: 11, Outcome.CANCELLED: 2, Outcome.SKIPPED_PASSED: 5},
        metrics=metrics(two_validators(16), **{"20260731_000000": 4}),
    )
    third = request(
        "third",
        outcome=RunOutcome.FAILED,
        reason="no tasks",
        planned=0,
        counts={},
        metrics=metrics([score("correct", "avg@3", None, counted=0)]),
    )
    return LaunchResult(RunOutcome.CANCELLED, 130, (request(), second, third), 12.3)


def test_the_report_is_the_golden_one_and_fits_80_columns() -> None:
    lines = report_lines(three_requests())
    assert lines == GOLDEN
    assert max(map(len, lines)) <= 80


def test_the_report_fits_a_narrow_terminal() -> None:
    for width in (40, 50, 60, 70):
        lines = report_lines(three_requests(), width=width)
        assert max(map(len, lines)) <= width, width
        text = "\n".join(lines)
        assert "0.500" in text
        assert "attempts: 11 scored" in text


def test_a_budget_is_shown_with_what_was_spent_of_it() -> None:
    result = LaunchResult(RunOutcome.COMPLETED, 0, (request(), request("second")), 12.3)
    budgets = {"second": BudgetLimits(usd=0.01)}
    lines = report_lines(result, budget=BudgetLimits(tokens=10_000), budgets=budgets)
    assert max(map(len, lines)) <= 80
    text = " ".join(" ".join(lines).split())
    assert "budget: $0.0123 of $0.01 spent; more than the limit" in text
    assert "budget: 7,920 of 10,000 tokens spent completed in 12.3 s" in text


def test_one_request_that_completed_needs_no_table_of_requests_and_nothing_to_continue() -> None:
    lines = report_lines(LaunchResult(RunOutcome.COMPLETED, 0, (request(),), 1.0))
    assert lines[-2:] == ["", "completed in 1.0 s"]
    assert not any("headline" in line for line in lines)


@pytest.mark.parametrize(
    "outcome",
    [RunOutcome.FAILED, RunOutcome.CANCELLED, RunOutcome.TIMED_OUT, RunOutcome.BUDGET_EXCEEDED],
)
def test_what_did_not_complete_can_be_continued(outcome: RunOutcome) -> None:
    lines = report_lines(LaunchResult(outcome, 1, (request(outcome=outcome),), 1.0))
    assert lines[-1] == "continue: the same command with --reuse"


REFUSED = {"severity": "FATAL", "code": "model_endpoint_rejected", "count": 1}
CRASHED = {"severity": "FATAL", "code": "scorer_crashed", "count": 1}


@pytest.mark.parametrize(
    "changes",
    [
        {"planned": 0, "counts": {}, "metrics": None},
        {"counts": {Outcome.FAILED_FATAL: 1, Outcome.NOT_STARTED: 17}},
        {"counts": {Outcome.FAILED_FATAL: 1, Outcome.CANCELLED: 17}},
        {
            "planned": 1,
            "counts": {Outcome.FAILED_FATAL: 1},
            "metrics": metrics([]) | {"issues": [REFUSED]},
        },
        {
            "planned": 1,
            "counts": {Outcome.FAILED_FATAL: 1},
            "metrics": metrics([]) | {"issues": [REFUSED | {"code": "task_invalid"}]},
        },
    ],
    ids=[
        "no tasks",
        "refused at once",
        "refused while others ran",
        "its only attempt refused",
        "its only task invalid",
    ],
)
def test_what_was_refused_before_any_success_has_nothing_to_continue(
    changes: dict[str, Any],
) -> None:
    refused = request(outcome=RunOutcome.FAILED, reason="refused", **changes)
    lines = report_lines(LaunchResult(RunOutcome.FAILED, 1, (refused,), 1.0))
    assert lines[-2:] == [
        "failed in 1.0 s",
        "continue: mend what is said above, then the same command",
    ]
    beside = request("second", outcome=RunOutcome.CANCELLED)
    lines = report_lines(LaunchResult(RunOutcome.CANCELLED, 130, (refused, beside), 1.0))
    assert lines[-1] == "continue: the same command with --reuse"


def test_a_refused_request_names_what_to_look_at() -> None:
    figures = metrics([]) | {"issues": [REFUSED]}
    counts = {Outcome.FAILED_FATAL: 1, Outcome.CANCELLED: 17}
    refused = request(outcome=RunOutcome.FAILED, reason="401", counts=counts, metrics=figures)
    lines = report_lines(LaunchResult(RunOutcome.FAILED, 1, (refused,), 1.0))
    assert lines[2] == "  401"
    assert lines[3].startswith("  look at the key (--model-api-key '${VARIABLE}'")
    assert max(map(len, lines)) <= 80


def test_a_scorer_that_always_crashed_leaves_answers_to_score_again() -> None:
    crashed = request(
        outcome=RunOutcome.FAILED,
        counts={Outcome.FAILED_FATAL: 18},
        metrics=metrics(two_validators()) | {"issues": [REFUSED, CRASHED]},
    )
    lines = report_lines(LaunchResult(RunOutcome.FAILED, 1, (crashed,), 1.0))
    assert lines[-1] == "continue: the same command with --reuse"


def test_attempts_that_were_scored_again_are_told_from_those_taken_whole() -> None:
    figures = metrics(two_validators(), **{"20260731_000000": 4})
    figures["reused"]["rescored"] = 3
    text = " ".join(
        line.strip()
        for line in report_lines(
            LaunchResult(RunOutcome.COMPLETED, 0, (request(metrics=figures),), 1.0)
        )
    )
    assert "of these 4 reused (3 scored again) from 20260731_000000" in text


def test_with_one_attempt_a_metric_has_one_row() -> None:
    once = [
        score("correct", "avg@1", 0.5, is_headline=True),
        score("correct", "pass@1", 0.5),
    ]
    assert len(score_lines(metrics(once, k=1))) == 2  # the head and one


def test_a_strangers_metric_name_does_not_paint_the_terminal() -> None:
    lines = score_lines(metrics([score("correct\x1b[31m", "avg@3", 0.5)]))
    assert "\x1b" not in "".join(lines)


# -- what is said while it runs ----------------------------------------------------------------


class Heard:
    """A launch's news, as a stream without a terminal gets them."""

    def __init__(self) -> None:
        self.stream = io.StringIO()
        secrets = SecretStore({})
        self.news = News(make_renderer("plain", self.stream), Redactor(secrets), "INFO")

    @property
    def lines(self) -> list[str]:
        return self.stream.getvalue().splitlines()


@pytest.fixture
def heard() -> Iterator[Heard]:
    found = Heard()
    level = LOG.level
    LOG.setLevel(logging.DEBUG)
    LOG.addHandler(found.news.handler)
    token = current_run.set("r")
    yield found
    current_run.reset(token)
    LOG.removeHandler(found.news.handler)
    LOG.setLevel(level)


def crash(number: int = 1) -> None:
    """What the engine logs of a crash: the exception, then the issue it became."""
    try:
        raise ValueError(f"boom in\nattempt {number}")
    except ValueError as error:
        LOG.exception("t%d attempt 1: run crashed", number)
        text = f"{type(error).__name__}: {error}"
    LOG.warning("t%d: FATAL harness_crashed: %s", number, text, extra={"cause": text})


def test_a_crash_is_one_line_that_names_the_users_file_and_holds_no_traceback(
    heard: Heard,
) -> None:
    crash()
    (line,) = heard.lines
    assert line.startswith("ERROR t1 attempt 1: run crashed: ValueError: boom in attempt 1 (")
    assert "test_execute.py:" in line
    assert line.endswith(", in crash)")


def test_of_a_long_cause_the_beginning_and_the_end_are_shown_its_remedy_apart(heard: Heard) -> None:
    text = "building x failed\n  STEP 1" + "\n    more" * 200 + "\n    make: no rule\n  mend it"
    LOG.warning("t0: FATAL environment_open_failed: %s", text, extra={"cause": text})
    (line,) = heard.lines
    assert "building x failed; STEP 1; more" in line
    assert line.endswith("; make: no rule; mend it (whole in run.log)")
    assert len(line) < 500


def test_what_is_left_of_a_reason_is_said_without_its_indent(heard: Heard) -> None:
    heard.news.notice("r", "stops: there is no task 'x'")
    reason = "there is no task 'x'\n  did you mean y?"
    heard.news.request_ended(request("r", outcome=RunOutcome.FAILED, reason=reason))
    assert heard.lines[-1] == "r: failed: did you mean y?"


def test_a_cause_is_said_three_times_and_then_counted(heard: Heard) -> None:
    for number in range(984):
        crash(number)
    assert len(heard.lines) == 3
    heard.news.request_ended(request("r"))
    assert heard.lines[3].startswith("r: … and 981 more like it: ERROR t0 attempt 1: run crashed")
    assert heard.lines[4] == "r: completed, 18 attempts"
    assert len(heard.lines) == 5


def test_issues_without_a_crash_are_counted_too_and_other_causes_are_still_said(
    heard: Heard,
) -> None:
    for number in range(5):
        LOG.warning("t%d: no answer", number, extra={"cause": f"429 after {number} s"})
    LOG.warning("t9: refused", extra={"cause": "refused"})
    heard.news.close()
    assert heard.lines[3:] == [
        "WARNING t9: refused",
        "r: … and 2 more like it: WARNING t0: no answer",
    ]


def test_an_issue_has_one_severity(heard: Heard) -> None:
    LOG.info("t1 attempt 1, run: ERROR agent_failed: exit 3", extra={"cause": "exit 3"})
    assert heard.lines == ["t1 attempt 1, run: ERROR agent_failed: exit 3"]


def test_very_many_causes_are_counted_together(heard: Heard) -> None:
    words = [chr(97 + a) + chr(97 + b) + "x" for a in range(26) for b in range(26)]
    for word in words:
        LOG.warning("%s", word, extra={"cause": word})
    heard.news.request_ended(request("r"))
    assert heard.lines[500] == f"r: … and {len(words) - 500} of other causes: see run.log"


def test_a_notice_and_its_log_line_are_one_piece_of_news(heard: Heard) -> None:
    heard.news.notice("r", "nothing to reuse, starting fresh")
    LOG.info("%s: %s", "r", "nothing to reuse, starting fresh")
    assert heard.lines == ["r: nothing to reuse, starting fresh"]


def test_why_a_request_stops_is_said_once(heard: Heard) -> None:
    LOG.info("%s stops: %s", "r", "401: no such key\n  set it")
    heard.news.request_ended(
        request("r", outcome=RunOutcome.FAILED, reason="401: no such key\n  set it")
    )
    assert heard.lines == ["INFO r stops: 401: no such key -   set it", "r: failed"]


def test_the_remedy_that_no_log_line_holds_is_said_and_nothing_else_again(heard: Heard) -> None:
    reason = "there is no task 'x'\n  did you mean y?"
    LOG.info("%s stops: %s", "r", reason.split("\n", 1)[0])
    heard.news.request_ended(request("r", outcome=RunOutcome.FAILED, reason=reason))
    assert len(heard.lines) == 2
    assert heard.lines[1].split() == ["r:", "failed:", "did", "you", "mean", "y?"]
    assert heard.news.has_said(reason)


def test_why_a_request_failed_is_said_where_nothing_said_it_before(heard: Heard) -> None:
    failed = request("r", outcome=RunOutcome.FAILED, reason="3 of 18 attempts ended FATAL")
    heard.news.request_ended(failed)
    assert heard.lines == ["r: failed: 3 of 18 attempts ended FATAL"]
    assert heard.news.has_said(failed.reason)


def test_a_silent_launch_still_says_why_a_request_failed() -> None:
    stream = io.StringIO()
    news = News(make_renderer("none", stream), Redactor(SecretStore({})), "INFO")
    news.notice("r", "401")
    news.request_ended(request("r", outcome=RunOutcome.FAILED, reason="401"))
    assert stream.getvalue() == "r: failed: 401\n"


def test_an_exception_that_passed_no_file_of_the_users_names_none() -> None:
    assert plug_in_frame(KeyError("x")) is None


def test_an_exception_of_a_library_names_the_users_line_that_called_it() -> None:
    with pytest.raises(ValueError, match="property name") as caught:
        json.loads("{")
    assert "test_execute.py:" in str(plug_in_frame(caught.value))
    assert "in test_an_exception_of_a_library" in str(plug_in_frame(caught.value))
