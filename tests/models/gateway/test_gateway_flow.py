"""Streams flow: as they come, many at once, none lost, none hoarded."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from steelyard.models.mock.answers import echo
from tests.models.calling import PROTOCOLS
from tests.models.gateway.serving import (
    PATHS,
    SSE,
    Attempt,
    ask,
    body_of,
    chunk,
    gateway_before,
    read_request,
    scripted,
    served,
)

STREAMS = 500
PIECES = 5


def piece(text: str, stop: bool = False) -> bytes:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": "stop" if stop else None}
    return b"data: " + orjson.dumps({"choices": [choice]}) + b"\n\n"


async def streamed(attempt: Attempt, text: str) -> tuple[Any, Any]:
    """Begin a stream over a connection of its own; give both ends of it."""
    port = int(attempt.url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    data = orjson.dumps(body_of("openai-chat", text, stream=True))
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(data)}"
    head += f"\r\nauthorization: Bearer {attempt.ticket.token}\r\nconnection: close\r\n\r\n"
    writer.write(head.encode() + data)
    return reader, writer


def test_each_piece_reaches_the_agent_before_the_next_is_sent() -> None:
    """The endpoint sends a piece only once the agent has said that it has the last one."""
    turns: asyncio.Queue[None] = asyncio.Queue()

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(SSE)
        for number in range(PIECES):
            writer.write(chunk(piece(f"<{number}>", number == PIECES - 1)))
            await turns.get()
        writer.write(b"0\r\n\r\n")

    async def run() -> Attempt:
        async with scripted(handler) as url, gateway_before(url) as attempt:
            reader, writer = await streamed(attempt, "go")
            for number in range(PIECES):
                await asyncio.wait_for(reader.readuntil(f"<{number}>".encode()), 10)
                turns.put_nowait(None)
            assert (await asyncio.wait_for(reader.read(), 10)).endswith(b"0\r\n\r\n")
            writer.close()
            return attempt

    attempt = asyncio.run(run())
    assert attempt.steps[-1].message == "<0><1><2><3><4>"


@pytest.fixture
def many_files() -> Iterator[None]:
    """Both ends of a thousand connections are in this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 8 * STREAMS
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(wanted, hard)), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("many_files")
def test_five_hundred_streams_at_once_all_come_whole() -> None:
    """Every stream has begun at the agent before any has ended at the endpoint."""
    begun = 0
    all_begun = asyncio.Event()

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await read_request(reader)
        name = orjson.loads(request.partition(b"\r\n\r\n")[2])["messages"][0]["content"]
        writer.write(SSE + chunk(piece(f"{name}:0 ")))
        await all_begun.wait()
        for number in range(1, PIECES):
            writer.write(chunk(piece(f"{name}:{number} ", number == PIECES - 1)))
            await asyncio.sleep(0)
        writer.write(chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")

    async def one(attempt: Attempt, name: str) -> bytes:
        nonlocal begun
        reader, writer = await streamed(attempt, name)
        first = await reader.readuntil(f"{name}:0 ".encode())
        begun += 1
        if begun == STREAMS:
            all_begun.set()
        rest = await reader.read()
        writer.close()
        return bytes(first + rest)

    async def run() -> tuple[list[bytes], Attempt]:
        async with (
            scripted(handler) as url,
            gateway_before(url, max_connections=STREAMS) as attempt,
            asyncio.timeout(60),
        ):
            names = [f"s{number}" for number in range(STREAMS)]
            return list(await asyncio.gather(*(one(attempt, name) for name in names))), attempt

    answers, attempt = asyncio.run(run())
    for number, answer in enumerate(answers):
        assert answer.endswith(b"0\r\n\r\n")
        places = [answer.index(f"s{number}:{i} ".encode()) for i in range(PIECES)]
        assert places == sorted(places)
    assert attempt.ticket.calls_succeeded == STREAMS
    said = {step.message for step in attempt.steps if step.source == "agent"}
    assert said == {"".join(f"s{n}:{i} " for i in range(PIECES)) for n in range(STREAMS)}


def test_a_slow_agent_slows_the_endpoint_down_and_not_our_memory() -> None:
    sent = 0
    block = piece("x" * 60_000)

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await read_request(reader)
        writer.write(SSE)
        for _ in range(400):
            writer.write(chunk(block))
            await writer.drain()
            sent += len(block)
        writer.write(b"0\r\n\r\n")

    async def run() -> tuple[int, int]:
        async with (
            scripted(handler) as url,
            gateway_before(url, max_response_bytes=100_000_000) as attempt,
        ):
            reader, writer = await streamed(attempt, "go")
            while True:  # until nothing moves any more
                before = sent
                await asyncio.sleep(0.3)
                if sent == before:
                    break
            stopped_at = sent
            received = 0
            while data := await reader.read(1 << 20):
                received += len(data)
            writer.close()
            return stopped_at, received

    stopped_at, received = asyncio.run(run())
    assert stopped_at < 0.9 * 400 * len(block)
    assert received > 400 * len(block)


def test_all_protocols_go_over_connections_that_are_kept() -> None:
    async def run() -> Any:
        async with served() as (attempt, _):
            port = int(attempt.url.rpartition(":")[2])
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            for number in range(6):
                protocol = PROTOCOLS[number % 3]
                data = orjson.dumps(body_of(protocol, f"n {number}"))
                head = f"POST {PATHS[protocol]} HTTP/1.1\r\nhost: localhost\r\n"
                head += f"x-api-key: {attempt.ticket.token}\r\ncontent-length: {len(data)}\r\n\r\n"
                writer.write(head.encode() + data)
                answer = await reader.readuntil(b"\r\n\r\n")
                assert answer.startswith(b"HTTP/1.1 200")
                length = int(answer.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
                await reader.readexactly(length)
            writer.close()
            return len(attempt.endpoint.upstream._open)

    assert asyncio.run(run()) == 1


def test_requests_above_the_rate_wait_and_are_not_refused() -> None:
    async def run() -> Any:
        async with served(rpm=600) as (attempt, _):
            answers = await asyncio.gather(
                *(
                    ask(attempt, PATHS["openai-chat"], body_of("openai-chat", f"{n}"))
                    for n in range(14)
                )
            )
            return [answer.status for answer in answers], attempt.timer.waited_s

    statuses, waited_s = asyncio.run(run())
    assert statuses == [200] * 14
    assert waited_s > 0.05


def test_whole_answers_that_nobody_reads_do_not_pile_up() -> None:
    async def run() -> tuple[int, int]:
        text = "x" * 1_000_000
        async with served(mock={"sources": [echo]}) as (attempt, mock):
            port = int(attempt.url.rpartition(":")[2])
            _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1000)
            data = orjson.dumps(body_of("openai-chat", text))
            head = "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nx-api-key: "
            head += f"{attempt.ticket.token}\r\ncontent-length: {len(data)}\r\n\r\n"
            writer.write((head.encode() + data) * 60)
            seen = -1
            while seen != mock.server.stats.calls:
                seen = mock.server.stats.calls
                await asyncio.sleep(0.3)
            writer.transport.abort()
            return seen, len(attempt.steps)

    made, _ = asyncio.run(run())
    assert 1 <= made < 30
