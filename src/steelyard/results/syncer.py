"""One thread that syncs the journals of all runs, in groups.

Nobody on the event loop waits for a disk: a journal says that it has written, and the thread makes
it durable, everything that was written meanwhile with the same fsync.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Sequence
from typing import Final

from steelyard.results.files import AppendFile, StorageFailed

GROUP_WINDOW_S: Final = 0.02
"""Unless somebody waits, what is written within this time shares a sync."""

_IDLE_CHECK_S: Final = 1.0


class SyncTarget:
    """Files that are synced together, in order; owned by one journal."""

    def __init__(self, files: Sequence[AppendFile]) -> None:
        self.files = tuple(files)
        self.written = 0
        """How many flushes have gone out; raised by the event loop."""
        self.durable = 0
        """How many of them are on the disk; raised by the syncer."""
        self.failure: StorageFailed | None = None
        self._is_closed = False
        self._is_syncing = False
        self._lock = threading.Lock()
        self._waiters: list[tuple[int, asyncio.AbstractEventLoop, asyncio.Future[None]]] = []

    def sync(self) -> None:
        """Sync the files and tell those who wait. Called by the syncer's thread."""
        with self._lock:
            if self.failure is not None or self._is_closed:
                return
            self._is_syncing = True
            mark = self.written
        failure: StorageFailed | None = None
        try:
            for file in self.files:
                file.sync()
        except StorageFailed as error:
            failure = error  # never tried again: see AppendFile.sync
        except Exception as error:  # noqa: BLE001 — those who wait must hear of a fault of ours too
            failure = StorageFailed(self.files[0].path, OSError(f"the sync broke: {error!r}"))
        with self._lock:
            self._is_syncing = False
            if failure is None:
                self.durable = mark
            self.failure = failure
            due = [w for w in self._waiters if failure is not None or w[0] <= mark]
            self._waiters = [w for w in self._waiters if w not in due]
            if self._is_closed:
                self._close_files()
        for _, loop, future in due:
            try:
                loop.call_soon_threadsafe(_resolve, future, failure)
            except RuntimeError:
                continue  # the loop is closed: nobody waits any more

    def close(self) -> None:
        """Close the files; where they are being synced, the syncer does when it is done.

        A descriptor that is closed under a sync could by then be another file's.
        """
        with self._lock:
            self._is_closed = True
            if not self._is_syncing:
                self._close_files()

    def _close_files(self) -> None:
        for file in self.files:
            file.close()

    def wait(self) -> asyncio.Future[None] | None:
        """Give a future for everything written so far; None where it is durable already."""
        with self._lock:
            if self.failure is None and self.durable >= self.written:
                return None
            loop = asyncio.get_running_loop()
            future: asyncio.Future[None] = loop.create_future()
            if self.failure is not None:
                future.set_exception(self.failure)
            else:
                self._waiters.append((self.written, loop, future))
            return future


class Syncer:
    """The thread, started with the first write; one for all runs of a process."""

    def __init__(self, *, group_window_s: float = GROUP_WINDOW_S) -> None:
        self._window_s = group_window_s
        self._changed = threading.Condition()
        self._dirty: deque[SyncTarget] = deque()
        self._is_urgent = False
        self._is_closing = False
        self._thread: threading.Thread | None = None

    def mark_dirty(self, target: SyncTarget, *, is_urgent: bool = False) -> None:
        """Have a target synced soon; at once where `is_urgent`. Never waits for a disk."""
        with self._changed:
            is_first = target not in self._dirty
            if is_first:
                self._dirty.append(target)
            wakes = is_urgent and not self._is_urgent
            self._is_urgent = self._is_urgent or is_urgent
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="steelyard-syncer")
                self._thread.start()
            elif wakes or (is_first and len(self._dirty) == 1):
                self._changed.notify()

    async def close(self) -> None:
        """Sync what is dirty, then end the thread. Safe to call twice."""
        with self._changed:
            thread, self._thread = self._thread, None
            self._is_closing = True
            self._changed.notify()
        if thread is not None:
            await asyncio.to_thread(thread.join)
        self._is_closing = False

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._dirty and not self._is_closing:
                    self._changed.wait(_IDLE_CHECK_S)
                    # Not a daemon, so that no sync is cut off; but an interpreter that ends
                    # without `close` must not wait for this thread for ever.
                    if not threading.main_thread().is_alive():
                        self._is_closing = True
                if not self._dirty:
                    if self._thread is threading.current_thread():
                        self._thread = None  # the next write starts another
                    return
                if not self._is_urgent and not self._is_closing:
                    self._changed.wait_for(
                        lambda: self._is_urgent or self._is_closing, self._window_s
                    )
                group = list(self._dirty)
                self._dirty.clear()
                self._is_urgent = False
            for target in group:
                target.sync()


def _resolve(future: asyncio.Future[None], failure: StorageFailed | None) -> None:
    if future.done():
        return
    if failure is None:
        future.set_result(None)
    else:
        future.set_exception(failure)
