"""The floor of the overhead: a bare asyncio loop that writes what a run wrote.

`python -m benchmarks.floor RUN_FOLDER OUT_FOLDER WORKERS WRITES FSYNCS` writes the same bytes of
the two journals in the same number of writes, syncs as often from one thread, and prints its CPU
seconds. Nothing else: no plan, no scoring, no check sum.
"""

from __future__ import annotations

import asyncio
import os
import queue
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.work import RunFiles


def in_writes(lines: list[bytes], writes: int) -> Iterator[bytes]:
    """Join lines so that about `writes` chunks come out, evenly."""
    size = max(1.0, len(lines) / max(1, writes))
    start = 0.0
    while start < len(lines):
        yield b"".join(lines[int(start) : int(start + size)])
        start += size


async def write_all(
    chunks: list[tuple[int, bytes]], workers: int, syncs: int, to_sync: queue.SimpleQueue[bool]
) -> None:
    """Write the chunks from `workers` coroutines that take turns."""
    waiting = iter(enumerate(chunks))
    every = max(1.0, len(chunks) / max(1, syncs))
    due = every

    async def worker() -> None:
        nonlocal due
        for index, (fd, chunk) in waiting:
            os.write(fd, chunk)
            if index >= due:
                due += every
                to_sync.put(True)
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        for _ in range(workers):
            group.create_task(worker())


def main() -> None:
    """Replay a run's writes, and print the CPU seconds that it took."""
    run, out = RunFiles(Path(sys.argv[1])), Path(sys.argv[2])
    workers, writes, syncs = (int(argument) for argument in sys.argv[3:6])
    out.mkdir()
    flags = os.O_CREAT | os.O_WRONLY | os.O_APPEND
    files = [os.open(out / n, flags) for n in ("events.jsonl", "attempts.jsonl")]
    events, attempts = run.lines("events.jsonl"), run.lines("attempts.jsonl")
    share = len(events) / (len(events) + len(attempts))
    chunks = [(files[0], chunk) for chunk in in_writes(events, round(writes * share))]
    chunks += [(files[1], chunk) for chunk in in_writes(attempts, round(writes * (1 - share)))]
    to_sync: queue.SimpleQueue[bool] = queue.SimpleQueue()

    def sync() -> None:
        while to_sync.get():
            for fd in files:
                os.fsync(fd)

    thread = threading.Thread(target=sync)
    before = time.process_time()
    thread.start()
    asyncio.run(write_all(chunks, workers, syncs // len(files), to_sync))
    to_sync.put(False)
    thread.join()
    print(time.process_time() - before)


if __name__ == "__main__":
    main()
