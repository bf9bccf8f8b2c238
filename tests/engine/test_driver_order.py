"""What the driver waits for, and what it must not wait for."""

from __future__ import annotations

import threading
from pathlib import Path

from steelyard.engine.events import Progress, RequestResult, RunOutcome, Unobserved
from steelyard.results.files import NoFaults, WritePoint
from tests.engine.launching import COMPONENTS, records, request, run_all

SYNCS = (WritePoint.ATTEMPTS_SYNCED, WritePoint.EVENTS_SYNCED)


class HeldSync(NoFaults):
    """Lets no sync of a journal end before so many records were written."""

    def __init__(self, records: int) -> None:
        self._left = records
        self._enough = threading.Event()
        self.gave_up = False

    def before(self, point: WritePoint) -> None:
        if point in SYNCS and not self._enough.wait(30):
            self.gave_up = True

    def after(self, point: WritePoint) -> None:
        if point is WritePoint.ATTEMPTS_APPENDED:
            self._left -= 1
            if self._left <= 0:
                self._enough.set()


def test_a_slot_is_free_before_its_record_is_on_the_disk(tmp_path: Path) -> None:
    held = HeldSync(records=12)
    result = run_all(tmp_path, request(benchmark={"tasks": 12}), faults=held, task_concurrency=1)
    assert result.outcome is RunOutcome.COMPLETED
    assert not held.gave_up, "an attempt waited for the disk"


def test_the_intent_of_a_remote_session_is_on_the_disk_before_it_opens(tmp_path: Path) -> None:
    note = tmp_path / "opened"

    class Order(NoFaults):
        synced_first: bool | None = None

        def after(self, point: WritePoint) -> None:
            if point is WritePoint.EVENTS_SYNCED and self.synced_first is None:
                self.synced_first = not note.exists()

        def before(self, point: WritePoint) -> None:
            if point is WritePoint.ATTEMPTS_APPENDED:
                assert note.exists()

    order = Order()
    remote = {"id": f"{COMPONENTS}:Remote", "note": str(note)}
    one = request(benchmark={"tasks": 1}, harness={"opens": True}, environment=remote)
    result = run_all(tmp_path, one, faults=order, runtime={"cleanup_grace_seconds": 0.1})
    assert result.outcome is RunOutcome.COMPLETED
    assert order.synced_first is True


def test_local_work_does_not_wait_for_its_intent_to_be_synced(tmp_path: Path) -> None:
    held = HeldSync(records=1)
    result = run_all(tmp_path, request(benchmark={"tasks": 1}), faults=held)
    assert result.outcome is RunOutcome.COMPLETED
    assert not held.gave_up


def test_a_request_that_is_slow_to_load_holds_up_no_other(tmp_path: Path) -> None:
    """The first request loads only once the second has ended."""
    ended = tmp_path / "second-ended"

    class Observer(Unobserved):
        def request_ended(self, result: RequestResult) -> None:
            if result.name == "second":
                ended.touch()

        def tick(self, progress: tuple[Progress, ...]) -> None:
            pass

    slow = request("first", benchmark={"loads_after": str(ended)})
    result = run_all(tmp_path, slow, request("second"), observer=Observer())
    assert [r.outcome for r in result.requests] == [RunOutcome.COMPLETED] * 2


def test_earlier_requests_come_first_and_later_ones_fill_what_is_left(tmp_path: Path) -> None:
    first = request("first", benchmark={"tasks": 4})
    result = run_all(tmp_path, first, request("second"), task_concurrency=1)
    ends = [record.timing.finished_at or "" for record in records(result, 0)]
    starts = [record.timing.started_at or "" for record in records(result, 1)]
    assert max(ends) <= min(starts)
