"""A launch of many requests stays readable: one line for all, and few for single ones."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from steelyard.cli.many_requests import MANY, NAMED, Endings, total_line, worth_a_line
from steelyard.cli.pace import Paces
from steelyard.cli.progress import make_renderer
from steelyard.cli.report import report_lines
from steelyard.cli.screen import Charset, RequestView, View, render
from steelyard.components.issues import Outcome
from steelyard.engine.events import LaunchResult, Progress, RequestResult, RunOutcome


def one(name: str, state: str = "running", **changes: Any) -> Progress:
    values: dict[str, Any] = {
        "name": name,
        "state": state,
        "planned": None if state in ("waiting", "loading") else 5,
        "running": 1 if state == "running" else 0,
        "outcomes": {Outcome.SCORED: 5} if state == "ended" else {},
        "phases": {},
        "issues": {},
        "reused": 0,
        "cost_usd": 0.0,
        "elapsed_s": 0.0 if state == "waiting" else 20.0,
    }
    return Progress(**(values | changes))


def sweep(ended: int = 500, going: int = 20, waiting: int = 1_480) -> tuple[Progress, ...]:
    states = ["ended"] * ended + ["running"] * going + ["waiting"] * waiting
    return tuple(one(f"c{n:04}", state) for n, state in enumerate(states))


def ended(name: str, outcome: RunOutcome, reason: str | None = None, *, begun: bool = True) -> Any:
    return RequestResult(name, outcome, reason, Path("r") if begun else None, 0, {}, None)


def plain(*calls: Any) -> list[str]:
    stream = io.StringIO()
    renderer = make_renderer("plain", stream)
    for call in calls:
        if isinstance(call, tuple):
            renderer.tick(call)
        else:
            renderer.request_ended(call)
    renderer.close()
    return stream.getvalue().splitlines()


def test_one_line_says_where_all_requests_stand() -> None:
    snapshot = sweep()
    total = Paces(clock=lambda: 100.0).overall(snapshot)
    line = total_line(snapshot, total)
    assert line == (
        "all: 500/2000 requests ended, 20 going on, 2500 attempts ended, 20 running, 20 s, "
        "about 60 s left"
    )


def test_a_snapshot_of_2000_requests_is_a_handful_of_lines() -> None:
    lines = plain(sweep())
    assert len(lines) == 1 + NAMED
    assert lines[0].startswith("all: 500/2000 requests ended")


def test_a_request_that_has_gone_on_for_a_moment_has_no_line_of_its_own() -> None:
    assert worth_a_line((one("a", elapsed_s=9.0), one("b", "waiting"), one("c", "ended"))) == []


def test_what_ends_well_among_many_is_not_said_one_by_one_and_what_fails_is() -> None:
    good = [ended(f"c{n}", RunOutcome.COMPLETED) for n in range(500)]
    lines = plain(sweep(), *good, ended("bad", RunOutcome.FAILED, "401"))
    assert len(lines) == 1 + NAMED + 1
    assert lines[-1] == "bad: failed: 401"


def test_how_many_never_began_is_said_once() -> None:
    never = [
        ended(f"c{n}", RunOutcome.CANCELLED, "SIGINT was received", begun=False)
        for n in range(1_480)
    ]
    lines = plain(sweep(), *never)
    assert lines[-1] == "1480 requests never began: cancelled: SIGINT was received"
    assert len(lines) == 1 + NAMED + 1


def test_few_requests_are_said_one_by_one_as_ever() -> None:
    few = tuple(one(f"r{n}") for n in range(MANY))
    lines = plain(few, ended("r0", RunOutcome.COMPLETED))
    assert len(lines) == MANY + 1
    assert not any(line.startswith("all:") for line in lines)


def test_the_launchs_time_goes_on_though_each_request_is_short() -> None:
    clock = [100.0]
    paces = Paces(clock=lambda: clock[0])
    paces.overall(sweep())
    clock[0] = 400.0
    later = sweep(ended=1_000, waiting=980)
    assert paces.overall(later).elapsed_s == 320.0


def test_what_has_ended_is_not_reckoned_again() -> None:
    paces = Paces()
    snapshot = sweep(3, 1, 2)
    first = paces.see(snapshot)
    again = paces.see((*snapshot[:3], one("c0003", elapsed_s=21.0), *snapshot[4:]))
    assert set(first) == {"c0000", "c0001", "c0002", "c0003"}
    assert all(again[name] is first[name] for name in ("c0000", "c0001", "c0002"))
    assert again["c0003"] is not first["c0003"]


def test_the_live_view_shows_those_that_go_on_and_counts_the_rest() -> None:
    snapshot = sweep()
    paces = Paces(clock=lambda: 100.0)
    standings, total = paces.see(snapshot), paces.overall(snapshot)
    begun = [each for each in snapshot if each.state != "waiting"]
    view = View(
        tuple(RequestView(each, standings[each.name]) for each in begun), total, unbegun=1_480
    )
    lines = render(view, 80, 24, Charset.ASCII)
    assert len(lines) <= 24
    assert lines[1].startswith("c0500 ")
    assert any("and 14" in line and "more requests" in line for line in lines)
    (whole,) = [line for line in lines if line.startswith("all")]
    assert "2500/?" in whole
    assert "ETA ~" in whole


def test_endings_of_few_are_all_said() -> None:
    endings = Endings()
    endings.see(sweep(1, 1, 1))
    assert endings.takes(ended("a", RunOutcome.COMPLETED))
    assert endings.takes(ended("b", RunOutcome.CANCELLED, "why", begun=False))
    assert endings.rest() == []


def test_the_last_report_of_many_names_those_that_did_not_complete() -> None:
    results = [ended(f"c{n:04}", RunOutcome.COMPLETED) for n in range(200)]
    results[7] = ended("c0007", RunOutcome.FAILED, "the endpoint said 401")
    launch = LaunchResult(RunOutcome.PARTIAL_FAILURE, 1, tuple(results), 1.0)
    lines = report_lines(launch)
    assert "c0007: failed" in lines
    assert "c0001: completed" not in lines
    assert "199 of 200 requests completed" in lines
