"""The gateway as a server of HTTP/1.1: framings, bounds, and clients that mean no good."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import Any

import pytest

from steelyard.models.gateway.requests import Bounds
from steelyard.models.mock.answers import echo
from tests.models.gateway.serving import (
    PATHS,
    Answer,
    ask,
    body_of,
    exchange,
    served,
)


def asked(path: str, body: Any = None, *, options: Any = None, **request: Any) -> tuple[Any, ...]:
    """Ask one thing; give the answer, the attempt and the mock's counts."""

    async def run() -> tuple[Any, ...]:
        async with served(**(options or {})) as (attempt, mock):
            answer = await ask(attempt, path, body, **request)
            return answer, attempt, mock.server.stats.as_json()

    return asyncio.run(run())


def raw_request(attempt: Any, head: str, body: bytes = b"") -> bytes:
    lines = f"{head}\r\nhost: 127.0.0.1\r\nauthorization: Bearer {attempt.ticket.token}\r\n"
    return lines.encode() + body


async def raw(attempt: Any, data: bytes) -> Answer:
    port = int(attempt.url.rpartition(":")[2])
    return await exchange("127.0.0.1", port, data)


def test_a_body_in_chunks_is_taken() -> None:
    async def run() -> Answer:
        async with served() as (attempt, _):
            data = json.dumps(body_of("openai-chat")).encode()
            pieces = b"".join(b"%x\r\n%b\r\n" % (1, data[i : i + 1]) for i in range(len(data)))
            head = "POST /v1/chat/completions HTTP/1.1\r\nconnection: close"
            head += "\r\ntransfer-encoding: chunked"
            return await raw(attempt, raw_request(attempt, head, b"\r\n" + pieces + b"0\r\n\r\n"))

    assert asyncio.run(run()).status == 200


def test_a_client_that_waits_for_100_continue_gets_it_where_it_may_go_on() -> None:
    async def run() -> list[bytes]:
        seen = []
        async with served() as (attempt, _):
            for token in (attempt.ticket.token, "no"):
                port = int(attempt.url.rpartition(":")[2])
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(
                    b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\nx-api-key: "
                    + token.encode()
                    + b"\r\ncontent-length: 9\r\nexpect: 100-continue\r\n\r\n"
                )
                seen.append(await reader.readline())
                writer.close()
        return seen

    assert asyncio.run(run()) == [b"HTTP/1.1 100 \r\n", b"HTTP/1.1 401 \r\n"]


def test_pipelined_requests_are_answered_in_order() -> None:
    async def run() -> bytes:
        async with served(mock={"sources": [echo]}) as (attempt, _):
            whole = b""
            for number in range(4):
                data = json.dumps(body_of("openai-chat", f"question-{number}")).encode()
                close = "\r\nconnection: close" if number == 3 else ""
                head = f"POST /v1/chat/completions HTTP/1.1{close}\r\ncontent-length: {len(data)}"
                whole += raw_request(attempt, head, b"\r\n" + data)
            return (await raw(attempt, whole)).raw

    found = asyncio.run(run())
    places = [found.index(f'"content":"question-{number}"'.encode()) for number in range(4)]
    assert places == sorted(places)


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: a\r\nx: " + b"a" * 600_000 + b"\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        b"CONNECT x:443 HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
)
def test_what_is_no_good_request_is_refused_and_harms_nobody(data: bytes) -> None:
    async def run() -> tuple[int, int]:
        async with served(bounds=Bounds(linger_s=0.01)) as (attempt, _):
            answer = await raw(attempt, data)
            return answer.status, (await ask(attempt, "/v1/models")).status

    status, after = asyncio.run(run())
    assert 400 <= status < 500
    assert after == 200


@pytest.mark.parametrize("is_announced", [True, False])
def test_a_body_above_the_bound_is_refused(is_announced: bool) -> None:
    async def run() -> Any:
        async with served(bounds=Bounds(max_body_bytes=1000, linger_s=0.01)) as (attempt, _):
            if is_announced:
                head = "POST /v1/messages HTTP/1.1\r\ncontent-length: 100000"
                answer = await raw(attempt, raw_request(attempt, head, b"\r\n" + b"x" * 10))
            else:
                head = "POST /v1/messages HTTP/1.1\r\ntransfer-encoding: chunked"
                body = b"\r\n" + b"%x\r\n%b\r\n" % (2000, b"x" * 2000)
                answer = await raw(attempt, raw_request(attempt, head, body))
            return answer.status, attempt.ticket

    status, ticket = asyncio.run(run())
    assert status == 413
    assert ticket._held_bytes == 0


@pytest.mark.parametrize(
    "sent",
    [b"", b"POST /v1/mess", b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\n"],
)
def test_a_client_that_dawdles_is_dropped(sent: bytes) -> None:
    async def run() -> bytes:
        async with served(bounds=Bounds(head_s=0.05, body_idle_s=0.05)) as (attempt, _):
            return (await asyncio.wait_for(raw(attempt, sent), 10)).raw

    assert asyncio.run(run()) == b""


def test_a_body_that_stops_coming_is_dropped() -> None:
    async def run() -> bytes:
        async with served(bounds=Bounds(head_s=0.05, body_idle_s=0.05)) as (attempt, _):
            head = "POST /v1/messages HTTP/1.1\r\ncontent-length: 100"
            data = raw_request(attempt, head, b"\r\n" + b"x" * 10)
            return (await asyncio.wait_for(raw(attempt, data), 10)).raw

    assert asyncio.run(run()) == b""


def test_an_attempt_cannot_fill_our_memory_with_bodies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("steelyard.models.gateway.tickets.MAX_HELD_BYTES", 50)
    answer, attempt, _ = asked(
        PATHS["openai-chat"], body_of("openai-chat"), options={"bounds": Bounds(linger_s=0.01)}
    )
    assert answer.status == 413
    assert attempt.faults == []


def test_one_sessions_connections_leave_room_for_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("steelyard.models.gateway.server.MAX_CONNECTIONS", 5)

    async def run() -> Any:
        async with served() as (attempt, _):
            port = int(attempt.url.rpartition(":")[2])
            held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(5)]
            try:
                dropped = (await ask(attempt, "/v1/models")).status
            except OSError:
                dropped = 0
            listener = socket.create_server(("127.0.0.1", 0))
            other = listener.getsockname()[1]
            end = await attempt.gateway.serve(listener)
            raw_get = b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n"
            status = (await exchange("127.0.0.1", other, raw_get)).status
            end()
            for _, writer in held:
                writer.close()
            await asyncio.sleep(0.05)
            return dropped, status, (await ask(attempt, "/v1/models")).status

    assert asyncio.run(run()) == (0, 200, 200)
