"""The wall clock steps by hours while a run goes on: only what is a date shows it."""

from __future__ import annotations

import asyncio
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.components.clock import SystemClock
from steelyard.components.issues import Outcome
from steelyard.components.private_folders import PrivateFolder
from steelyard.engine.events import LaunchResult, RunOutcome
from steelyard.engine.launch import launch, prepare
from steelyard.models.backoff import Backoff, retry_after_s
from steelyard.results.layout import default_run_ids
from steelyard.results.reader import RunReader
from steelyard.results.reuse import PlanShape, choose_source
from tests.engine.launching import records, request, resolved
from tests.results.workload import FixedClock, a_record
from tests.results.written import write_run

HOURS = st.lists(st.integers(-30_000, 30_000), min_size=1, max_size=8)
NOON = datetime(2026, 8, 6, 12, tzinfo=UTC)


class SteppingClock(SystemClock):
    """The machine's steady time, and a wall clock that somebody sets at each look at it."""

    def __init__(self, hours: list[int]) -> None:
        self._hours = hours
        self._looks = 0

    def now(self) -> datetime:
        self._looks += 1
        return NOON + timedelta(hours=self._hours[self._looks % len(self._hours)])


def launched(tmp_path: Path, clock: SteppingClock, one: dict[str, Any], **top: Any) -> LaunchResult:
    prepared = prepare(resolved(tmp_path, one, **top), clock=clock)
    return asyncio.run(launch(prepared, backoff=Backoff(base_s=0.01, cap_s=0.02)))


@pytest.mark.integration
@pytest.mark.parametrize("hours", [[0, -5], [0, 7], [3, -8, 12, -1], [0, -20_000, 20_000]])
def test_a_run_is_the_same_whatever_the_wall_clock_does(tmp_path: Path, hours: list[int]) -> None:
    one = request(
        benchmark={"tasks": 4},
        harness={"sleep_s": 0.02, "fatal": ["t1"]},
        execution={"max_retries": 2, "attempts": {"k": 2}, "run_timeout_seconds": 20},
    )
    result = launched(tmp_path, SteppingClock(hours), one, runtime={"timeout_seconds": 60})
    (ended,) = result.requests
    assert ended.outcome is RunOutcome.FAILED
    assert ended.counts[Outcome.SCORED] == 6
    assert ended.counts[Outcome.FAILED_FATAL] == 2
    assert 0 < result.elapsed_s < 60
    for record in records(result):
        times = record.timing
        spans = (times.queued_s, times.backoff_s, times.setup_s, times.agent_s, times.evaluate_s)
        assert all(0 <= span < 60 for span in spans), times
        assert record.executions == (3 if record.task_id == "t1" else 1)
    events = list(RunReader(ended.run_dir).events())
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    again = launched(tmp_path, SteppingClock(hours[::-1]), {**one, "runtime": {"reuse": True}})
    assert again.requests[0].run_dir != ended.run_dir
    assert sum(record.reused_from is not None for record in records(again)) == 6


@given(HOURS)
def test_run_ids_of_a_clock_that_is_set_back_never_meet(hours: list[int]) -> None:
    taken: set[str] = set()
    for hour in hours:
        ids = default_run_ids(NOON + timedelta(hours=hour))
        taken.add(next(one for one in ids if one not in taken))
    assert len(taken) == len(hours)


@given(HOURS)
def test_what_a_server_asks_for_by_date_is_never_negative(hours: list[int]) -> None:
    asked = "Thu, 06 Aug 2026 12:00:10 GMT"
    for hour in hours:
        wait_s = retry_after_s(asked, NOON + timedelta(hours=hour))
        assert wait_s is not None
        assert wait_s >= 0


@settings(max_examples=20, deadline=None)
@given(st.permutations(range(4)))
def test_the_newest_run_is_the_one_that_began_last_whatever_its_date(order: list[int]) -> None:
    """Dates in any order: what counts is which run was there before which."""

    with tempfile.TemporaryDirectory(prefix="clock-") as text:
        folder = Path(text)
        for hour in order:
            clock = FixedClock(NOON + timedelta(hours=hour))
            last = write_run(folder, [a_record()], clock=clock).root
        choice = choose_source(last.parent, PlanShape("toy", 2, "avg", False))
        assert choice.taken == last.name


def test_a_live_process_keeps_its_folder_when_the_clock_leaps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    mine = PrivateFolder.make("leap-", SteppingClock([0]))
    other = PrivateFolder.make("leap-", SteppingClock([30_000]))
    assert mine.path.is_dir()
    mine.remove()
    other.remove()
