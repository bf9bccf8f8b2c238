"""The journal: what is written, in which order, and what happens when the disk fails."""

from __future__ import annotations

import asyncio
import errno
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from steelyard.results.files import NO_FAULTS, Faults, NoFaults, StorageFailed, WritePoint
from steelyard.results.journal import EventKind, Journal, Syncer
from steelyard.results.lock import is_alive
from steelyard.results.reader import RunReader, RunState
from steelyard.results.run_folder import RunFolder
from steelyard.testing.faults import FailAt
from tests.results.workload import FixedClock, a_record, a_run


class Tape(NoFaults):
    """Remembers every point, and in which thread it was passed."""

    def __init__(self) -> None:
        self.points: list[tuple[WritePoint, bool]] = []

    def after(self, point: WritePoint) -> None:
        self.points.append((point, threading.current_thread() is threading.main_thread()))


def with_journal(
    tmp_path: Path,
    act: Callable[[Journal, RunFolder], object],
    faults: Faults = NO_FAULTS,
    redact: Callable[[bytes], bytes] | None = None,
) -> Path:
    """Run `act` (plain or async) on a new journal; give the run directory."""

    async def main() -> Path:
        clock = FixedClock()
        folder = a_run(tmp_path, clock=clock)
        syncer = Syncer()
        journal = Journal(folder, clock=clock, syncer=syncer, faults=faults, redact=redact)
        try:
            result = act(journal, folder)
            if asyncio.iscoroutine(result):
                await result
        finally:
            journal.close()
            await syncer.close()
        return folder.root

    return asyncio.run(main())


def test_events_are_numbered_dated_and_say_their_schema_once(tmp_path: Path) -> None:
    def act(journal: Journal, _folder: RunFolder) -> None:
        journal.event("planned", tasks=1, k=1)
        journal.event(EventKind.WARNING, message="m")
        journal.flush()

    events = list(RunReader(with_journal(tmp_path, act)).events())
    assert [event["seq"] for event in events] == [1, 2]
    assert events[0]["schema"] == "event/1"
    assert "schema" not in events[1]
    assert events[1]["at"].startswith("2026-08-06T12:00:00.")
    assert events[1]["at"].endswith("Z")


def test_an_unknown_kind_of_event_is_refused(tmp_path: Path) -> None:
    def act(journal: Journal, _folder: RunFolder) -> None:
        with pytest.raises(ValueError, match="guess"):
            journal.event("guess")

    with_journal(tmp_path, act)


def test_nothing_is_written_before_a_flush(tmp_path: Path) -> None:
    def act(journal: Journal, folder: RunFolder) -> None:
        journal.event("planned", tasks=1, k=1)
        journal.record(a_record())
        assert folder.files.events.stat().st_size == 0
        assert folder.files.attempts.stat().st_size == 0
        journal.flush()
        assert folder.files.events.stat().st_size > 0
        assert folder.files.attempts.stat().st_size > 0

    with_journal(tmp_path, act)


def test_records_are_written_and_synced_before_events(tmp_path: Path) -> None:
    tape = Tape()

    async def act(journal: Journal, _folder: RunFolder) -> None:
        journal.event("planned", tasks=1, k=1)
        journal.record(a_record())
        journal.flush()
        await journal.synced()

    with_journal(tmp_path, act, tape)
    order = [point for point, _ in tape.points if point is not WritePoint.JOURNAL_CREATED]
    assert order[:4] == [
        WritePoint.ATTEMPTS_APPENDED,
        WritePoint.EVENTS_APPENDED,
        WritePoint.ATTEMPTS_SYNCED,
        WritePoint.EVENTS_SYNCED,
    ]


def test_only_the_thread_syncs(tmp_path: Path) -> None:
    tape = Tape()

    async def act(journal: Journal, _folder: RunFolder) -> None:
        for number in range(3):
            journal.record(a_record(attempt=number + 1))
            journal.flush()
            await journal.synced()
        await journal.finish("completed", {}, None)

    with_journal(tmp_path, act, tape)
    synced = {WritePoint.ATTEMPTS_SYNCED, WritePoint.EVENTS_SYNCED}
    assert {in_main for point, in_main in tape.points if point in synced} == {False}
    assert {in_main for point, in_main in tape.points if point not in synced} == {True}


def test_a_disk_that_never_syncs_holds_up_no_write(tmp_path: Path) -> None:
    gate = threading.Event()

    class Stuck(NoFaults):
        def before(self, point: WritePoint) -> None:
            if point is WritePoint.ATTEMPTS_SYNCED:
                assert gate.wait(30)

    async def act(journal: Journal, folder: RunFolder) -> None:
        for number in range(200):
            journal.record(a_record(attempt=number + 1))
            journal.flush()
        assert len(RunReader(folder.root).tail()[0]) == 200
        waiter = asyncio.ensure_future(journal.synced())
        await asyncio.sleep(0.05)
        assert not waiter.done()
        gate.set()
        await waiter

    with_journal(tmp_path, act, Stuck())


def test_one_sync_serves_all_that_was_written_before_it(tmp_path: Path) -> None:
    tape = Tape()

    async def act(journal: Journal, _folder: RunFolder) -> None:
        for number in range(500):
            journal.record(a_record(attempt=number + 1))
            journal.flush()
        await asyncio.gather(*(journal.synced() for _ in range(50)))

    with_journal(tmp_path, act, tape)
    assert sum(point is WritePoint.ATTEMPTS_SYNCED for point, _ in tape.points) < 50


def test_a_short_write_is_cut_back_to_the_last_good_line(tmp_path: Path) -> None:
    faults = FailAt(WritePoint.ATTEMPTS_APPENDED, nth=2, bytes_taken=1000)

    async def act(journal: Journal, folder: RunFolder) -> None:
        journal.record(a_record("one"))
        journal.flush()
        for name in ("two", "three", "four"):
            journal.record(a_record(name))
        journal.event("warning", message="lost with them")
        journal.flush()
        assert journal.failure is not None
        assert journal.failure.cause.errno == errno.ENOSPC
        assert folder.files.attempts.read_bytes().endswith(b"\n")
        await journal.finish("failed", {}, str(journal.failure))

    root = with_journal(tmp_path, act, faults)
    reader = RunReader(root)
    assert [record.task_id for record in reader.records()] == ["one", "two"]
    assert reader.finished is not None
    assert reader.finished["outcome"] == "failed"
    assert "No space left" in reader.finished["reason"]
    assert reader.warnings == ()


def test_after_a_failure_nothing_more_is_recorded(tmp_path: Path) -> None:
    def act(journal: Journal, folder: RunFolder) -> None:
        journal.record(a_record("one"))
        journal.flush()
        first = journal.failure
        assert first is not None
        journal.record(a_record("two"))
        journal.event("warning", message="m")
        journal.flush()
        assert journal.failure is first
        assert folder.files.attempts.stat().st_size == 0

    with_journal(tmp_path, act, FailAt(WritePoint.ATTEMPTS_APPENDED, times=1))


def test_a_failed_sync_is_not_tried_again(tmp_path: Path) -> None:
    faults = FailAt(WritePoint.ATTEMPTS_SYNCED, error=errno.EIO, times=1)

    async def act(journal: Journal, _folder: RunFolder) -> None:
        journal.record(a_record("one"))
        journal.flush()
        with pytest.raises(StorageFailed, match=r"attempts\.jsonl"):
            await journal.synced()
        journal.record(a_record("two"))
        journal.flush()
        with pytest.raises(StorageFailed):
            await journal.synced()
        await journal.finish("failed", {}, None)

    root = with_journal(tmp_path, act, faults)
    assert faults.seen[WritePoint.ATTEMPTS_SYNCED] == 1
    reader = RunReader(root)
    assert [record.task_id for record in reader.records()] == ["one"]
    assert reader.finished is None


def test_the_outcome_stands_last_and_only_once(tmp_path: Path) -> None:
    async def act(journal: Journal, _folder: RunFolder) -> None:
        journal.event("planned", tasks=1, k=1)
        journal.record(a_record())
        await journal.finish("completed", {"scored": 1}, None)
        await journal.finish("failed", {}, None)
        journal.event("warning", message="too late")
        journal.flush()

    root = with_journal(tmp_path, act)
    events = list(RunReader(root).events())
    assert [event["kind"] for event in events] == ["planned", "finished"]
    assert events[-1]["counts"] == {"scored": 1}
    assert RunReader(root).state is RunState.FINISHED


def test_what_is_written_is_redacted(tmp_path: Path) -> None:
    def act(journal: Journal, _folder: RunFolder) -> None:
        journal.record(a_record(answer="it is hunter2hunter2"))
        journal.event("warning", message="hunter2hunter2")
        journal.flush()

    root = with_journal(
        tmp_path, act, redact=lambda data: data.replace(b"hunter2hunter2", b"[redacted]")
    )
    assert b"hunter2" not in b"".join(p.read_bytes() for p in root.iterdir())
    assert RunReader(root).page(0, 1)[0].answer == "it is [redacted]"


def test_the_run_is_alive_until_the_journal_is_closed(tmp_path: Path) -> None:
    async def act(journal: Journal, folder: RunFolder) -> None:
        await journal.finish("completed", {}, None)
        assert is_alive(folder.files.lock)

    assert not is_alive(with_journal(tmp_path, act) / "lock")


def test_a_metric_that_is_not_finite_is_refused_with_its_name(tmp_path: Path) -> None:
    def act(journal: Journal, _folder: RunFolder) -> None:
        with pytest.raises(ValueError, match="accuracy"):
            journal.record(a_record(metrics={"accuracy": float("nan")}))

    with_journal(tmp_path, act)


def test_a_trivial_attempt_takes_less_than_a_kibibyte_of_disk(tmp_path: Path) -> None:
    def act(journal: Journal, _folder: RunFolder) -> None:
        for number in range(100):
            journal.event(
                "started", task_id=f"task-{number}", attempt=1, execution=1, token="t" * 30
            )
            journal.record(a_record(f"task-{number}"))
        journal.flush()

    root = with_journal(tmp_path, act)
    size = sum((root / name).stat().st_size for name in ("attempts.jsonl", "events.jsonl"))
    assert size / 100 < 1024
    assert not (root / "tasks").exists()


def test_a_syncer_serves_several_loops_and_can_be_closed_twice(tmp_path: Path) -> None:
    async def main() -> None:
        syncer = Syncer()
        journals = [
            Journal(a_run(tmp_path / str(n)), clock=FixedClock(), syncer=syncer) for n in range(3)
        ]
        for journal in journals:
            journal.record(a_record())
            journal.flush()
        await asyncio.gather(*(journal.synced() for journal in journals))
        for journal in journals:
            journal.close()
        await syncer.close()
        await syncer.close()

    asyncio.run(main())
    names = [thread.name for thread in threading.enumerate()]
    assert "steelyard-syncer" not in names


def test_closing_the_syncer_syncs_what_is_dirty(tmp_path: Path) -> None:
    tape = Tape()

    async def main() -> None:
        syncer = Syncer(group_window_s=3600)
        journal = Journal(a_run(tmp_path), clock=FixedClock(), syncer=syncer, faults=tape)
        journal.record(a_record())
        journal.flush()
        began = time.monotonic()
        await syncer.close()
        assert time.monotonic() - began < 60
        journal.close()

    asyncio.run(main())
    assert WritePoint.ATTEMPTS_SYNCED in [point for point, _ in tape.points]


def test_a_syncer_that_was_closed_starts_again_with_the_next_write(tmp_path: Path) -> None:
    async def main() -> None:
        syncer = Syncer()
        journal = Journal(a_run(tmp_path), clock=FixedClock(), syncer=syncer)
        for number in (1, 2):
            journal.record(a_record(attempt=number))
            journal.flush()
            await journal.synced()
            await syncer.close()
        journal.close()

    asyncio.run(asyncio.wait_for(main(), 60))


def test_a_fault_of_the_syncing_code_reaches_those_who_wait(tmp_path: Path) -> None:
    class Broken(NoFaults):
        def before(self, point: WritePoint) -> None:
            if point is WritePoint.ATTEMPTS_SYNCED:
                raise RuntimeError("a bug")

    async def act(journal: Journal, _folder: RunFolder) -> None:
        journal.record(a_record())
        journal.flush()
        with pytest.raises(StorageFailed, match="a bug"):
            await journal.synced()

    with_journal(tmp_path, act, Broken())


@pytest.mark.integration
def test_an_interpreter_that_ends_without_closing_is_not_held_up(tmp_path: Path) -> None:
    code = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from pathlib import Path
from steelyard.results.journal import Journal, Syncer
from tests.results.workload import FixedClock, a_record, a_run
journal = Journal(a_run(Path({str(tmp_path)!r})), clock=FixedClock(), syncer=Syncer())
journal.record(a_record())
journal.flush()
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
