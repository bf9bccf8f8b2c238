"""The client's limits, waits, keys and counts, against a mock on the same loop."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from steelyard.components.clock import AgentTimer, SystemClock
from steelyard.components.issues import AttemptFault, IssueCode
from steelyard.config.errors import BadInput
from steelyard.config.secrets import SecretStore, SecretUnavailable
from steelyard.models.adaptive import AdaptiveLimit
from steelyard.models.address import parse_address
from steelyard.models.client import make_endpoint
from steelyard.models.lines import Lines
from steelyard.models.mock.answers import echo
from steelyard.models.protocols import PROTOCOLS as WIRES
from steelyard.models.slots import Slots
from steelyard.testing.endpoint import mock_endpoint
from tests.models.calling import PROTOCOLS, ask, client_of, endpoint, fault_of, settings

PARAMS = {
    "temperature": 0.3,
    "max_tokens": 9,
    "provider": {"order": ["a", {"b": [1.5, None, "ü"]}], "": {}},
    "unknown_thing": 2**66,
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_parameter_reaches_the_endpoint_as_it_is(protocol: str) -> None:
    async def run() -> dict[str, Any]:
        async with mock_endpoint(keep_bodies=1) as mock:
            made = endpoint(mock.url, api_protocol=protocol, params=PARAMS)
            await client_of(made).generate(ask("hello"))
            await made.close()
            return mock.server.stats.as_json()["bodies"][0]

    seen = asyncio.run(run())
    body = json.loads(seen["body"])
    assert {key: body[key] for key in PARAMS} == PARAMS
    texts = body["input"] if protocol == "openai-responses" else body["messages"]
    assert texts == [{"role": "user", "content": "hello"}]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_key_goes_where_the_protocol_wants_it(protocol: str) -> None:
    async def run() -> str:
        secrets = SecretStore({"KEY": "sekret-1234"})
        async with mock_endpoint(required_key="sekret-1234") as mock:
            made = endpoint(
                mock.url, secrets=secrets, api_protocol=protocol, api_key={"$secret": "env:KEY"}
            )
            got = await client_of(made).generate(ask())
            await made.close()
            return got.text

    assert asyncio.run(run()) == "OK"


def test_extra_headers_win_over_ours() -> None:
    async def run() -> str:
        secrets = SecretStore({"H": "Bearer other-key"})
        async with mock_endpoint(required_key="other-key") as mock:
            made = endpoint(
                mock.url,
                secrets=secrets,
                api_key={"$secret": "env:H"},
                extra_headers={"Authorization": {"$secret": "env:H"}},
            )
            got = await client_of(made).generate(ask())
            await made.close()
            return got.text

    assert asyncio.run(run()) == "OK"


def test_a_key_that_is_nowhere_is_named() -> None:
    with pytest.raises(SecretUnavailable, match="env:MISSING"):
        endpoint("http://127.0.0.1:1/v1", api_key={"$secret": "env:MISSING"})


@pytest.mark.parametrize(
    "url", ["ftp://x/v1", "127.0.0.1:80", "http://", "http://a b/", "http://x:0"]
)
def test_an_address_that_is_none_is_bad_input(url: str) -> None:
    with pytest.raises(BadInput, match="base_url"):
        endpoint(url)


def test_a_key_with_a_line_end_is_refused_and_not_quoted() -> None:
    with pytest.raises(BadInput) as caught:
        endpoint(
            "http://127.0.0.1:1/v1",
            secrets=SecretStore({"K": "sekret\r\nx: y"}),
            api_key={"$secret": "env:K"},
        )
    assert "sekret" not in str(caught.value)


@pytest.mark.parametrize("name", ["model", "messages", "stream"])
def test_params_that_would_replace_the_harness_words_are_refused(name: str) -> None:
    with pytest.raises(BadInput, match=name):
        endpoint("http://127.0.0.1:1/v1", params={name: True})


def test_the_openai_base_url_variable_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-from-the-environment")
    made = make_endpoint(
        {"id": "m"}, SecretStore({}), prices={"m": PRICE}, clock=SystemClock(), seed=0
    )
    assert made.settings.address.origin == "https://api.openai.com"
    assert b"authorization" not in dict(made.settings.headers)


def test_loopback_never_goes_through_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "")

    async def run() -> str:
        async with mock_endpoint(sources=[echo]) as mock:
            made = endpoint(mock.url)
            got = await client_of(made).generate(ask("direct"))
            await made.close()
            return got.text

    assert asyncio.run(run()) == "direct"


def test_a_proxy_of_the_environment_is_used_for_other_hosts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def run(no_proxy: str) -> AttemptFault:
        async with mock_endpoint() as mock:
            monkeypatch.setenv("http_proxy", mock.url.removesuffix("/v1"))
            monkeypatch.setenv("no_proxy", no_proxy)
            made = endpoint("http://models.invalid/v1", max_request_retries=0)
            fault = await fault_of(client_of(made).generate(ask()))
            await made.close()
            return fault

    # The mock refuses the host name it is asked to pass on to: so it was asked.
    assert "answered 403: this host name is not served" in asyncio.run(run("")).message
    direct = asyncio.run(run("models.invalid"))
    assert direct.code is IssueCode.MODEL_UNAVAILABLE


@pytest.mark.parametrize(
    "garbage",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"\x00\xff\x16\x03\x01" * 50,
        b"HTTP/1.1 200 OK\r\ncontent-length: ten\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 50_000,
        b"",
    ],
)
def test_an_endpoint_that_does_not_speak_http_is_unavailable(garbage: bytes) -> None:
    async def run() -> AttemptFault:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(100)
            writer.write(garbage)
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        made = endpoint(f"http://127.0.0.1:{port}/v1", max_request_retries=1)
        fault = await fault_of(client_of(made).generate(ask()))
        await made.close()
        server.close()
        await server.wait_closed()
        return fault

    fault = asyncio.run(run())
    assert (fault.code, fault.request_fault) == (IssueCode.MODEL_UNAVAILABLE, False)


def test_settings_do_not_show_their_secrets() -> None:
    made = endpoint(
        "http://user:pass-word-1@127.0.0.1:1/v1",
        secrets=SecretStore({"K": "sekret-1234"}),
        api_key={"$secret": "env:K"},
    )
    shown = repr(made.settings)
    assert "sekret" not in shown
    assert "pass-word" not in shown
    assert made.settings.address.origin == "http://127.0.0.1:1"


@pytest.mark.parametrize(
    ("base", "protocol", "target"),
    [
        ("https://api.openai.com/v1", "openai-chat", "/v1/chat/completions"),
        ("https://h/v1/", "openai-responses", "/v1/responses"),
        ("https://api.anthropic.com", "anthropic", "/v1/messages"),
        ("https://h/v1", "anthropic", "/v1/messages"),
        ("https://h/proxy/v1", "anthropic", "/proxy/v1/messages"),
        ("https://h/d/m?api-version=2", "openai-chat", "/d/m/chat/completions?api-version=2"),
        ("https://h/a b", "openai-chat", None),
        ("https://h/ä", "openai-chat", "/%C3%A4/chat/completions"),
    ],
)
def test_a_base_url_is_joined_with_the_protocols_path(
    base: str, protocol: str, target: str | None
) -> None:
    path = WIRES[protocol].path
    if target is None:
        with pytest.raises(BadInput):
            parse_address(base)
    else:
        assert parse_address(base).target(path) == target


def test_no_more_calls_are_in_flight_than_connections_allow() -> None:
    async def run() -> int:
        async with mock_endpoint(latency="0.02") as mock:
            made = endpoint(mock.url, max_connections=5)
            await asyncio.gather(*(client_of(made).generate(ask(str(i))) for i in range(30)))
            await made.close()
            return mock.server.stats.max_in_flight

    assert asyncio.run(run()) == 5


def test_requests_to_one_address_share_its_connections_and_limit() -> None:
    async def run() -> int:
        lines = Lines()
        async with mock_endpoint(latency="0.02") as mock:
            two = [
                make_endpoint(
                    settings(mock.url, max_connections=4) | {"id": model},
                    SecretStore({}),
                    clock=SystemClock(),
                    seed=0,
                    lines=lines,
                )
                for model in ("a", "b")
            ]
            await asyncio.gather(
                *(client_of(made).generate(ask(str(i))) for i in range(12) for made in two)
            )
            for made in two:
                await made.close()
            return mock.server.stats.max_in_flight

    assert asyncio.run(run()) == 4


def test_concurrency_shrinks_on_429_and_everything_is_answered() -> None:
    async def run() -> int:
        async with mock_endpoint(faults=["429:first=1,per=prompt"]) as mock:
            made = endpoint(mock.url, max_connections=16)
            await asyncio.gather(*(client_of(made).generate(ask(str(i))) for i in range(16)))
            await made.close()
            return made.slots.limit.allowed

    assert asyncio.run(run()) < 16


def test_waiting_for_slots_and_retries_is_not_the_agents_time() -> None:
    async def run() -> tuple[float, float]:
        clock = SystemClock()
        async with mock_endpoint(faults=["429:first=1,retry_after=0.05"]) as mock:
            made = endpoint(mock.url)
            timer = AgentTimer(clock)
            got = await made.client(timer).generate(ask())
            await made.close()
            return timer.waited_s, got.latency_s

    waited_s, latency_s = asyncio.run(run())
    assert waited_s >= 0.05
    assert latency_s < waited_s + 1


def test_requests_a_minute_are_held() -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    async def run() -> None:
        async with mock_endpoint() as mock:
            made = make_endpoint(
                settings(mock.url, rpm=60),
                SecretStore({}),
                clock=SystemClock(),
                seed=0,
                sleep=sleep,
            )
            for index in range(4):
                await client_of(made).generate(ask(str(index)))
            await made.close()

    asyncio.run(run())
    assert len(waits) == 3
    assert waits[2] > 1.5


def test_tokens_a_minute_are_held() -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    async def run() -> None:
        async with mock_endpoint() as mock:
            made = make_endpoint(
                settings(mock.url, tpm=600),
                SecretStore({}),
                clock=SystemClock(),
                seed=0,
                sleep=sleep,
            )
            for index in range(4):
                await client_of(made).generate(ask("word " * 200 + str(index)))
            await made.close()

    asyncio.run(run())
    assert waits
    assert max(waits) > 20


PRICE = {"input_per_mtok": 1e6, "output_per_mtok": 2e6, "cached_per_mtok": None}


def test_usage_and_cost_add_up_over_an_attempts_calls() -> None:
    async def run() -> Any:
        async with mock_endpoint(sources=[echo]) as mock:
            made = endpoint(mock.url, prices={"mock": PRICE})
            client = client_of(made)
            first = await client.generate(ask("a" * 40))
            second = await client.generate(ask("b" * 80))
            await made.close()
            return client, first, second

    client, first, second = asyncio.run(run())
    assert client.usage == first.usage + second.usage
    assert client.calls_succeeded == client.usage.requests == 2
    usage = client.usage
    assert usage.cost_usd == pytest.approx(usage.input_tokens + 2 * usage.output_tokens)


def test_an_unpriced_model_has_no_cost() -> None:
    async def run() -> Any:
        async with mock_endpoint() as mock:
            made = endpoint(mock.url)
            got = await client_of(made).generate(ask())
            await made.close()
            return got

    assert asyncio.run(run()).usage.cost_usd is None


def test_a_cancelled_call_gives_its_slot_back() -> None:
    async def run() -> int:
        async with mock_endpoint(faults=["hang:first=1"]) as mock:
            made = endpoint(mock.url, max_connections=1)
            calls = [asyncio.ensure_future(client_of(made).generate(ask())) for _ in range(3)]
            await asyncio.sleep(0.05)
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
            in_use = made.slots.in_use
            await client_of(made).generate(ask("after"))
            await made.close()
            return in_use

    assert asyncio.run(run()) == 0


def test_a_waiting_call_that_is_cancelled_leaves_no_hole() -> None:
    async def run() -> tuple[int, bool]:
        slots = Slots(AdaptiveLimit(1))
        assert slots.take_now()
        first = asyncio.ensure_future(slots.take())
        second = asyncio.ensure_future(slots.take())
        await asyncio.sleep(0)
        slots.give_back()  # grants `first`, which is cancelled before it runs
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await asyncio.wait_for(second, 1)
        slots.give_back()
        return slots.in_use, slots.take_now()

    assert asyncio.run(run()) == (0, True)


def test_a_number_that_json_cannot_carry_is_a_fault_of_the_request() -> None:
    async def run() -> AttemptFault:
        made = endpoint("http://127.0.0.1:1/v1")
        return await fault_of(client_of(made).generate(ask(temperature=2**70, top_p=float("nan"))))

    fault = asyncio.run(run())
    assert (fault.code, fault.request_fault) == (IssueCode.CONFIGURATION, True)
