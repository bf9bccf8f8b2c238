"""An endpoint that hangs, dies, lies or says no: what the agent sees, and what is on record."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import orjson
import pytest

from steelyard.components.issues import SEVERITY, IssueCode, Severity
from steelyard.components.values import Usage
from tests.models.calling import PROTOCOLS
from tests.models.gateway.serving import (
    KEY,
    PATHS,
    SSE,
    Answer,
    Attempt,
    admitted,
    ask,
    body_of,
    chunk,
    exchange,
    gateway_before,
    read_request,
    scripted,
    served,
)

CHAT = PATHS["openai-chat"]
UNKNOWN = Usage(requests=1, cost_usd=None)


def calls(
    *faults: str,
    protocol: str = "openai-chat",
    times: int = 1,
    stream: bool = False,
    **options: Any,
) -> tuple[list[Answer], Attempt, int]:
    """Make calls while the mock misbehaves; give answers, the attempt, and calls it got."""

    async def run() -> Any:
        more = {"api_protocol": protocol, "max_request_retries": 2, **options}
        async with served(faults=faults, **more) as (attempt, mock):
            body = body_of(protocol) | ({"stream": True} if stream else {})
            answers = [await ask(attempt, PATHS[protocol], body) for _ in range(times)]
            return answers, attempt, mock.server.stats.calls

    found: tuple[list[Answer], Attempt, int] = asyncio.run(run())
    return found


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "fault", ["429:first=2,retry_after=0", "503:first=1", "529:first=1", "reset:first=2"]
)
def test_what_passes_by_is_tried_again_and_the_agent_sees_success_only(
    protocol: str, stream: bool, fault: str
) -> None:
    answers, attempt, made = calls(fault, protocol=protocol, stream=stream)
    assert answers[0].status == 200
    assert answers[0].is_whole
    assert made == 1 + int(fault.partition("first=")[2][:1])
    assert attempt.ticket.usage.cost_usd is not None
    assert attempt.ticket.last_fault is None
    assert attempt.steps[-1].extra["retries"] == made - 1


def test_waiting_for_another_try_is_not_the_agents_time() -> None:
    answers, attempt, _ = calls("429:first=1,retry_after=0.05")
    assert answers[0].status == 200
    assert attempt.timer.waited_s >= 0.05


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_endpoint_that_stays_away_is_told_in_the_protocols_words_and_remembered(
    protocol: str,
) -> None:
    answers, attempt, made = calls("503", protocol=protocol, times=2)
    assert [answer.status for answer in answers] == [503, 503]
    assert made == 6
    assert answers[0].headers["x-should-retry"] == "false"
    assert answers[0].json()["error"]["message"]
    assert attempt.ticket.last_fault is not None
    assert attempt.ticket.last_fault.code is IssueCode.MODEL_UNAVAILABLE
    assert attempt.faults == []
    assert attempt.ticket.usage == Usage()
    assert attempt.steps[-1].extra["fault"] == "model_unavailable"


def test_a_later_success_clears_what_is_remembered() -> None:
    answers, attempt, _ = calls("503:first=1", times=2, max_request_retries=0)
    assert [answer.status for answer in answers] == [503, 200]
    assert attempt.ticket.last_fault is None


@pytest.mark.parametrize("status", [401, 402, 403, 404, 307])
def test_an_endpoint_that_rejects_us_ends_the_attempt_as_the_requests_fault(status: int) -> None:
    answers, attempt, made = calls(str(status), times=3)
    assert answers[0].status == (502 if status == 307 else status)
    assert [answer.status for answer in answers[1:]] == [502, 502]
    assert made == 1
    assert len(attempt.faults) == 1
    assert attempt.faults[0].code is IssueCode.MODEL_ENDPOINT_REJECTED
    assert attempt.faults[0].request_fault


def test_a_rejection_after_a_success_is_the_agents_to_see() -> None:
    answers, attempt, _ = calls("403:after=1", times=2)
    assert [answer.status for answer in answers] == [200, 403]
    assert attempt.faults == []
    assert attempt.ticket.last_fault is not None


def test_a_protocol_that_the_endpoint_does_not_speak_rejects_no_request() -> None:
    async def run() -> Any:
        async with served(faults=["404:first=1"], api_protocol="openai-chat") as (attempt, _):
            first = await ask(attempt, PATHS["anthropic"], body_of("anthropic"))
            second = await ask(attempt, CHAT, body_of("openai-chat"))
            return first.status, second.status, attempt.faults

    assert asyncio.run(run()) == (404, 200, [])


def test_an_agent_cannot_make_its_failure_the_endpoints_by_asking_in_a_foreign_protocol() -> None:
    async def run() -> tuple[int, IssueCode | None]:
        async with served(faults=["404:first=1"], api_protocol="openai-chat") as (attempt, _):
            answer = await ask(attempt, PATHS["anthropic"], body_of("anthropic"))
            fault = attempt.ticket.last_fault
            return answer.status, None if fault is None else fault.code

    status, code = asyncio.run(run())
    assert status == 404
    assert code is IssueCode.MODEL_REQUEST_REFUSED
    assert SEVERITY[code] is Severity.ERROR


def test_one_attempts_wrong_key_is_every_attempts() -> None:
    async def run() -> Any:
        async with served(mock={"required_key": "another"}) as (attempt, mock):
            other = await admitted(attempt.gateway, attempt.endpoint, attempt.secrets)
            async with asyncio.TaskGroup() as group:
                for one in (attempt, other) * 10:
                    group.create_task(ask(one, CHAT, body_of("openai-chat")))
            return mock.server.stats.calls, attempt.faults, other.faults

    made, ours, theirs = asyncio.run(run())
    assert made == 1
    assert [fault.request_fault for fault in (*ours, *theirs)] == [True, True]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("status", [400, 422])
def test_a_refused_request_is_passed_back_as_it_came(protocol: str, status: int) -> None:
    answers, attempt, made = calls(f"{status}:message=bad temperature", protocol=protocol)
    assert (answers[0].status, made) == (status, 1)
    assert "bad temperature" in answers[0].json()["error"]["message"]
    assert attempt.ticket.last_fault is not None
    assert attempt.ticket.last_fault.code is IssueCode.MODEL_REQUEST_REFUSED
    assert attempt.faults == []


def test_a_conversation_that_is_too_long_is_named() -> None:
    _, attempt, _ = calls("400:code=context_length_exceeded,message=prompt is too long")
    assert attempt.ticket.last_fault is not None
    assert attempt.ticket.last_fault.code is IssueCode.CONTEXT_OVERFLOW


@pytest.mark.parametrize("at", ["hang", "hang:at=body"])
def test_an_endpoint_that_hangs_is_named_and_its_cost_unknown(at: str) -> None:
    answers, attempt, made = calls(at, request_timeout_seconds=0.1)
    assert (answers[0].status, made) == (504, 1)
    assert attempt.ticket.last_fault is not None
    assert attempt.ticket.last_fault.code is IssueCode.MODEL_TIMED_OUT
    assert attempt.ticket.usage == UNKNOWN


@pytest.mark.parametrize("fault", ["malformed_json", "wrong_shape", "empty_body"])
def test_garbage_is_passed_back_as_it_came_and_named(fault: str) -> None:
    answers, attempt, made = calls(fault)
    assert (answers[0].status, made) == (200, 1)
    assert attempt.ticket.last_fault is not None
    assert attempt.ticket.last_fault.code is IssueCode.MODEL_RESPONSE_INVALID
    assert attempt.ticket.usage == UNKNOWN
    assert attempt.steps[-1].extra["fault"] == "model_response_invalid"


@pytest.mark.parametrize("how", ["missing", "negative", "text", "huge"])
def test_usage_that_cannot_be_right_is_unknown(how: str) -> None:
    answers, attempt, _ = calls(f"wrong_usage:how={how}")
    assert answers[0].status == 200
    assert attempt.ticket.usage == UNKNOWN


def test_an_answer_that_is_too_large_is_cut() -> None:
    answers, attempt, _ = calls("huge_body:mb=3", max_response_bytes=100_000)
    assert answers[0].status == 502
    assert len(answers[0].body) < 1000
    assert attempt.ticket.last_fault is not None
    assert attempt.ticket.last_fault.code is IssueCode.MODEL_OUTPUT_TOO_LARGE


def test_a_slow_body_is_waited_for() -> None:
    answers, _, _ = calls("slow_body:seconds=0.2")
    assert answers[0].status == 200


def test_an_endpoint_that_is_not_there_is_unavailable() -> None:
    async def run() -> Any:
        async with gateway_before("http://127.0.0.1:9/v1", max_request_retries=1) as attempt:
            return await ask(attempt, CHAT, body_of("openai-chat")), attempt

    answer, attempt = asyncio.run(run())
    assert answer.status == 502
    assert attempt.ticket.last_fault.code is IssueCode.MODEL_UNAVAILABLE
    assert "tried 2 times" in attempt.ticket.last_fault.message


# Secrets.


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize("status", [200, 400, 500])
def test_the_real_key_never_reaches_the_agent(status: int, is_stream: bool) -> None:
    """The endpoint quotes what it was sent, in its headers and its body, in any form."""

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            try:
                request = await read_request(reader)
            except asyncio.IncompleteReadError:
                writer.close()
                return
            assert KEY.encode() in request
            message = {"role": "assistant", "content": f"your key is {KEY}"}
            said: dict[str, Any] = {"choices": [{"index": 0, "message": message}], "quoted": KEY}
            if status != 200:
                said = {"error": {"message": f"bad key: {request.decode()} {json.dumps(KEY)}"}}
            if is_stream and status == 200:
                delta = {"choices": [{"index": 0, "delta": message, "finish_reason": "stop"}]}
                data = b"data: " + orjson.dumps(delta) + b"\n\ndata: [DONE]\n\n"
                writer.write(SSE)
                for i in range(0, len(data), 7):
                    writer.write(chunk(data[i : i + 7]))
                    await writer.drain()
                    await asyncio.sleep(0)
                writer.write(b"0\r\n\r\n")
                continue
            data = orjson.dumps(said)
            head = f"HTTP/1.1 {status} X\r\ncontent-type: application/json\r\nx-request-id: {KEY}"
            head += f"\r\nset-cookie: {KEY}\r\ncontent-length: {len(data)}\r\n\r\n"
            writer.write(head.encode() + data)

    async def run() -> Any:
        async with (
            scripted(handler) as url,
            gateway_before(url, max_request_retries=1) as attempt,
        ):
            body = body_of("openai-chat", stream=is_stream)
            return await ask(attempt, CHAT, body), attempt

    answer, attempt = asyncio.run(run())
    assert answer.status == status
    kept = json.dumps([step.as_json() for step in attempt.steps]) + repr(attempt.faults)
    kept += repr(attempt.ticket.last_fault)
    assert KEY not in answer.raw.decode()
    assert KEY not in kept
    assert "[redacted]" in kept + answer.raw.decode()
    assert b"cookie" not in answer.raw


def test_a_step_that_cannot_be_kept_ends_the_attempt_as_our_fault() -> None:
    async def run() -> Any:
        async with served() as (attempt, _):

            def fails(_: object) -> None:
                raise OSError("disk full")

            attempt.ticket._on_step = fails
            answer = await ask(attempt, CHAT, body_of("openai-chat"))
            return answer.status, attempt.faults

    status, faults = asyncio.run(run())
    assert status == 500
    assert [fault.code for fault in faults] == [IssueCode.UNKNOWN]
    assert "disk full" in faults[0].message


def test_raw_exchange_reads_what_is_left_after_a_reset() -> None:
    """The tests' own reader: a reset is no whole answer."""

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n")
        writer.close()

    async def run() -> Answer:
        async with scripted(handler) as url:
            return await exchange("127.0.0.1", int(url.rpartition(":")[2][:-3]), b"x\r\n")

    assert asyncio.run(run()).is_whole is False
