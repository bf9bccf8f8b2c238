"""Launches of many requests: opened when it is their turn, and closed once they have ended."""

from __future__ import annotations

import asyncio
import itertools
import json
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steelyard.components.issues import Outcome
from steelyard.engine.control import Controls
from steelyard.engine.events import LaunchResult, Progress, RequestResult, RunOutcome, Unobserved
from steelyard.engine.launch import launch, prepare
from steelyard.results.lines import decode
from steelyard.results.lock import is_alive
from steelyard.testing.endpoint import MockEndpoint
from tests.engine.launching import COMPONENTS, records, request, resolved, run_all

MANY = 70
"""More than are all opened before anything starts."""


def many(count: int = MANY, *, tasks: int = 1, **more: Any) -> list[dict[str, Any]]:
    return [request(f"r{n:03}", benchmark={"tasks": tasks}, **more) for n in range(count)]


def folder(result: RequestResult) -> Path:
    assert result.run_dir is not None
    return result.run_dir


def last_word(result: RequestResult) -> dict[str, Any]:
    lines = (folder(result) / "events.jsonl").read_bytes().split(b"\n")[:-1]
    last = decode(lines[-1])
    assert last is not None
    assert last["kind"] == "finished"
    return last


def lived(result: RequestResult) -> tuple[str, str]:
    """When a run's folder was made, and when its last word was written."""
    made = json.loads((folder(result) / "run.json").read_bytes())["created_at"]
    return made, last_word(result)["at"]


def most_at_once(result: LaunchResult) -> int:
    ends = [(at, step) for one in result.requests for at, step in zip(lived(one), (1, -1))]  # noqa: B905 — two of each
    # Within one millisecond an end comes before a beginning.
    return max(itertools.accumulate(step for _, step in sorted(ends)))


class Snapshots(Unobserved):
    """Keeps what is told; acts once where asked."""

    def __init__(self, act: Callable[[tuple[Progress, ...]], bool] = lambda _: True) -> None:
        self.seen: list[tuple[Progress, ...]] = []
        self.ended: list[RequestResult] = []
        self._act = act
        self._has_acted = False

    def tick(self, progress: tuple[Progress, ...]) -> None:
        self.seen.append(progress)

    def request_ended(self, result: RequestResult) -> None:
        self.ended.append(result)


def test_every_request_of_many_ends_and_each_is_told_of_once(tmp_path: Path) -> None:
    seen = Snapshots()
    result = run_all(tmp_path, *many(tasks=2), observer=seen)
    assert result.outcome is RunOutcome.COMPLETED
    assert [one.name for one in result.requests] == [f"r{n:03}" for n in range(MANY)]
    assert all(one.counts[Outcome.SCORED] == 2 for one in result.requests)
    assert sorted(one.name for one in seen.ended) == [one.name for one in result.requests]
    assert all(len(records(result, n)) == 2 for n in range(MANY))


def test_what_has_ended_is_not_held_until_the_launch_ends(tmp_path: Path) -> None:
    alive: dict[str, bool] = {}

    class Looks(Unobserved):
        def request_ended(self, result: RequestResult) -> None:
            alive[result.name] = is_alive(folder(result) / "lock")

    run_all(tmp_path, *many(3), observer=Looks())
    assert not any(alive.values())
    (tmp_path / "late").mkdir()
    run_all(tmp_path / "late", *many(), observer=Looks())
    assert len(alive) == MANY
    assert not any(alive.values())


@pytest.mark.parametrize("bound", [1, 3])
def test_no_more_requests_go_on_at_once_than_the_launch_allows(tmp_path: Path, bound: int) -> None:
    requests = many(12, tasks=2, harness={"sleep_s": 0.01})
    result = run_all(tmp_path, *requests, runtime={"max_concurrent_requests": bound})
    assert result.outcome is RunOutcome.COMPLETED
    began = [lived(one)[0] for one in result.requests]
    if bound == 1:
        assert began == sorted(began), "they begin in declaration order"
    assert most_at_once(result) <= bound
    if bound > 1:
        assert most_at_once(result) > 1, "the bound is used"


def test_few_of_many_requests_are_open_at_once(tmp_path: Path) -> None:
    result = run_all(tmp_path, *many(150, tasks=3), task_concurrency=4)
    assert most_at_once(result) <= 4 + 32


def test_a_full_provider_of_early_requests_starves_no_later_one(tmp_path: Path) -> None:
    """Each of the early ones takes its provider's only slot; the last needs another provider."""
    slow = many(100, harness={"sleep_s": 0.02})
    other = request("other", benchmark={"tasks": 1}, environment={"id": f"{COMPONENTS}:Elsewhere"})
    seen = Snapshots()
    run_all(tmp_path, *slow, other, observer=seen, runtime={"provider_limits": {"host_process": 1}})
    place = [one.name for one in seen.ended].index("other")
    assert place < 20, f"it ended after {place} of those that wait for their provider"


def test_a_run_id_that_is_taken_fails_its_request_and_no_other(tmp_path: Path) -> None:
    requests = many()
    for number, one in enumerate(requests):
        one["output"] = {"run_id": f"id{number}"}
    (tmp_path / "results/r065/id65").mkdir(parents=True)
    prepared = prepare(resolved(tmp_path, *requests[:65], *requests[66:]))
    del prepared  # the folder is seen when planning, so it is taken only afterwards
    (tmp_path / "results/r065/id65").rmdir()
    prepared = prepare(resolved(tmp_path, *requests))
    (tmp_path / "results/r065/id65").mkdir()
    result = asyncio.run(launch(prepared))
    failed = [one for one in result.requests if one.outcome is not RunOutcome.COMPLETED]
    (one,) = failed
    assert (one.name, one.outcome, one.run_dir, one.planned) == (
        "r065",
        RunOutcome.FAILED,
        None,
        0,
    )
    assert one.reason is not None
    assert "id65" in one.reason
    assert sum(one.counts.values()) == 0
    assert result.outcome is RunOutcome.PARTIAL_FAILURE


# Stops


def stopped(tmp_path: Path, act: Callable[[Controls], Any], **top: Any) -> LaunchResult:
    """Launch many slow requests, and act once two of them have ended."""
    prepared = prepare(resolved(tmp_path, *many(100, harness={"sleep_s": 0.05}), **top))
    controls = Controls()

    class Acts(Unobserved):
        ended = 0

        def request_ended(self, result: RequestResult) -> None:
            self.ended += 1
            if self.ended == 2:
                act(controls)

    return asyncio.run(launch(prepared, observer=Acts(), controls=controls))


@pytest.mark.parametrize("verb", ["cancel", "drain"])
def test_requests_that_never_begin_end_as_the_launch_does_without_a_folder(
    tmp_path: Path, verb: str
) -> None:
    result = stopped(tmp_path, lambda controls: getattr(controls, verb)(), task_concurrency=2)
    assert result.outcome is RunOutcome.CANCELLED
    never = [one for one in result.requests if one.run_dir is None]
    assert len(never) > 50
    for one in never:
        assert (one.outcome, one.planned, sum(one.counts.values())) == (
            RunOutcome.CANCELLED,
            0,
            0,
        )
        assert one.reason
        assert not (tmp_path / "results" / one.name).exists()
    for one in result.requests:
        if one.run_dir is not None:
            assert sum(one.counts.values()) == one.planned
            assert last_word(one)["outcome"] == one.outcome.value


def test_a_deadline_ends_what_has_not_begun_as_timed_out(tmp_path: Path) -> None:
    requests = many(100, harness={"sleep_s": 0.3})
    result = run_all(tmp_path, *requests, task_concurrency=1, runtime={"timeout_seconds": 0.5})
    assert result.outcome is RunOutcome.TIMED_OUT
    assert result.exit_status == 5
    never = [one for one in result.requests if one.run_dir is None]
    assert len(never) > 50
    assert {one.outcome for one in never} == {RunOutcome.TIMED_OUT}


def test_a_launch_of_many_that_is_cancelled_before_it_begins_makes_no_folder(
    tmp_path: Path,
) -> None:
    prepared = prepare(resolved(tmp_path, *many()))

    async def go() -> LaunchResult:
        task = asyncio.get_running_loop().create_task(launch(prepared))
        await asyncio.sleep(0)
        task.cancel()
        try:
            return await task
        except asyncio.CancelledError:
            raise AssertionError("as asked") from None

    with pytest.raises(AssertionError, match="as asked"):
        asyncio.run(go())
    assert not (tmp_path / "results").exists()


def test_what_is_paused_opens_nothing_more(tmp_path: Path) -> None:
    prepared = prepare(resolved(tmp_path, *many(100, harness={"sleep_s": 0.02})))
    controls = Controls()
    waiting: list[int] = []

    class Pauses(Unobserved):
        ended = 0

        def request_ended(self, result: RequestResult) -> None:
            self.ended += 1
            if self.ended == 1:
                controls.pause()
                asyncio.get_running_loop().call_later(0.5, look)

    def look() -> None:
        waiting.append(sum(o.progress.state == "waiting" for o in controls.status().requests))
        controls.resume()

    result = asyncio.run(launch(prepared, observer=Pauses(), controls=controls))
    assert result.outcome is RunOutcome.COMPLETED
    assert waiting[0] > 20


# What is told


def test_what_has_not_begun_or_has_ended_is_told_in_the_same_object_again(tmp_path: Path) -> None:
    seen = Snapshots()
    requests = many(100, harness={"sleep_s": 0.1})
    run_all(tmp_path, *requests, observer=seen, task_concurrency=4)
    assert len(seen.seen) > 3
    for before, after in itertools.pairwise(seen.seen):
        for earlier, later in zip(before, after, strict=True):
            if (earlier.state, later.state) in (("waiting", "waiting"), ("ended", "ended")):
                assert earlier is later
    states = {progress.state for progress in seen.seen[1]}
    assert {"waiting", "running"} <= states


def test_controls_say_of_each_request_where_it_stands(tmp_path: Path) -> None:
    said: list[list[tuple[str, str | None]]] = []
    roots: list[int] = []

    def act(controls: Controls) -> None:
        status = controls.status()
        said.append([(one.progress.state, one.waits_for) for one in status.requests])
        assert status.as_json()["requests"][-1]["state"] == "waiting"
        roots.append(len(controls.roots))

    result = stopped(tmp_path, act, task_concurrency=2)
    assert result.outcome is RunOutcome.COMPLETED
    (states,) = said
    assert len(states) == 100
    assert ("waiting", "its turn to begin") in states
    assert ("ended", None) in states
    assert 2 <= roots[0] < 60


# Bounds


def test_what_a_request_ran_with_is_let_go_of_when_it_has_ended(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    harness = {"id": f"{COMPONENTS}:Closing", "ledger": str(ledger), "sleep_s": 0.05}
    run_all(tmp_path, *many(3, harness=harness), runtime={"max_concurrent_requests": 1})
    assert ledger.read_text().splitlines() == ["t0 1", "closed"] * 3


def test_no_more_attempts_of_a_request_run_at_once_than_it_allows(tmp_path: Path) -> None:
    ledger = tmp_path / "at-once"
    harness = {"id": f"{COMPONENTS}:Counting", "ledger": str(ledger), "sleep_s": 0.01}
    run_all(
        tmp_path,
        request(benchmark={"tasks": 8}, harness=harness, execution={"max_concurrent_attempts": 1}),
    )
    assert [int(line) for line in ledger.read_text().split()] == [1] * 8
    ledger.unlink()
    run_all(
        tmp_path,
        request(benchmark={"tasks": 8}, harness=harness, execution={"max_concurrent_attempts": 3}),
    )
    assert max(int(line) for line in ledger.read_text().split()) == 3


@pytest.mark.integration
def test_when_the_budget_is_spent_the_ledgers_of_all_requests_close(tmp_path: Path) -> None:
    with MockEndpoint("--text", "right") as endpoint:
        requests = many(
            tasks=2,
            harness={"id": "chat"},
            model={"id": "priced", "base_url": endpoint.url},
        )
        prices = {"priced": {"input_per_mtok": 0, "output_per_mtok": 1_000_000}}
        result = run_all(
            tmp_path,
            *requests,
            prices=prices,
            budget={"usd": 20, "reserve_usd": 1},
            task_concurrency=4,
        )
    assert result.outcome is RunOutcome.BUDGET_EXCEEDED
    assert all(one.planned == 2 for one in result.requests)
    assert all(sum(one.counts.values()) == 2 for one in result.requests)
    scored = sum(one.counts[Outcome.SCORED] for one in result.requests)
    skipped = sum(one.counts[Outcome.SKIPPED_BUDGET] for one in result.requests)
    assert 0 < scored <= 20
    assert scored + skipped == 2 * MANY


def test_work_of_an_earlier_launch_is_reused_by_requests_that_open_late(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    requests = many(harness={"ledger": str(ledger)})
    run_all(tmp_path, *requests)
    first = ledger.read_text()
    result = run_all(tmp_path, *[one | {"runtime": {"reuse": True}} for one in requests])
    assert ledger.read_text() == first, "no agent ran again"
    assert result.outcome is RunOutcome.COMPLETED
    assert all(one.counts[Outcome.SCORED] == 1 for one in result.requests)


CHILD = """
import asyncio, json, os, resource, sys
from pathlib import Path
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
from tests.engine.test_many_requests import many
from tests.engine.launching import run_all
from steelyard.engine.events import Unobserved

class Counts(Unobserved):
    most = 0
    def request_ended(self, result):
        self.most = max(self.most, len(os.listdir("/proc/self/fd")))

counts = Counts()
result = run_all(Path(sys.argv[1]), *many(300), observer=counts, task_concurrency=8)
print(json.dumps([result.outcome, len(result.requests), counts.most]))
"""


@pytest.mark.integration
def test_300_requests_run_where_a_process_may_hold_256_descriptors(tmp_path: Path) -> None:
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[1] >= 256
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr
    outcome, count, most = json.loads(done.stdout.splitlines()[-1])
    assert (outcome, count) == ("completed", 300)
    assert most < 200
