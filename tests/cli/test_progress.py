"""Progress: lines that can be grepped, a terminal that may go away."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from steelyard.cli.progress import describe, ended_line, eta_s, make_renderer
from steelyard.components.issues import Outcome
from steelyard.engine.events import Progress, RequestResult, RunOutcome


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


def test_a_line_says_how_far_what_failed_what_it_cost_and_how_long_it_takes() -> None:
    line = describe(
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
    assert describe(progress(planned=None)) == "r: loading tasks, 10 s"


def test_what_was_reused_does_not_flatter_the_pace() -> None:
    assert eta_s(progress(outcomes={Outcome.SCORED: 60}, reused=50)) == 40.0
    assert eta_s(progress(outcomes={Outcome.SCORED: 60}, reused=60)) is None


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
    assert stream.getvalue() == describe(progress()) + "\n"


def test_the_live_view_draws_each_request_and_leaves_the_terminal_clean(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    renderer = make_renderer("auto", stream)
    renderer.tick((progress(), progress(name="second [bold]")))
    renderer.request_ended(result(RunOutcome.FAILED, "[red]401[/red]"))
    renderer.close()
    drawn = stream.getvalue()
    assert "20/100 ended" in drawn
    assert "second [bold]" in drawn
    assert "[red]401[/red]" in drawn  # a reason is text, never markup
    assert drawn.rstrip().endswith("\x1b[?25h") or "\x1b[?25h" in drawn  # the cursor is back
