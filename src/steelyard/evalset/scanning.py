"""Run scanners over what a set's agents did, and keep what they find.

Rule scanners compute, so they read in a thread, one attempt after the other; those that ask a judge
model wait, so they read several at once on the event loop. A scanner that fails at one attempt is
named with it, and the rest goes on.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from steelyard.components.clock import AgentTimer, Clock, SystemClock
from steelyard.components.scanner import Finding, FindingSeverity, Scanner
from steelyard.components.values import NO_USAGE, Usage
from steelyard.config.errors import SteelyardError
from steelyard.engine.loading import in_daemon
from steelyard.evalset.chosen_scanners import JudgeModel, version_of
from steelyard.evalset.finding_store import MAX_MESSAGE_CHARS, FindingStore, Scanned
from steelyard.evalset.finding_values import KeptFinding, Scan, work_digest
from steelyard.evalset.scan_values import MOST_FAULTS, ScanFault, ScanProgress, ScanResult
from steelyard.evalset.scanned_attempt import RecordedAttempt
from steelyard.evalset.set_document import SetCell
from steelyard.evalset.set_reader import OpenedSet
from steelyard.results.consumption import NO_SPENDING, Spending
from steelyard.results.files import NO_FAULTS, Faults, StorageFailed
from steelyard.results.lock import RunLock
from steelyard.results.reader import RunReader
from steelyard.results.records import AttemptRecord

MAX_FINDINGS: Final = 1_000
"""Of one scanner in one attempt; a scanner that gives more has failed."""
JUDGED_AT_ONCE: Final = 8
_BATCH: Final = 256
"""Attempts whose findings are written together, at most"""
_BATCH_S: Final = 1.0
"""of so many seconds."""
_LOCK_PAUSE_S: Final = 0.2


class UnfitFindings(Exception):
    """What a scanner gave is no list of findings that can be kept."""


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
            try:
                await in_daemon(asyncio.run, work.read_by_rules(rules))
            finally:
                work.is_stopping.set()
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
    if not loop.is_closed():
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
        self._waiting: list[Scanned] = []
        self._written_s = time.monotonic()
        self._new: list[KeptFinding] = []
        self._faults: list[ScanFault] = []
        self._fault_count = 0
        self._attempts = 0
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
            attempts=self._attempts,
            read=len(self._read),
            new=tuple(self._new),
            faults=tuple(self._faults),
            fault_count=self._fault_count,
            spent=self._spent,
            unreadable=tuple(self._unreadable),
            stopped=self._stopped,
        )

    async def read_by_rules(self, scanners: Sequence[Scanner]) -> None:
        """Read attempt by attempt, on an event loop that has nothing else to do."""
        for cell, reader, record in self._records():
            if self.is_stopping.is_set():
                break
            lacking = self._lacking(cell, record, scanners)
            if lacking:
                await self._scan(cell, reader, record, lacking)
            self._flush(is_last=False)
        self._flush(is_last=True)

    async def read_by_judges(self, scanners: Sequence[Scanner]) -> None:
        """Read several attempts at once, each waiting for its judge."""
        room = asyncio.Semaphore(JUDGED_AT_ONCE)

        async def one(
            cell: SetCell, reader: RunReader, record: AttemptRecord, lacking: Sequence[Scanner]
        ) -> None:
            try:
                await self._scan(cell, reader, record, lacking)
                self._flush(is_last=False)
            finally:
                room.release()

        try:
            async with asyncio.TaskGroup() as tasks:
                for cell, reader, record in self._records():
                    lacking = self._lacking(cell, record, scanners)
                    if not lacking:
                        await asyncio.sleep(0)
                        continue
                    await room.acquire()
                    if self._budget_is_spent():
                        room.release()
                        break
                    tasks.create_task(one(cell, reader, record, lacking))
        except ExceptionGroup as group:
            raise group.exceptions[0] from group
        finally:
            self._flush(is_last=True)

    def _records(self) -> Iterator[tuple[SetCell, RunReader, AttemptRecord]]:
        """Iterate over the attempts in which an agent ran."""
        attempts = 0
        for cell in self._cells:
            try:
                reader = self._opened.reader(cell)
                for record in () if reader is None else reader.records():
                    if record.executions and reader is not None:
                        attempts += 1
                        self._attempts = max(self._attempts, attempts)
                        yield cell, reader, record
            except (SteelyardError, OSError) as error:
                self._unreadable[self._redact(f"{cell.matrix_key}: {error}")] = None

    def _lacking(
        self, cell: SetCell, record: AttemptRecord, scanners: Sequence[Scanner]
    ) -> list[Scanner]:
        """Give the scanners that have not read a work yet."""
        digest = work_digest(record)
        place = cell.index, record.task_id, record.attempt
        log, versions = self._store.log, self._versions
        return [
            one for one in scanners if not log.has_read(one.id, versions[one.id], place, digest)
        ]

    async def _scan(
        self,
        cell: SetCell,
        reader: RunReader,
        record: AttemptRecord,
        scanners: Sequence[Scanner],
    ) -> None:
        """Let scanners read one attempt; never raises for what they do."""
        read: dict[str, str] = {}
        failed: dict[str, str] = {}
        found: list[tuple[str, Finding]] = []
        spent = NO_SPENDING
        for scanner in scanners:
            client = None
            if scanner.needs_model and self._judge is not None:
                timer = AgentTimer(self._clock)
                client = self._judge.endpoint.client(timer, self._judge.allowance)
            try:
                given = await scanner.scan(RecordedAttempt(reader, record, client))
                found += [(scanner.id, finding) for finding in _fit(given)]
                read[scanner.id] = self._versions[scanner.id]
            except (Exception, SystemExit) as error:  # noqa: BLE001 — a plug-in; named, the rest goes on
                failed[scanner.id] = self._message(error)
            if client is not None:
                spent += _spending(client.usage)
        stops = self._budget_is_spent()
        for name, message in failed.items():
            if stops and not read:
                continue  # it is not the record's fault
            self._fault_count += 1
            if len(self._faults) < MOST_FAULTS:
                key = cell.matrix_key
                self._faults.append(ScanFault(name, key, record.task_id, record.attempt, message))
        self._spent += spent
        if read:
            self._read.add((cell.index, record.task_id, record.attempt))
        scan = Scan(
            cell.index, record.task_id, record.attempt, work_digest(record),
            read, (), failed, spent,
        )  # fmt: skip
        self._waiting.append(Scanned(scan, cell.matrix_key, reader.run_id, tuple(found)))

    def _message(self, error: BaseException) -> str:
        """Say what a scanner raised; secrets go before it is cut."""
        text = self._redact(f"{type(error).__name__}: {error}")
        return text if len(text) <= MAX_MESSAGE_CHARS else f"{text[:MAX_MESSAGE_CHARS]}…"

    def _budget_is_spent(self) -> bool:
        if self._judge is None or self._judge.allowance.overrun() is None:
            return False
        limit = self._judge.allowance.usd
        self._stopped = f"the budget is spent: judges have used the ${limit:g} that were left of it"
        return True

    def _flush(self, *, is_last: bool) -> None:
        """Write what waits, once it is enough or has waited for long."""
        now_s = time.monotonic()
        is_due = len(self._waiting) >= _BATCH or now_s - self._written_s >= _BATCH_S
        if not (is_last or is_due):
            return
        self._written_s = now_s
        waiting, self._waiting = self._waiting, []
        self._new += self._store.add(waiting)
        self.tell(ScanProgress(self._attempts, len(self._read), len(self._new), self._fault_count))


def _fit(given: object) -> list[Finding]:
    """Look at what a plug-in gave before it is kept.

    Raises:
        UnfitFindings: it is no list of findings, or of too many.
    """
    if not isinstance(given, Sequence) or isinstance(given, str | bytes):
        raise UnfitFindings(f"scan() gave {type(given).__name__}, not a list of findings")
    if len(given) > MAX_FINDINGS:
        raise UnfitFindings(f"{len(given)} findings in one attempt: more than {MAX_FINDINGS}")
    for one in given:
        if not isinstance(one, Finding):
            raise UnfitFindings(f"a finding is {type(one).__name__}, not a Finding")
        is_whole = all(isinstance(text, str) for text in (one.category, one.message, one.evidence))
        if not is_whole or not isinstance(one.severity, FindingSeverity):
            raise UnfitFindings("a finding's category, message or evidence is no text")
        if not isinstance(one.confidence, int | float) or not 0.0 <= one.confidence <= 1.0:
            raise UnfitFindings(f"a finding's confidence is {one.confidence!r}, not from 0 to 1")
        if one.step is not None and (type(one.step) is not int or one.step < 0):
            raise UnfitFindings(f"a finding's step is {one.step!r}, not a number from 0")
    return list(given)


def _spending(usage: Usage) -> Spending:
    if usage == NO_USAGE:
        return NO_SPENDING
    cost = usage.cost_usd
    return Spending(usage.requests, usage.input_tokens, usage.output_tokens, cost, cost or 0.0)
