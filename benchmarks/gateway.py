"""What a call through the model gateway costs, and whether streams flow through it.

The endpoint, the gateway and the agents are processes of their own, so that the CPU that is
reported is the gateway's alone: what the same call would not have cost without it.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import orjson

from benchmarks.gateway_parts import PIECES, read_message
from benchmarks.measures import Figure
from benchmarks.processes import CommandFailed, clean_environment

CONCURRENCY = 64
CALLS = 4_000
STREAMS = 500
REPEATS = 3
MESSAGES = [
    {"role": "system", "content": "You are an agent that works on a task. " * 40},
    {"role": "user", "content": "Here is the task, at some length. " * 40},
]


class Part:
    """One process, which says where it listens and what it has used."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        where = self._line()
        self.port: int = where["port"]
        self.token: str = where["token"]

    def cpu_s(self) -> float:
        """Give the CPU seconds used so far."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return float(self._line())

    def _line(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise CommandFailed("a part of the gateway's measure did not start")
        return json.loads(line)


@contextmanager
def part(*arguments: str) -> Iterator[Part]:
    """Run one part while the block runs."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.gateway_parts", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=clean_environment(),
    )
    try:
        yield Part(process)
    finally:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        process.stdout.close()
        process.wait(timeout=20)


def request(token: str, number: int, *, stream: bool = False) -> bytes:
    """Write one call, as an agent's client does."""
    said = {"role": "user", "content": f"This is call {number}."}
    body = orjson.dumps({"model": "bench", "messages": [*MESSAGES, said], "stream": stream})
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {token}"
        "\r\naccept: application/json\r\nuser-agent: bench\r\ncontent-type: application/json"
        f"\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def make_calls(port: int, token: str, calls: int) -> None:
    """Make calls over connections that are kept open, `CONCURRENCY` at once."""

    async def one(numbers: range) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for number in numbers:
            writer.write(request(token, number))
            head, _ = await read_message(reader)
            if b" 200 " not in head[:20]:
                raise CommandFailed(f"a call was answered {head[:60]!r}")
        writer.close()

    async with asyncio.TaskGroup() as group:
        for worker in range(CONCURRENCY):
            group.create_task(one(range(worker, calls, CONCURRENCY)))


async def make_streams(port: int, token: str, streams: int) -> list[float]:
    """Read streams, all at once; give the seconds from each piece's sending to its coming."""
    delays: list[float] = []

    async def one(number: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request(token, number, stream=True))
        seen = 0
        while line := await reader.readline():
            now = time.monotonic()
            if line.startswith(b"data: {"):
                piece = orjson.loads(line[6:])["choices"][0]["delta"]["content"].split()
                if int(piece[0]) != seen:
                    raise CommandFailed(f"piece {piece[0]} of a stream came in place of {seen}")
                seen += 1
                delays.append(now - float(piece[1]))
            elif line == b"data: [DONE]\n":
                break
        if seen != PIECES:
            raise CommandFailed(f"a stream brought {seen} of {PIECES} pieces")
        writer.close()

    async with asyncio.TaskGroup() as group:
        for number in range(streams):
            group.create_task(one(number))
    return delays


def cpu_ms_a_call(subject: Part, calls: int) -> float:
    """CPU of a part for one call, connections and caches warm."""
    asyncio.run(make_calls(subject.port, subject.token, 4 * CONCURRENCY))
    found = []
    for _ in range(REPEATS):
        before = subject.cpu_s()
        asyncio.run(make_calls(subject.port, subject.token, calls))
        found.append((subject.cpu_s() - before) / calls * 1000)
    return median(found)


def measure(*, scale: float) -> Iterator[Figure]:
    """CPU a call beside the bare relay's; the delay of a piece among many streams."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name, part("endpoint") as endpoint:
        record = str(Path(name) / "steps.jsonl")
        port = str(endpoint.port)
        calls = max(int(CALLS * scale), CONCURRENCY)
        with part("floor", port, record) as subject:
            floor = cpu_ms_a_call(subject, calls)
        with part("gateway", port, record) as subject:
            title = f"gateway, {calls:,} calls, {CONCURRENCY} at once: CPU a call"
            measured = cpu_ms_a_call(subject, calls)
            yield Figure(
                title, measured, "ms", 1.0, floor=floor, note="floor: parse, forward, record"
            )
            streams = max(int(STREAMS * scale), 10)
            direct = asyncio.run(make_streams(endpoint.port, "none", streams))
            delays = asyncio.run(make_streams(subject.port, subject.token, streams))
            title = f"gateway, {streams} streams at once: median delay of a piece"
            yield Figure(title, median(delays) * 1000, "ms", 50.0, floor=median(direct) * 1000)
