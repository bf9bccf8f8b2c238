"""What an agent makes the endpoint do counts, whether or not it waits to be told what it cost."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from steelyard.components.issues import IssueCode
from steelyard.models.allowance import Allowance
from tests.models.gateway.serving import (
    PATHS,
    SSE,
    Attempt,
    admitted,
    ask,
    body_of,
    chunk,
    gateway_before,
    read_request,
    scripted,
)

CHAT = PATHS["openai-chat"]
WORD = chunk(b'data: {"choices":[{"index":0,"delta":{"content":"word word "}}]}\n\n')


def calls_of(attempt: Attempt) -> int:
    return len([step for step in attempt.steps if step.source == "agent"])


async def hang_up(attempt: Attempt, body: Any, after_bytes: int) -> None:
    """Send a call, read as much of its answer, hang up, and wait until the gateway knows."""
    calls = calls_of(attempt)
    port = int(attempt.url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    data = orjson.dumps(body)
    head = f"POST {CHAT} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(data)}\r\n"
    writer.write(f"{head}authorization: Bearer {attempt.ticket.token}\r\n\r\n".encode() + data)
    if after_bytes:
        await reader.readexactly(after_bytes)
    else:
        await asyncio.sleep(0.05)  # it is with the endpoint by then
    writer.close()
    while calls_of(attempt) == calls:
        await asyncio.sleep(0.005)


async def talkative(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A stream that begins and then stands still, its usage never told; else no answer at all."""
    if b'"stream":true' in await read_request(reader):
        writer.write(SSE + WORD * 10)
    await asyncio.sleep(60)


@pytest.mark.parametrize("after_bytes", [1, 200, 700])
@pytest.mark.parametrize("bound", ["usd", "tokens"])
def test_streams_that_are_never_read_to_the_end_spend_the_allowance(
    after_bytes: int, bound: str
) -> None:
    async def run() -> tuple[int, Attempt]:
        allowance = Allowance(usd=300.0) if bound == "usd" else Allowance(tokens=300)
        async with (
            scripted(talkative) as url,
            gateway_before(url, allowance=allowance) as attempt,
        ):
            made = 0
            while allowance.overrun() is None and made < 50:
                await hang_up(attempt, body_of("openai-chat", "x" * 200, stream=True), after_bytes)
                made += 1
            assert (await ask(attempt, CHAT, body_of("openai-chat"))).status == 402
            return made, attempt

    made, attempt = asyncio.run(run())
    assert 1 <= made <= 6
    assert attempt.faults[0].code is IssueCode.ATTEMPT_BUDGET
    assert attempt.ticket.usage.cost_usd is None  # the record still says that nobody knows
    assert attempt.ticket.usage.output_tokens == 0


def test_a_call_that_is_dropped_unanswered_counts_as_all_that_it_asked_for() -> None:
    async def run() -> tuple[int, int]:
        async with scripted(talkative) as url, gateway_before(url) as first:
            small = await admitted(first.gateway, first.endpoint, first.secrets)
            await hang_up(first, body_of("openai-chat", max_tokens=5000, n=3), 0)
            await hang_up(small, body_of("openai-chat", max_tokens=5), 0)
            return first.ticket.allowance.spent_tokens, small.ticket.allowance.spent_tokens

    large, small = asyncio.run(run())
    assert 15_000 <= large <= 15_050
    assert 5 <= small <= 55


LIES = [
    b"null",
    b'{"prompt_tokens":-5,"completion_tokens":7}',
    b'{"prompt_tokens":5,"completion_tokens":1e30}',
    b'{"prompt_tokens":5,"completion_tokens":99999999999999999999999999}',
    b'{"prompt_tokens":"9","completion_tokens":[1]}',
    b"[]",
    b'"lots"',
]


@pytest.mark.parametrize("usage", LIES)
@pytest.mark.parametrize("stream", [False, True])
def test_an_endpoint_that_lies_about_usage_gives_nothing_away(usage: bytes, stream: bool) -> None:
    said = b'{"content":"%b"},"finish_reason":"stop"}]' % (b"x" * 400)
    told = chunk(b'data: {"choices":[],"usage":%b}\n\n' % usage)

    async def lying(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        if stream:
            words = chunk(b'data: {"choices":[{"index":0,"delta":%b}\n\n' % said)
            done = chunk(b"data: [DONE]\n\n")
            writer.write(SSE + words + told * 2 + done + told + b"0\r\n\r\n")
        else:
            body = b'{"choices":[{"message":%b,"usage":%b}' % (said, usage)
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body)

    async def run() -> Attempt:
        allowance = Allowance(tokens=10_000)
        async with scripted(lying) as url, gateway_before(url, allowance=allowance) as attempt:
            body = body_of("openai-chat", stream=stream)
            assert (await ask(attempt, CHAT, body)).status == 200
            return attempt

    attempt = asyncio.run(run())
    assert not attempt.faults
    assert attempt.ticket.usage.cost_usd is None
    assert 100 <= attempt.ticket.allowance.spent_tokens <= 200
