"""Run scanners over what a set's agents did, and keep what they find.

Rule scanners compute, so they read in a thread, one attempt after the other, and in other processes
where that takes long; those that ask a judge model wait, so they read several at once on the event
loop. A scanner that fails at one attempt is
named with it, and the rest goes on.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from steelyard.components.clock import AgentTimer, Clock, SystemClock
from steelyard.components.model import ModelClient
from steelyard.components.scanner import Scanner
from steelyard.config.errors import SteelyardError
from steelyard.engine.loading import in_daemon
from steelyard.evalset.chosen_scanners import JudgeModel, version_of
from steelyard.evalset.finding_store import MAX_MESSAGE_CHARS, FindingStore, Scanned
from steelyard.evalset.finding_values import KeptFinding
from steelyard.evalset.scan_cell import lacking, ran_attempts, scan_attempt
from steelyard.evalset.scan_helpers import CellRead, HelperSpec, help_out, helpers_worthwhile
from steelyard.evalset.scan_values import MOST_FAULTS, ScanFault, ScanProgress, ScanResult
from steelyard.evalset.set_document import SetCell
from steelyard.evalset.set_reader import OpenedSet
from steelyard.results.consumption import NO_SPENDING
from steelyard.results.files import NO_FAULTS, Faults, StorageFailed
from steelyard.results.lock import RunLock
from steelyard.results.reader import RunReader
from steelyard.results.records import AttemptRecord

HELPERS_AFTER_S: Final = 3.0
"""A scan by rules that takes longer is helped by other processes."""
JUDGED_AT_ONCE: Final = 8
_BATCH: Final = 256
"""Attempts whose findings are written together, at most"""
_BATCH_S: Final = 1.0
"""of so many seconds."""
_LOCK_PAUSE_S: Final = 0.2


async def scan_set(
    opened: OpenedSet,
    scanners: Sequence[Scanner],
    *,
    judge: JudgeModel | None = None,
    cells: Sequence[SetCell] | None = None,
    redact: Callable[[str], str] = str,
    clock: Clock | None = None,
    on_progress: Callable[[ScanProgress], None] | None = None,
    on_wait: Callable[[], None] | None = None,
    helpers: HelperSpec | None = None,
    faults: Faults = NO_FAULTS,
) -> ScanResult:
    """Let scanners read all that they have not read yet, and keep what they find.

    Args:
        opened: the set; what runs meanwhile is read as far as it is recorded.
        scanners: what `make_scanners` gave.
        judge: for those that ask one; without it they must not be among the scanners.
        cells: those that are read; all by default.
        redact: hides secrets by value in all that is kept.
        clock: the system's by default.
        on_progress: is told now and then how far it has come, on the event loop.
        on_wait: is told once where another process scans the set, and is waited for.
        helpers: how other processes make the same scanners; None: nobody helps.
        faults: what a test does to writes.

    Raises:
        StorageFailed: the findings could not be written; what was written before is kept.
        NewerFindings: a newer version has written to them.
    """
    clock = clock or SystemClock()
    lock = await _hold(opened, on_wait)
    try:
        store = FindingStore(opened.files, clock=clock, redact=redact, faults=faults)
        versions = {scanner.id: version_of(scanner) for scanner in scanners}
        work = _Work(opened, store, cells or opened.cells, versions, clock, judge, redact)
        rules = [scanner for scanner in scanners if not scanner.needs_model]
        asking = [scanner for scanner in scanners if scanner.needs_model]
        loop = asyncio.get_running_loop()
        if on_progress is not None:
            told = on_progress
            work.tell = lambda progress: _tell(loop, told, progress)
        if rules:
            await work.read_by_rules(rules, helpers)
        if asking:
            await work.read_by_judges(asking)
        return work.result()
    finally:
        lock.release()


async def _hold(opened: OpenedSet, on_wait: Callable[[], None] | None) -> RunLock:
    """Hold the set's scan lock; what another process reads meanwhile need not be read again."""
    path = opened.files.scan_lock
    has_said = False
    try:
        while (lock := RunLock.try_acquire(path)) is None:
            if on_wait is not None and not has_said:
                on_wait()
            has_said = True
            await asyncio.sleep(_LOCK_PAUSE_S)
    except OSError as error:
        raise StorageFailed(path, error) from error
    return lock


def _tell(
    loop: asyncio.AbstractEventLoop, told: Callable[[ScanProgress], None], progress: ScanProgress
) -> None:
    with suppress(RuntimeError):  # the loop is closed: nobody listens any more
        loop.call_soon_threadsafe(told, progress)


class _Work:
    """One scan: what is read, what was found, what went wrong."""

    def __init__(
        self,
        opened: OpenedSet,
        store: FindingStore,
        cells: Sequence[SetCell],
        versions: Mapping[str, str],
        clock: Clock,
        judge: JudgeModel | None,
        redact: Callable[[str], str],
    ) -> None:
        self._opened = opened
        self._store = store
        self._cells = cells
        self._versions = versions
        self._clock = clock
        self._judge = judge
        self._redact = redact
        self._left: deque[SetCell] = deque(cells)
        """Cells that no thread or process reads by rules yet."""
        self._keeping = threading.Lock()
        """Of all below: a thread and the event loop take what is found."""
        self._waiting: list[Scanned] = []
        self._written_s = time.monotonic()
        self._new: list[KeptFinding] = []
        self._faults: list[ScanFault] = []
        self._fault_count = 0
        self._attempts: dict[int, int] = {}
        self._read: set[tuple[int, str, int]] = set()
        self._spent = NO_SPENDING
        self._unreadable: dict[str, None] = {}
        self._stopped: str | None = None
        self.is_stopping = threading.Event()
        self.tell: Callable[[ScanProgress], None] = lambda _progress: None

    def result(self) -> ScanResult:
        """Give what it came to."""
        return ScanResult(
            scanners=self._versions,
            attempts=sum(self._attempts.values()),
            read=len(self._read),
            new=tuple(self._new),
            faults=tuple(self._faults),
            fault_count=self._fault_count,
            spent=self._spent,
            unreadable=tuple(self._unreadable),
            silent=self._store.log.reading({cell.index for cell in self._cells}).silent,
            stopped=self._stopped,
        )

    # -- by rules ------------------------------------------------------------------------------

    async def read_by_rules(self, scanners: Sequence[Scanner], helpers: HelperSpec | None) -> None:
        """Read in a thread; where that takes long, with the help of processes."""
        try:
            async with asyncio.TaskGroup() as tasks:
                reading = tasks.create_task(in_daemon(asyncio.run, self._read_cells(scanners)))
                if helpers is not None:
                    await asyncio.wait({reading}, timeout=HELPERS_AFTER_S)
                    for _ in range(0 if reading.done() else helpers_worthwhile(len(self._left))):
                        tasks.create_task(
                            help_out(helpers, self._next_cell, self._take, self._cell_ended)
                        )
        except ExceptionGroup as group:
            raise group.exceptions[0] from group
        finally:
            self.is_stopping.set()
        self._flush(is_last=True)

    def _next_cell(self) -> SetCell | None:
        try:
            return None if self.is_stopping.is_set() else self._left.popleft()
        except IndexError:
            return None

    async def _read_cells(self, scanners: Sequence[Scanner]) -> None:
        """Read attempt by attempt, on an event loop that has nothing else to do."""
        while (cell := self._next_cell()) is not None:
            for reader, record in self._attempts_of(cell):
                if self.is_stopping.is_set():
                    break
                wanting = lacking(self._store.log, self._versions, cell, record, scanners)
                if wanting:
                    self._take(await scan_attempt(cell, reader, record, wanting, self._versions))

    def _cell_ended(self, cell: SetCell, end: CellRead) -> None:
        self._attempts[cell.index] = end.attempts
        if end.unreadable is not None:
            self._name_unreadable(cell, end.unreadable)

    # -- by judges -----------------------------------------------------------------------------

    async def read_by_judges(self, scanners: Sequence[Scanner]) -> None:
        """Read several attempts at once, each waiting for its judge."""
        room = asyncio.Semaphore(JUDGED_AT_ONCE)

        async def one(
            cell: SetCell, reader: RunReader, record: AttemptRecord, wanting: Sequence[Scanner]
        ) -> None:
            try:
                self._take(
                    await scan_attempt(cell, reader, record, wanting, self._versions, self._client)
                )
            finally:
                room.release()

        try:
            async with asyncio.TaskGroup() as tasks:
                for cell, reader, record in self._every_attempt():
                    wanting = lacking(self._store.log, self._versions, cell, record, scanners)
                    if not wanting:
                        await asyncio.sleep(0)
                        continue
                    await room.acquire()
                    if self._budget_is_spent():
                        room.release()
                        break
                    tasks.create_task(one(cell, reader, record, wanting))
        except ExceptionGroup as group:
            raise group.exceptions[0] from group
        finally:
            self._flush(is_last=True)

    def _every_attempt(self) -> Iterator[tuple[SetCell, RunReader, AttemptRecord]]:
        for cell in self._cells:
            for reader, record in self._attempts_of(cell):
                yield cell, reader, record

    def _client(self, scanner: Scanner) -> ModelClient | None:
        if not scanner.needs_model or self._judge is None:
            return None
        return self._judge.endpoint.client(AgentTimer(self._clock), self._judge.allowance)

    def _budget_is_spent(self) -> bool:
        if self._judge is None or self._judge.allowance.overrun() is None:
            return False
        limit = self._judge.allowance.usd
        self._stopped = f"the budget is spent: judges have used the ${limit:g} that were left of it"
        return True

    # -- both ----------------------------------------------------------------------------------

    def _attempts_of(self, cell: SetCell) -> Iterator[tuple[RunReader, AttemptRecord]]:
        """Iterate over a cell's attempts, and count them; a run that cannot be read is named."""
        count = 0
        try:
            for reader, record in ran_attempts(self._opened, cell):
                count += 1
                self._attempts[cell.index] = max(count, self._attempts.get(cell.index, 0))
                yield reader, record
        except (SteelyardError, OSError) as error:
            self._name_unreadable(cell, str(error))

    def _name_unreadable(self, cell: SetCell, why: str) -> None:
        self._unreadable[self._redact(f"{cell.matrix_key}: {why}")] = None

    def _take(self, scanned: Scanned) -> None:
        """Count what was found in an attempt, and keep it soon.

        Raises:
            StorageFailed: the findings could not be written.
        """
        scan = scanned.scan
        failed = {name: self._message(why) for name, why in scan.faults.items()}
        stops = self._budget_is_spent() and not scan.read  # then it is not the record's fault
        with self._keeping:
            for name, message in () if stops else failed.items():
                self._fault_count += 1
                if len(self._faults) < MOST_FAULTS:
                    key = scanned.matrix_key
                    self._faults.append(ScanFault(name, key, scan.case, scan.attempt, message))
            self._spent += scan.spent
            if scan.read:
                self._read.add((scan.cell, scan.case, scan.attempt))
            self._waiting.append(replace(scanned, scan=replace(scan, faults=failed)))
        self._flush(is_last=False)

    def _message(self, text: str) -> str:
        """Cut what a scanner raised; secrets go before."""
        text = self._redact(text)
        return text if len(text) <= MAX_MESSAGE_CHARS else f"{text[:MAX_MESSAGE_CHARS]}…"

    def _flush(self, *, is_last: bool) -> None:
        """Write what waits, once it is enough or has waited for long."""
        with self._keeping:
            now_s = time.monotonic()
            is_due = len(self._waiting) >= _BATCH or now_s - self._written_s >= _BATCH_S
            if not (is_last or is_due):
                return
            self._written_s = now_s
            waiting, self._waiting = self._waiting, []
            self._new += self._store.add(waiting)
            attempts = sum(self._attempts.values())
        self.tell(ScanProgress(attempts, len(self._read), len(self._new), self._fault_count))
