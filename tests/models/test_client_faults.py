"""The client against the mock process over loopback: every fault, in every protocol."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from steelyard.components.clock import AgentTimer
from steelyard.components.issues import AttemptFault, IssueCode
from steelyard.components.model import ModelResponse
from steelyard.models.adaptive import AdaptiveLimit
from steelyard.models.calls import LOST, SAID_AGAIN_S, Calls, Failure
from steelyard.models.client import Endpoint
from steelyard.models.lines import Line
from steelyard.models.slots import Slots
from steelyard.testing.clock import FakeClock
from steelyard.testing.endpoint import MockEndpoint
from tests.models.calling import PROTOCOLS, QUICK, ask, client_of, endpoint, fault_of, with_endpoint

pytestmark = pytest.mark.integration

FAULTS = {
    "slow-down": "429:first=2,per=prompt,retry_after=0",
    "always-429": "429",
    "flaky-500": "500:first=2,per=prompt",
    "always-503": "503",
    "overloaded": "529:first=1,per=prompt",
    "locked": "409:first=1,per=prompt",
    "late": "408:first=1,per=prompt",
    "reset-once": "reset:first=1,per=prompt",
    "reset-in-body": "reset:at=body,first=1,per=prompt",
    "always-reset": "reset",
    "no-money": "402",
    "forbidden": "403",
    "nowhere": "404",
    "refused": "400:message=bad temperature",
    "unprocessable": "422",
    "too-long": "400:code=context_length_exceeded,message=prompt is too long",
    "moved": "307",
    "malformed": "malformed_json",
    "shapeless": "wrong_shape",
    "silent": "empty_body",
    "hangs": "hang",
    "hangs-in-body": "hang:at=body",
    "slow": "slow_body:seconds=0.1",
    "huge": "huge_body:mb=50",
    "no-usage": "wrong_usage:how=missing",
    "negative-usage": "wrong_usage:how=negative",
    "text-usage": "wrong_usage:how=text",
    "huge-usage": "wrong_usage:how=huge",
}
ENDS: dict[str, IssueCode] = {
    "always-429": IssueCode.MODEL_UNAVAILABLE,
    "always-503": IssueCode.MODEL_UNAVAILABLE,
    "always-reset": IssueCode.MODEL_UNAVAILABLE,
    "no-money": IssueCode.MODEL_ENDPOINT_REJECTED,
    "forbidden": IssueCode.MODEL_ENDPOINT_REJECTED,
    "nowhere": IssueCode.MODEL_ENDPOINT_REJECTED,
    "moved": IssueCode.MODEL_ENDPOINT_REJECTED,
    "refused": IssueCode.MODEL_REQUEST_REFUSED,
    "unprocessable": IssueCode.MODEL_REQUEST_REFUSED,
    "too-long": IssueCode.CONTEXT_OVERFLOW,
    "malformed": IssueCode.MODEL_RESPONSE_INVALID,
    "shapeless": IssueCode.MODEL_RESPONSE_INVALID,
    "silent": IssueCode.MODEL_RESPONSE_INVALID,
    "hangs": IssueCode.MODEL_TIMED_OUT,
    "hangs-in-body": IssueCode.MODEL_TIMED_OUT,
    "huge": IssueCode.MODEL_OUTPUT_TOO_LARGE,
}
RECOVERS = {
    "slow-down": 2,
    "flaky-500": 2,
    "overloaded": 1,
    "locked": 1,
    "late": 1,
    "reset-once": 1,
    "reset-in-body": 1,
    "slow": 0,
}


@pytest.fixture(scope="module")
def mock() -> Iterator[MockEndpoint]:
    options = [
        f"--fault={spec.replace(':', f':model={model},', 1)}"
        if ":" in spec
        else f"--fault={spec}:model={model}"
        for model, spec in FAULTS.items()
    ]
    with MockEndpoint("--echo", "--keep-bodies", "500", *options) as running:
        yield running


def fails(mock: MockEndpoint, protocol: str, model: str) -> tuple[AttemptFault, Any]:
    async def work(made: Endpoint) -> tuple[AttemptFault, Any]:
        client = client_of(made)
        return await fault_of(client.generate(ask(f"{protocol} {model}"))), client.usage

    found: tuple[AttemptFault, Any] = with_endpoint(
        mock.url,
        work,
        id=model,
        api_protocol=protocol,
        request_timeout_seconds=0.3 if model.startswith("hangs") else 60,
        max_request_retries=2,
    )
    return found


def succeeds(mock: MockEndpoint, protocol: str, model: str) -> ModelResponse:
    async def work(made: Endpoint) -> ModelResponse:
        return await client_of(made).generate(ask(f"{protocol} {model}"))

    found: ModelResponse = with_endpoint(mock.url, work, id=model, api_protocol=protocol)
    return found


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(("model", "code"), ENDS.items())
def test_each_fault_ends_with_its_cause(
    mock: MockEndpoint, protocol: str, model: str, code: IssueCode
) -> None:
    fault, _ = fails(mock, protocol, model)
    assert fault.code is code
    assert fault.request_fault is (code is IssueCode.MODEL_ENDPOINT_REJECTED)
    assert len(fault.message) < 700


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(("model", "retries"), RECOVERS.items())
def test_each_passing_fault_is_outlived(
    mock: MockEndpoint, protocol: str, model: str, retries: int
) -> None:
    got = succeeds(mock, protocol, model)
    assert (got.text, got.retries, got.usage_known) == (f"{protocol} {model}", retries, True)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("model", ["no-usage", "negative-usage", "text-usage", "huge-usage"])
def test_wrong_usage_leaves_the_answer_and_an_unknown_cost(
    mock: MockEndpoint, protocol: str, model: str
) -> None:
    got = succeeds(mock, protocol, model)
    assert got.text == f"{protocol} {model}"
    assert not got.usage_known
    assert (got.usage.requests, got.usage.input_tokens, got.usage.cost_usd) == (1, 0, None)


def test_the_endpoints_words_are_quoted(mock: MockEndpoint) -> None:
    fault, _ = fails(mock, "openai-chat", "refused")
    assert "answered 400: bad temperature" in fault.message


def test_a_call_that_may_have_been_paid_leaves_an_unknown_cost(mock: MockEndpoint) -> None:
    _, usage = fails(mock, "openai-chat", "hangs")
    assert (usage.requests, usage.cost_usd) == (1, None)


def test_a_call_that_was_refused_cost_nothing(mock: MockEndpoint) -> None:
    _, usage = fails(mock, "openai-chat", "refused")
    assert (usage.requests, usage.cost_usd) == (0, 0.0)


def test_retries_end_after_their_number(mock: MockEndpoint) -> None:
    before = mock.stats()["by_model"].get("always-503", 0)
    fault, _ = fails(mock, "openai-chat", "always-503")
    assert mock.stats()["by_model"]["always-503"] - before == 3
    assert "tried 3 times" in fault.message


def test_a_refused_connection_is_unavailable_after_retries() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, not listening: connections are refused
        port = taken.getsockname()[1]

        async def work(made: Endpoint) -> AttemptFault:
            return await fault_of(client_of(made).generate(ask()))

        fault = with_endpoint(f"http://127.0.0.1:{port}/v1", work, max_request_retries=1)
    assert (fault.code, fault.request_fault) == (IssueCode.MODEL_UNAVAILABLE, False)


def test_a_rejection_after_a_success_is_one_attempts_trouble() -> None:
    with MockEndpoint("--fault", "401:after=1") as running:

        async def work(made: Endpoint) -> AttemptFault:
            await client_of(made).generate(ask())
            return await fault_of(client_of(made).generate(ask()))

        fault = with_endpoint(running.url, work)
    assert (fault.code, fault.request_fault) == (IssueCode.MODEL_ENDPOINT_REJECTED, False)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_wrong_key_costs_one_call_however_many_attempts_run(protocol: str) -> None:
    with MockEndpoint("--require-key", "right-key") as running:

        async def work(made: Endpoint) -> list[AttemptFault]:
            calls = (fault_of(client_of(made).generate(ask(str(i)))) for i in range(64))
            return await asyncio.gather(*calls)

        faults = with_endpoint(running.url, work, api_protocol=protocol)
        assert running.stats()["calls"] == 1
    assert all(fault.request_fault for fault in faults)
    assert {fault.code for fault in faults} == {IssueCode.MODEL_ENDPOINT_REJECTED}


def test_a_slow_rejection_stops_those_that_have_not_been_sent() -> None:
    with MockEndpoint("--fault", "401", "--latency", "0.5") as running:

        async def work(made: Endpoint) -> list[AttemptFault]:
            calls = (fault_of(client_of(made).generate(ask(str(i)))) for i in range(64))
            return await asyncio.gather(*calls)

        faults = with_endpoint(running.url, work, max_connections=8)
        assert running.stats()["calls"] <= 8
    assert all(fault.request_fault for fault in faults)


def test_fifty_megabytes_never_lie_in_memory(mock: MockEndpoint) -> None:
    import tracemalloc

    tracemalloc.start()
    try:
        fault, _ = fails(mock, "openai-chat", "huge")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert fault.code is IssueCode.MODEL_OUTPUT_TOO_LARGE
    assert peak < 24 * 1024 * 1024  # the limit is 16 MiB


def test_a_client_outlives_the_restart_of_its_endpoint() -> None:
    async def run() -> None:
        with MockEndpoint("--echo") as first:
            made = endpoint(first.url)
            try:
                await client_of(made).generate(ask())
                port = first.url.rpartition(":")[2].partition("/")[0]
                first.__exit__(None, None, None)
                with MockEndpoint("--echo", "--port", port):
                    got = await client_of(made).generate(ask("again"))
                assert got.text == "again"
            finally:
                await made.close()

    asyncio.run(run())


def test_an_endpoint_that_does_not_answer_is_said_once_while_it_is_tried_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # nobody listens there
        url = f"http://127.0.0.1:{held.getsockname()[1]}/v1"

        async def work(made: Endpoint) -> None:
            for _ in range(3):
                await fault_of(client_of(made).generate(ask("x")))

        with caplog.at_level(logging.WARNING):
            with_endpoint(url, work, max_request_retries=2)
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith(f"{url.removesuffix('/v1')} ")
    assert said.endswith("; it is tried again, up to 2 times a call")


@pytest.mark.parametrize("model", ["slow-down", "flaky-500"])
def test_an_endpoint_that_answers_though_not_with_an_answer_is_not_called_silent(
    mock: MockEndpoint, model: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        succeeds(mock, "openai-chat", model)
    assert caplog.records == []


def test_silence_is_said_again_once_it_was_broken_and_not_often(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = FakeClock()
    line = Line(object(), Slots(AdaptiveLimit(4)), None, None)  # type: ignore[arg-type]
    none = Failure(LOST, "did not answer")
    tries: list[Any] = []

    async def send() -> Any:
        return tries.pop(0)

    async def asleep(_: float) -> None:
        return

    calls = Calls(line, "http://a", max_retries=1, clock=clock, seed=0, backoff=QUICK, sleep=asleep)

    async def call(*outcomes: Any) -> None:
        tries[:] = outcomes
        await calls.make(send, body_bytes=1, timer=AgentTimer(clock))

    async def work() -> list[int]:
        counts = []
        for wait_s, outcomes in (
            (0, (none, none)),
            (100, (none, none)),  # it has been silent all the time
            (0, (none, Answered())),
            (0, (none, Answered())),  # it had answered
            (0, (none, Answered())),  # now and then a connection breaks off: that is said already
            (SAID_AGAIN_S + 100, (none, none)),
        ):
            clock.advance(wait_s)
            await call(*outcomes)
            counts.append(len(caplog.records))
        return counts

    with caplog.at_level(logging.WARNING):
        assert asyncio.run(work()) == [1, 1, 1, 2, 2, 3]
    assert caplog.records[0].getMessage() == "http://a did not answer; it is tried again, once more"


class Answered:
    """A try that brought an answer."""

    counts = None
