"""The floor of the overhead: what a bare asyncio loop needs for the same bytes, as safely written.

`python -m benchmarks.floor RUN_FOLDER OUT_FOLDER WORKERS FSYNCS` writes the bytes of a run's two
journals with as many syncs: a task an attempt, at most WORKERS past the semaphore at once, its
intent written before it starts and its record when it ends, every line made from its data (JSON,
CRC-32), the slot free before the record is synced, one thread that syncs for all, and an attempt
that ends when its record is on the disk. No plan, no admission, no components, no scoring. It
prints the CPU seconds of the loop.
"""

from __future__ import annotations

import asyncio
import os
import queue
import sys
import threading
import time
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from benchmarks.work import RunFiles


def parsed(lines: list[bytes]) -> list[dict[str, Any]]:
    """Read the data of a journal's lines back."""
    return [orjson.loads(line.rpartition(b"\t")[0]) for line in lines]


def encoded(data: list[dict[str, Any]]) -> bytes:
    """Make lines of data, as the journals hold them."""
    lines = []
    for one in data:
        body = orjson.dumps(one)
        lines.append(b"%b\t%08x\n" % (body, zlib.crc32(body)))
    return b"".join(lines)


def spread(lines: list[Any], attempts: int) -> list[list[Any]]:
    """Hand lines to attempts, in order and evenly."""
    return [
        lines[len(lines) * at // attempts : len(lines) * (at + 1) // attempts]
        for at in range(attempts)
    ]


@dataclass(slots=True)
class SyncThread:
    """Syncs both files for whoever waits, one batch at a time."""

    files: tuple[int, int]
    every: float
    """Attempts a sync."""
    loop: asyncio.AbstractEventLoop
    _waiting: list[asyncio.Future[None]] = field(default_factory=list)
    _batches: queue.SimpleQueue[list[asyncio.Future[None]]] = field(
        default_factory=queue.SimpleQueue
    )
    _seen: int = 0
    _due: float = 0.0

    def synced(self, *, is_last: bool) -> asyncio.Future[None]:
        """Give a future that is done when all that was written so far is on the disk."""
        future = self.loop.create_future()
        self._waiting.append(future)
        self._seen += 1
        if is_last or self._seen >= self._due:
            self._due += self.every
            self._batches.put(self._waiting)
            self._waiting = []
        return future

    def run(self) -> None:
        """Sync batches until an empty one comes."""
        while batch := self._batches.get():
            for fd in self.files:
                os.fdatasync(fd)
            self.loop.call_soon_threadsafe(_resolve, batch)

    def end(self) -> None:
        """Let the thread end."""
        self._batches.put([])


def _resolve(batch: list[asyncio.Future[None]]) -> None:
    for future in batch:
        future.set_result(None)


async def replay(
    files: tuple[int, int],
    intents: list[list[Any]],
    records: list[list[Any]],
    workers: int,
    syncs: int,
) -> None:
    """Run one task an attempt: write the intent, give way, write the record, wait for the disk."""
    total = len(records)
    thread = SyncThread(files, max(1.0, total / max(1, syncs)), asyncio.get_running_loop())
    slots = asyncio.Semaphore(workers)
    ended = 0

    async def attempt(intent: list[Any], record: list[Any]) -> None:
        nonlocal ended
        async with slots:
            if intent:
                os.write(files[0], encoded(intent))
            await asyncio.sleep(0)
            if record:
                os.write(files[1], encoded(record))
        ended += 1
        await thread.synced(is_last=ended == total)

    syncing = threading.Thread(target=thread.run)
    syncing.start()
    async with asyncio.TaskGroup() as group:
        for intent, record in zip(intents, records, strict=True):
            group.create_task(attempt(intent, record))
    thread.end()
    syncing.join()


def main() -> None:
    """Replay a run's writes, and print the CPU seconds that it took."""
    run, out = RunFiles(Path(sys.argv[1])), Path(sys.argv[2])
    workers, fsyncs = (int(argument) for argument in sys.argv[3:5])
    events, attempts = (parsed(run.lines(n)) for n in ("events.jsonl", "attempts.jsonl"))
    intents, records = (spread(lines, len(attempts)) for lines in (events, attempts))
    out.mkdir()
    flags = os.O_CREAT | os.O_WRONLY | os.O_APPEND
    files = (os.open(out / "events.jsonl", flags), os.open(out / "attempts.jsonl", flags))
    before = time.process_time()
    asyncio.run(replay(files, intents, records, workers, fsyncs // 2))
    print(time.process_time() - before)


if __name__ == "__main__":
    main()
