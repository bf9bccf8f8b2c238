"""The journal of a run: what is intended and how every attempt ended.

`event` and `record` buffer, `flush` writes (records first), a thread syncs. Whoever starts local
work flushes its intent first; before remote work it also awaits `synced`. Nothing here waits
for a disk but `synced` and `finish`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Final

from steelyard.components.clock import Clock, utc_text
from steelyard.results import lines
from steelyard.results.files import NO_FAULTS, AppendFile, Faults, StorageFailed, WritePoint
from steelyard.results.records import AttemptRecord
from steelyard.results.records_io import record_to_json
from steelyard.results.run_folder import RunFolder
from steelyard.results.syncer import Syncer, SyncTarget

__all__ = ["EVENT_SCHEMA", "EventKind", "Journal", "Syncer"]

EVENT_SCHEMA: Final = "event/1"


class EventKind(StrEnum):
    """Every kind of event."""

    PLANNED = "planned"
    """`tasks`, `k`: what the ledger must add up to; `reuse`: the run that is taken from."""
    CARRIED = "carried"
    """All that is taken from that run is recorded; before it, the run alone is not enough."""
    STARTED = "started"
    """`task_id`, `attempt`, `execution`, `token`: the intent of an execution."""
    RETRY = "retry"
    """`task_id`, `attempt`, `execution` that ended, its `token`, `cause` (an issue code), `scope`
    (`whole`, `scoring`), `wait_s` until the next may start, `usage` of all of them so far."""
    OPENED = "opened"
    """A session, by its token."""
    CLOSED = "closed"
    KEPT = "kept"
    """`token`, `provider`, `description`, `enter` (a command's words), `state` (the provider's):
    a session that ended and stands for a person to look into."""
    CHECKPOINT = "checkpoint"
    """`token`, `path`: an agent's work is on the disk, and can be scored without it."""
    PHASE = "phase"
    WARNING = "warning"
    """`message`."""
    REQUEST_STOPPED = "request_stopped"
    """`reason`: a fault that every attempt would meet."""
    CONTROL = "control"
    """`action`, `by`: somebody steered the launch while it ran; `provider`, `value` where given."""
    FINISHED = "finished"
    """`outcome`, `counts`, `reason`: always the last."""


class Journal:
    """Appends to `events.jsonl` and `attempts.jsonl` of a run that this process owns.

    After the first failure everything but `finish` and `close` does nothing: what was written is
    kept, and `failure` says why. Used from one thread.
    """

    def __init__(
        self,
        folder: RunFolder,
        *,
        clock: Clock,
        syncer: Syncer,
        faults: Faults = NO_FAULTS,
        redact: Callable[[bytes], bytes] | None = None,
    ) -> None:
        """Create both files.

        Raises:
            StorageFailed: one cannot be created.
        """
        self._folder = folder
        self._clock = clock
        self._syncer = syncer
        self._redact = redact
        self._attempts = AppendFile(
            folder.files.attempts, WritePoint.ATTEMPTS_APPENDED, WritePoint.ATTEMPTS_SYNCED, faults
        )
        self._events = AppendFile(
            folder.files.events, WritePoint.EVENTS_APPENDED, WritePoint.EVENTS_SYNCED, faults
        )
        # The order is the promise: what a group's events tell of, its records already say. An
        # event written while the group is being synced may be on the disk before its record;
        # the only one for which that would matter, `finished`, waits for the records first.
        self._target = SyncTarget((self._attempts, self._events))
        self._seq = 0
        self._event_buffer: list[bytes] = []
        self._record_buffer: list[bytes] = []
        self._append_failure: StorageFailed | None = None
        self._is_finished = False
        self._flushed_seq = 0
        self._flushing: asyncio.Handle | None = None

    @property
    def failure(self) -> StorageFailed | None:
        """The first thing that went wrong with the files; None while all is well."""
        return self._append_failure or self._target.failure

    def event(self, kind: str, **fields: Any) -> int:
        """Buffer an event. `seq` and `at` (UTC) are added.

        Returns:
            Its `seq`.

        Raises:
            ValueError: `kind` is not an `EventKind`.
        """
        if self.failure is None and not self._is_finished:
            self._event_buffer.append(self._event_line(kind, fields))
        return self._seq

    def record(self, record: AttemptRecord) -> None:
        """Buffer the record that ends an attempt.

        Raises:
            ValueError: a metric is not finite.
        """
        if self.failure is None and not self._is_finished:
            self._record_buffer.append(lines.encode(record_to_json(record), self._redact))

    def flush(self) -> None:
        """Write what is buffered, records first. Does not wait for a sync; never raises."""
        self._flushing = None
        self._flushed_seq = self._seq
        if not self._record_buffer and not self._event_buffer:
            return
        if self.failure is None:
            try:
                self._write()
            except StorageFailed as error:
                self._append_failure = error
        self._record_buffer.clear()
        self._event_buffer.clear()

    def flush_to(self, seq: int) -> None:
        """Write what is buffered, unless the event of this `seq` was written before."""
        if seq > self._flushed_seq:
            self.flush()

    def flush_soon(self) -> None:
        """Write what is buffered in the loop's next turn, with what else this turn brings.

        For what is sooner made again than written by itself: a process that is killed within
        the turn loses it.
        """
        if self._flushing is None:
            self._flushing = asyncio.get_running_loop().call_soon(self._flush_if_due)

    def _flush_if_due(self) -> None:
        if self._flushing is not None:
            self.flush()

    def fail(self, failure: StorageFailed) -> None:
        """Note that another file of the run could not be written; nothing more is recorded."""
        self._append_failure = self._append_failure or failure

    async def synced(self) -> None:
        """Wait until everything flushed so far is on the disk.

        Raises:
            StorageFailed: it will not be.
        """
        if self._append_failure is not None:
            raise self._append_failure
        waiter = self._target.wait()
        if waiter is not None:
            self._syncer.mark_dirty(self._target, is_urgent=True)
            await waiter

    async def finish(
        self, outcome: str, counts: Mapping[str, int], reason: str | None = None
    ) -> None:
        """Write the last event, when everything before it is on the disk. Never raises.

        After a full disk the event is still tried once, so that the run can say it `failed`;
        after a failed sync nothing more is written.
        """
        self.flush()
        if self._is_finished or self._target.failure is not None:
            return
        line = self._event_line(
            EventKind.FINISHED, {"outcome": outcome, "counts": dict(counts), "reason": reason}
        )
        self._is_finished = True
        try:
            if self._append_failure is None:
                await self.synced()
            self._events.append(line)
            self._target.written += 1
            waiter = self._target.wait()
            self._syncer.mark_dirty(self._target, is_urgent=True)
            if waiter is not None:
                await waiter
        except StorageFailed as error:
            self._append_failure = self._append_failure or error

    def close(self) -> None:
        """Let go of the files and of the run's lock. After `finish`, or instead of it."""
        self._target.close()
        self._folder.lock.release()

    def _event_line(self, kind: str, fields: Mapping[str, Any]) -> bytes:
        self._seq += 1
        event: dict[str, Any] = {
            "seq": self._seq,
            "at": utc_text(self._clock.now()),
            "kind": EventKind(kind).value,
            **fields,
        }
        if self._seq == 1:
            event["schema"] = EVENT_SCHEMA
        return lines.encode(event, self._redact)

    def _write(self) -> None:
        if self._record_buffer:
            self._attempts.append(b"".join(self._record_buffer))
        if self._event_buffer:
            self._events.append(b"".join(self._event_buffer))
        self._target.written += 1
        self._syncer.mark_dirty(self._target)
