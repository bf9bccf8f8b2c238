"""Progress: lines that can be grepped, a terminal that may go away."""

from __future__ import annotations

import io
import re
import time
from pathlib import Path
from typing import Any

import pytest

from steelyard.cli.many_requests import NAMED
from steelyard.cli.pace import Pace, Paces, duration
from steelyard.cli.preparing import said_when_slow
from steelyard.cli.progress import (
    LINES_A_SECOND,
    LINES_AT_ONCE,
    LineLimit,
    _Plain,
    describe,
    ended_line,
    make_renderer,
)
from steelyard.components.issues import Outcome
from steelyard.engine.events import Progress, RequestResult, RunOutcome, Underway


def progress(**changes: Any) -> Progress:
    values: dict[str, Any] = {
        "name": "r",
        "state": "running",
        "planned": 100,
        "running": 4,
        "outcomes": {Outcome.SCORED: 20},
        "phases": {"run": 4},
        "issues": {},
        "reused": 0,
        "cost_usd": 0.0,
        "elapsed_s": 10.0,
    }
    return Progress(**(values | changes))


def result(outcome: RunOutcome = RunOutcome.COMPLETED, reason: str | None = None) -> RequestResult:
    return RequestResult("r", outcome, reason, Path("results/r/1"), 100, {}, None)


def described(*snapshots: Progress) -> str:
    paces = Paces()
    for snapshot in snapshots:
        standings = paces.see([snapshot])
    return describe(snapshot, standings[snapshot.name])


def test_a_line_says_how_far_what_failed_what_it_cost_and_how_long_it_takes() -> None:
    line = described(
        progress(
            outcomes={Outcome.SCORED: 18, Outcome.FAILED_FATAL: 2},
            issues={"model_unavailable": 2},
            cost_usd=0.5,
        )
    )
    assert line == (
        "r: 20/100 ended, 4 running, 2 failed (model_unavailable 2), $0.5000, 10 s, about 40 s left"
    )


def test_before_the_tasks_are_loaded_it_says_so() -> None:
    assert described(progress(planned=None)) == "r: loading tasks, 10 s"


def test_what_was_reused_does_not_flatter_the_pace() -> None:
    assert "about 40 s left" in described(progress(outcomes={Outcome.SCORED: 60}, reused=50))
    assert "left" not in described(progress(outcomes={Outcome.SCORED: 60}, reused=60))


def test_a_request_of_which_nothing_runs_is_waiting() -> None:
    before, after = progress(), progress(elapsed_s=500.0, running=0)
    assert described(before, after).endswith("500 s, waiting")


def test_the_pace_is_that_of_late_and_not_that_since_the_start() -> None:
    pace = Pace()
    for second in range(1, 101):  # one a second, then one in ten
        pace.see(float(second), second, is_running=True)
    for step in range(1, 31):
        pace.see(100.0 + 10 * step, 100 + step, is_running=True)
    assert pace.left_s(10) == pytest.approx(100.0)


def test_time_in_which_nothing_ran_does_not_slow_the_pace() -> None:
    pace = Pace()
    pace.see(1000.0, 0, is_running=False)
    pace.see(1010.0, 10, is_running=True)
    pace.see(9000.0, 10, is_running=False)
    assert pace.left_s(10) == pytest.approx(10.0)


def test_slow_attempts_have_a_pace_though_few_end_in_the_window() -> None:
    pace = Pace()
    for number in range(1, 5):
        pace.see(300.0 * number, number, is_running=True)
    assert pace.left_s(2) == pytest.approx(600.0)


def test_a_stalled_request_slows_down() -> None:
    pace = Pace()
    pace.see(10.0, 10, is_running=True)
    before = pace.left_s(10)
    pace.see(100.0, 10, is_running=True)
    after = pace.left_s(10)
    assert before is not None
    assert after is not None
    assert after > before


def test_all_together_are_one_more_standing() -> None:
    paces = Paces()
    snapshot = (
        progress(name="a", elapsed_s=10.0),
        progress(name="b", outcomes={}, running=0, elapsed_s=10.0),
        progress(name="c", state="ended", running=0, outcomes={Outcome.SCORED: 30}, elapsed_s=5.0),
    )
    overall = paces.overall(snapshot)
    assert (overall.ended, overall.planned, overall.running) == (50, 300, 4)
    assert overall.left_s == pytest.approx(10 / 50 * 180)  # none of what ended early is to come


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "0s"), (59.4, "59s"), (185, "3m05s"), (9960, "2h46m"), (9e5, "10d")],
)
def test_durations_are_short(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize("mode", ["plain", "auto"])
def test_plain_lines_come_at_most_every_ten_seconds(mode: str) -> None:
    stream = io.StringIO()  # no terminal, so `auto` is plain too
    renderer = make_renderer(mode, stream)
    for tenth in range(300):
        renderer.tick((progress(elapsed_s=tenth / 10),))
    assert stream.getvalue().count("\n") == 3


def test_none_is_silent() -> None:
    stream = io.StringIO()
    renderer = make_renderer("none", stream)
    renderer.tick((progress(),))
    renderer.notice("r", "something")
    renderer.request_ended(result())
    renderer.close()
    assert stream.getvalue() == ""


def test_the_end_of_a_request_is_said_with_its_reason() -> None:
    assert ended_line(result()) == "r: completed, 100 attempts"
    assert ended_line(result(RunOutcome.FAILED, "401")) == "r: failed: 401"


class Gone(io.StringIO):
    """A stream whose reader has left."""

    def write(self, text: str) -> int:
        raise BrokenPipeError

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("mode", ["plain", "auto"])
def test_a_terminal_that_has_gone_away_ends_nothing(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    renderer = make_renderer(mode, Gone())
    renderer.tick((progress(),))
    renderer.notice(None, "x")
    renderer.request_ended(result())
    renderer.close()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_dumb_terminal_gets_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    stream = Terminal()
    renderer = make_renderer("auto", stream)
    renderer.tick((progress(),))
    renderer.close()
    assert stream.getvalue() == described(progress()) + "\n"


def test_a_budget_and_a_slow_attempt_are_named() -> None:
    slow = Underway("t 1", 2, "run", 100.0, 130.0)
    line = described(progress(budget_usd=2.0, cost_usd=0.25, slowest=(slow,)))
    assert "$0.2500 of $2.00, t 1 #2 in run for 100 s, 10 s" in line
    quick = Underway("t", 1, "run", 1.0, 2.0)
    assert "#1" not in described(progress(slowest=(quick,)))
    assert "1,234,567 tokens, $0.2500" in described(progress(tokens=1_234_567, cost_usd=0.25))
    assert "7 tokens, cost unknown, 10 s" in described(progress(tokens=7, cost_usd=None))
    assert "tokens" not in described(progress())
    assert "cost unknown of $2.00" in described(progress(budget_usd=2.0, cost_usd=None))


class Ticking:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_however_much_happens_plain_lines_are_few_and_what_is_left_out_is_counted() -> None:
    stream, clock = io.StringIO(), Ticking()
    plain = _Plain(stream, LineLimit(clock))
    for number in range(100_000):  # ten seconds at ten thousand a second
        clock.now_s = number / 10_000
        plain.notice("r", f"news {number}")
    plain.request_ended(result())
    plain.close()
    lines = stream.getvalue().splitlines()
    news = [line for line in lines if "news" in line]
    assert len(news) <= LINES_AT_ONCE + 10 * LINES_A_SECOND
    assert lines[-1] == "r: completed, 100 attempts"
    left_out = sum(int(line.split()[1]) for line in lines if "left out" in line)
    assert len(news) + left_out == 100_000


def test_a_thousand_requests_are_a_line_for_all_now_and_then_and_few_for_single_ones() -> None:
    stream, clock = io.StringIO(), Ticking()
    plain = _Plain(stream, LineLimit(clock))
    for half in range(200):
        clock.now_s = half / 2
        plain.tick(tuple(progress(name=f"r{n}", elapsed_s=half / 2) for n in range(1000)))
    lines = stream.getvalue().splitlines()
    said = [line.partition(":")[0] for line in lines]
    assert said.count("all") == 10
    assert len(lines) <= 10 * (1 + NAMED)


@pytest.mark.parametrize(
    ("is_live", "expected"), [(False, r"preparing: .*\n"), (True, r"preparing: .*\r\x1b\[K")]
)
def test_a_slow_preparation_is_said(is_live: bool, expected: str) -> None:
    stream = io.StringIO()
    with said_when_slow(stream, is_live=is_live, is_silent=False, after_s=0):
        deadline = time.monotonic() + 10
        while not stream.getvalue() and time.monotonic() < deadline:
            time.sleep(0.001)
    assert re.fullmatch(expected, stream.getvalue())


def test_a_quick_or_silent_preparation_is_not() -> None:
    stream = io.StringIO()
    with said_when_slow(stream, is_live=False, is_silent=False, after_s=60):
        pass
    with said_when_slow(stream, is_live=False, is_silent=True, after_s=0):
        time.sleep(0.01)
    assert stream.getvalue() == ""
