"""Streams that break after their first byte, and calls that somebody hangs up on."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from steelyard.components.issues import IssueCode
from steelyard.components.values import Usage
from tests.models.gateway.serving import (
    PATHS,
    SSE,
    Answer,
    Attempt,
    admitted,
    ask,
    body_of,
    chunk,
    gateway_before,
    read_request,
    scripted,
    served,
)

CHAT = PATHS["openai-chat"]
UNKNOWN = Usage(requests=1, cost_usd=None)

# Streams that go wrong after their first byte.

PIECE = b'data: {"choices":[{"index":0,"delta":{"content":"half a sen"}}]}\n\n'
USAGE = b'data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2}}\n\n'
ERROR = b'data: {"error":{"message":"overloaded","type":"overloaded_error","code":null}}\n\n'


def streamed(
    *pieces: bytes | float, end: bool = False, asks_usage: bool = False, **options: Any
) -> tuple[Answer, Attempt, int]:
    """Stream pieces (and waits), then close; give what the agent saw."""
    made = 0

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal made
        await read_request(reader)
        made += 1
        writer.write(SSE)
        for piece in pieces:
            if isinstance(piece, bytes):
                writer.write(chunk(piece))
                await writer.drain()
            else:
                await asyncio.sleep(piece)
        if end:
            writer.write(b"0\r\n\r\n")
        writer.close()

    async def run() -> Any:
        more = {"max_request_retries": 2, **options}
        async with scripted(handler) as url, gateway_before(url, **more) as attempt:
            body = body_of("openai-chat", stream=True)
            if asks_usage:
                body["stream_options"] = {"include_usage": True}
            return await ask(attempt, CHAT, body), attempt

    answer, attempt = asyncio.run(run())
    return answer, attempt, made


def test_half_a_stream_breaks_for_the_agent_too() -> None:
    answer, attempt, made = streamed(PIECE)
    assert (answer.status, answer.is_whole, made) == (200, False, 1)
    assert answer.body == PIECE
    assert attempt.ticket.usage == UNKNOWN
    assert attempt.ticket.last_fault is not None
    assert attempt.ticket.last_fault.code is IssueCode.MODEL_UNAVAILABLE
    assert attempt.steps[-1].message == "half a sen"
    assert "mid-stream" in attempt.steps[-1].extra["fault_message"]


def test_usage_that_was_seen_is_known_though_the_stream_breaks() -> None:
    _, attempt, _ = streamed(PIECE, USAGE)
    assert attempt.ticket.usage == Usage(5, 2, requests=1, cost_usd=5 * 1.0 + 2 * 2.0)


def test_a_stream_that_dies_before_its_first_byte_is_tried_again() -> None:
    answer, attempt, made = streamed()
    assert (answer.status, made) == (502, 3)
    assert attempt.ticket.usage == Usage()


def test_a_stream_that_stops_is_named_after_the_idle_time() -> None:
    answer, attempt, _ = streamed(PIECE, 5.0, request_timeout_seconds=0.2)
    assert (answer.body, answer.is_whole) == (PIECE, False)
    assert attempt.ticket.last_fault is not None
    assert attempt.ticket.last_fault.code is IssueCode.MODEL_TIMED_OUT


def test_a_long_stream_is_not_timed_out_while_pieces_come() -> None:
    answer, attempt, _ = streamed(
        *([PIECE, 0.1] * 6), b"data: [DONE]\n\n", end=True, request_timeout_seconds=0.4
    )
    assert answer.is_whole
    assert attempt.ticket.last_fault is None


def test_a_stream_that_ends_too_early_is_invalid_and_passed_as_it_is() -> None:
    answer, attempt, _ = streamed(PIECE, end=True)
    assert (answer.body, answer.is_whole) == (PIECE, True)
    assert attempt.ticket.last_fault is not None
    assert attempt.ticket.last_fault.code is IssueCode.MODEL_RESPONSE_INVALID


def test_an_error_event_is_passed_and_named() -> None:
    answer, attempt, made = streamed(PIECE, ERROR, end=True)
    assert (answer.body, made) == (PIECE + ERROR, 1)
    assert attempt.ticket.last_fault is not None
    assert attempt.ticket.last_fault.code is IssueCode.MODEL_UNAVAILABLE
    assert "overloaded" in attempt.ticket.last_fault.message
    assert attempt.ticket.usage == UNKNOWN


def test_an_error_in_place_of_any_word_is_not_paid() -> None:
    _, attempt, _ = streamed(ERROR, end=True)
    assert attempt.ticket.usage == Usage()


def test_a_stream_of_garbage_is_passed_and_named() -> None:
    garbage = b"\x00\xff nonsense\n\ndata: {broken\n\n"
    answer, attempt, _ = streamed(garbage, end=True)
    assert answer.body == garbage
    assert attempt.ticket.last_fault is not None
    assert attempt.ticket.last_fault.code is IssueCode.MODEL_RESPONSE_INVALID


def test_a_stream_that_is_too_large_is_cut() -> None:
    answer, attempt, _ = streamed(*([PIECE] * 50), max_response_bytes=1000)
    assert len(answer.body) <= 1000
    assert not answer.is_whole
    assert attempt.ticket.last_fault is not None
    assert attempt.ticket.last_fault.code is IssueCode.MODEL_OUTPUT_TOO_LARGE


# Who hangs up, and what is left.


def test_a_client_that_hangs_up_ends_the_endpoints_work_and_its_cost_is_unknown() -> None:
    gone = asyncio.Event()

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(SSE + chunk(PIECE))
        await reader.read()  # until the gateway lets go
        gone.set()
        writer.close()

    async def run() -> Attempt:
        async with scripted(handler) as url, gateway_before(url) as attempt:
            port = int(attempt.url.rpartition(":")[2])
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            data = orjson.dumps(body_of("openai-chat", stream=True))
            head = f"POST {CHAT} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(data)}\r\n"
            head += f"authorization: Bearer {attempt.ticket.token}\r\n\r\n"
            writer.write(head.encode() + data)
            await reader.readuntil(b"half a sen")
            writer.transport.abort()
            await asyncio.wait_for(gone.wait(), 10)
            while len(attempt.steps) < 2:
                await asyncio.sleep(0.01)
            assert attempt.endpoint.slots.in_use == 0
            return attempt

    attempt = asyncio.run(run())
    assert attempt.ticket.usage == UNKNOWN
    assert attempt.steps[-1].message == "half a sen"
    assert attempt.steps[-1].extra["fault"] == "cancelled"
    assert attempt.ticket.last_fault is None


def test_revoking_ends_calls_under_way_and_their_cost_becomes_unknown() -> None:
    async def run() -> Any:
        async with served(faults=["hang"]) as (attempt, mock):
            async with asyncio.TaskGroup() as group:
                call = group.create_task(ask(attempt, CHAT, body_of("openai-chat")))
                while not mock.server.stats.calls:
                    await asyncio.sleep(0.01)
                await attempt.ticket.revoke()
            assert attempt.endpoint.slots.in_use == 0
            return call.result(), attempt

    answer, attempt = asyncio.run(run())
    assert not answer.is_whole
    assert attempt.ticket.usage == UNKNOWN
    assert attempt.steps[-1].extra["fault"] == "cancelled"


def test_a_call_that_waits_for_its_turn_costs_nothing_when_it_is_ended() -> None:
    async def run() -> Any:
        async with served(faults=["hang"], max_connections=1) as (attempt, mock):
            other = await admitted(attempt.gateway, attempt.endpoint, attempt.secrets)
            async with asyncio.TaskGroup() as group:
                group.create_task(ask(attempt, CHAT, body_of("openai-chat")))
                while not mock.server.stats.calls:
                    await asyncio.sleep(0.01)
                group.create_task(ask(other, CHAT, body_of("openai-chat")))
                while not other.steps:
                    await asyncio.sleep(0.01)
                await other.ticket.revoke()
                await attempt.ticket.revoke()
            return other, mock.server.stats.calls

    other, made = asyncio.run(run())
    assert (other.ticket.usage, made) == (Usage(), 1)
    assert [step.source for step in other.steps] == ["user"]


def test_an_agent_that_does_not_read_gives_its_slot_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("steelyard.models.gateway.exchange.MAX_STALL_S", 0.1)
    big = b'data: {"choices":[{"index":0,"delta":{"content":"' + b"x" * 60_000 + b'"}}]}\n\n'

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(SSE)
        try:
            for _ in range(200):
                writer.write(chunk(big))
                await writer.drain()
        except ConnectionError:
            pass
        writer.close()

    async def run() -> Any:
        async with scripted(handler) as url, gateway_before(url) as attempt:
            port = int(attempt.url.rpartition(":")[2])
            _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1000)
            data = orjson.dumps(body_of("openai-chat", stream=True))
            head = f"POST {CHAT} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(data)}\r\n"
            head += f"authorization: Bearer {attempt.ticket.token}\r\n\r\n"
            writer.write(head.encode() + data)
            while len(attempt.steps) < 2:
                await asyncio.sleep(0.02)
            in_use = attempt.endpoint.slots.in_use
            writer.close()
            return in_use, attempt

    in_use, attempt = asyncio.run(run())
    assert in_use == 0
    assert attempt.steps[-1].extra["fault"] == "cancelled"
    assert len(attempt.steps[-1].message) <= 64 * 1024 + 100
