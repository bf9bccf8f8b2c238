"""What an `on_event` handler is told, and what it can do to the run: nothing."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter

import pytest

import steelyard as sy
from steelyard.components.issues import Phase
from steelyard.config.redaction import Redactor
from steelyard.config.secrets import SecretStore
from steelyard.engine.events import Progress
from steelyard.sdk import following
from steelyard.sdk.feed import MAX_WAITING, Feed
from tests.sdk.parts import Say, Sums


def test_events_tell_the_whole_life_of_every_attempt_in_order() -> None:
    events: list[sy.Event] = []
    result = sy.run(Sums, Say, k=2, on_event=events.append)
    kinds = Counter(event.kind for event in events)
    assert kinds["attempt_started"] == kinds["attempt_finished"] == 6
    assert kinds["run_finished"] == 1
    lives: dict[tuple[str, int], list[str]] = {}
    for event in events:
        if isinstance(event, sy.AttemptStarted | sy.PhaseStarted | sy.AttemptFinished):
            lives.setdefault((event.task_id, event.attempt), []).append(
                event.phase.value if isinstance(event, sy.PhaseStarted) else event.kind
            )
    for life in lives.values():
        assert life == ["attempt_started", "setup", "run", "evaluate", "attempt_finished"]
    last = events[-1]
    assert isinstance(last, sy.RunFinished)
    assert last.run_dir.name == result.run_id
    assert last.counts == result.counts
    assert last.outcome is sy.RunOutcome.COMPLETED


def test_an_attempt_s_end_says_how_it_ended() -> None:
    events: list[sy.Event] = []
    sy.run({"id": Sums, "tasks": 1}, Say(Say.Params(text="crash")), on_event=events.append)
    ended = next(event for event in events if isinstance(event, sy.AttemptFinished))
    assert ended.outcome is sy.Outcome.FAILED_FATAL
    assert [issue.code for issue in ended.issues] == [sy.IssueCode.HARNESS_CRASHED]
    assert ended.issues[0].phase is Phase.RUN
    assert (ended.executions, ended.is_reused) == (1, False)


def test_what_is_reused_is_told_as_such() -> None:
    sy.run(Sums, Say)
    events: list[sy.Event] = []
    sy.run(Sums, Say, reuse=True, on_event=events.append)
    ended = [event for event in events if isinstance(event, sy.AttemptFinished)]
    assert [event.is_reused for event in ended] == [True] * 3
    assert not any(isinstance(event, sy.AttemptStarted) for event in events)
    assert any(isinstance(event, sy.Notice) for event in events)


def test_a_handler_may_be_async() -> None:
    events: list[str] = []

    async def told(event: sy.Event) -> None:
        await asyncio.sleep(0.001)
        events.append(event.kind)

    sy.run(Sums, Say, on_event=told)
    assert events[-1] == "run_finished"
    assert events.count("attempt_finished") == 3


def test_a_handler_that_raises_does_the_run_no_harm(caplog: pytest.LogCaptureFixture) -> None:
    calls: list[str] = []

    def broken(event: sy.Event) -> None:
        calls.append(event.kind)
        raise LookupError("the handler's own fault")

    with caplog.at_level(logging.WARNING):
        result = sy.run(Sums, Say, on_event=broken)
    assert result.is_complete
    assert calls.count("attempt_finished") == 3
    said = [r for r in caplog.records if "on_event failed" in r.getMessage()]
    assert len(said) == 1
    assert "the handler's own fault" in said[0].getMessage()


def test_a_handler_may_stop_the_launch_by_raising() -> None:
    class EnoughError(Exception):
        pass

    def stop(event: sy.Event) -> None:
        if event.kind == "attempt_finished":
            raise EnoughError("that will do")

    with pytest.raises(EnoughError, match="that will do"):
        sy.run(
            Sums(Sums.Params(tasks=500)), Say(Say.Params(sleep_s=0.05)),
            task_concurrency=1, run_id="cut", on_event=stop, on_event_error="raise",
        )  # fmt: skip
    found = sy.load_run("results/none_Sums_Say/cut")
    assert found.outcome is sy.RunOutcome.CANCELLED
    assert 1 <= found.counts[sy.Outcome.SCORED] < 500


def test_a_handler_that_never_returns_is_given_up_after_the_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(following, "LAST_EVENTS_S", 0.05)

    async def hangs(event: sy.Event) -> None:
        await asyncio.Event().wait()

    with caplog.at_level(logging.WARNING):
        assert sy.run(Sums, Say, on_event=hangs).is_complete
    assert any("on_event did not return" in r.getMessage() for r in caplog.records)


def test_events_are_plain_json_with_a_schema() -> None:
    events: list[sy.Event] = []
    sy.run(Sums, Say, on_event=events.append)
    for event in events:
        document = json.loads(json.dumps(event.as_json()))
        assert document["schema"] == "sdk-event/1"
        assert document["kind"] == event.kind
    ended = next(e.as_json() for e in events if isinstance(e, sy.AttemptFinished))
    assert ended["outcome"] == "scored"
    assert ended["metrics"] == {"right": True, "chars": 1.0}
    assert ended["usage"]["requests"] == 0


def test_a_slow_handler_loses_events_and_is_told_how_many() -> None:
    got: list[sy.Event] = []

    async def work() -> None:
        feed = Feed(got.append, Redactor(SecretStore({})), is_strict=False)
        for n in range(MAX_WAITING + 25):
            feed.attempt_started("r", f"t{n}", 1, 1)
        feed.tick((Progress("r", "running", 1, 0, {}, {}, {}, 0, 0.0, 1.0),))
        feed.close()
        await feed.deliver()

    asyncio.run(work())
    assert len(got) == MAX_WAITING + 1
    assert got[-1] == sy.EventsLost(26)


def test_nobody_listening_costs_the_engine_nothing() -> None:
    """The state of a run holds no listener: one comparison is all that an attempt pays."""
    from steelyard.engine.events import AttemptObserver, Unobserved
    from steelyard.engine.run_state import RunState

    state = RunState.__new__(RunState)
    state.tell(Unobserved())
    assert state.told is None
    listener = AttemptObserver()
    state.tell(listener)
    assert state.told is listener


def test_progress_is_shown_only_when_asked(capfd: pytest.CaptureFixture[str]) -> None:
    sy.run(Sums, Say, settings={"runtime": {"progress": "plain"}})
    out, err = capfd.readouterr()
    assert (out, err) == ("", "")
    events: list[sy.Event] = []
    sy.run(Sums, Say, progress="plain", on_event=events.append)
    out, err = capfd.readouterr()
    assert out == ""
    assert "none_Sums_Say" in err
    assert any(isinstance(event, sy.RunFinished) for event in events)


def test_every_recorded_attempt_is_told_once_however_it_ends() -> None:
    events: list[sy.Event] = []

    async def cut_short() -> None:
        harness = Say(Say.Params(text="1", sleep_s=0.05))
        benchmark = Sums(Sums.Params(tasks=40))
        launch = sy.arun(benchmark, harness, task_concurrency=4, run_id="x", on_event=events.append)
        await asyncio.wait_for(launch, 0.4)

    with pytest.raises(TimeoutError):
        asyncio.run(cut_short())
    run = sy.load_run("results/none_Sums_Say/x")
    told = Counter(
        (event.task_id, event.attempt, event.outcome)
        for event in events
        if isinstance(event, sy.AttemptFinished)
    )
    kept = Counter((record.task_id, record.attempt, record.outcome) for record in run.attempts())
    assert told == kept
    assert set(told.values()) == {1}
    assert sy.Outcome.CANCELLED in {outcome for _, _, outcome in told}
