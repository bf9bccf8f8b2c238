"""What programs of an attempt can do at the gateway, and what they cannot."""

from __future__ import annotations

import asyncio
import json
import socket
import stat
from typing import Any

import pytest

from steelyard.components.issues import IssueCode
from steelyard.components.values import Usage
from steelyard.models.allowance import Allowance
from steelyard.models.gateway import Gateway
from steelyard.models.gateway.requests import Bounds
from steelyard.models.mock.answers import echo
from tests.models.calling import PROTOCOLS
from tests.models.gateway.serving import (
    KEY,
    PATHS,
    admitted,
    ask,
    body_of,
    exchange,
    gateway_before,
    served,
)


def asked(path: str, body: Any = None, *, options: Any = None, **request: Any) -> tuple[Any, ...]:
    """Ask one thing; give the answer, the attempt and the mock's counts."""

    async def run() -> tuple[Any, ...]:
        async with served(**(options or {})) as (attempt, mock):
            answer = await ask(attempt, path, body, **request)
            return answer, attempt, mock.server.stats.as_json()

    return asyncio.run(run())


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("prefix", ["", "/v1"])
def test_each_protocol_is_passed_on_whoever_writes_the_version(protocol: str, prefix: str) -> None:
    options = {"mock": {"sources": [echo], "required_key": KEY}, "api_protocol": protocol}
    answer, attempt, _ = asked(prefix + PATHS[protocol], body_of(protocol), options=options)
    assert answer.status == 200
    assert b"hello" in answer.body
    assert [step.source for step in attempt.steps] == ["user", "agent"]
    assert attempt.steps[1].message == "hello"
    assert attempt.ticket.usage == attempt.steps[1].usage
    assert attempt.ticket.usage.requests == 1
    assert attempt.ticket.usage.cost_usd > 0
    assert (attempt.ticket.calls_succeeded, attempt.ticket.requests) == (1, 1)


@pytest.mark.parametrize("own", PROTOCOLS)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_key_goes_where_the_path_protocol_wants_it(protocol: str, own: str) -> None:
    options = {"mock": {"required_key": KEY}, "api_protocol": own}
    answer, _, _ = asked(PATHS[protocol], body_of(protocol), options=options)
    assert answer.status == 200


def test_of_the_agents_headers_few_go_on_and_extra_headers_win() -> None:
    options = {
        "mock": {"keep_bodies": 1},
        "api_protocol": "anthropic",
        "extra_headers": {"x-team": "a", "anthropic-beta": "ours"},
    }
    headers = {
        "anthropic-version": "2099-01-01",
        "anthropic-beta": "theirs",
        "x-api-key": "agents-own",
        "cookie": "c=1",
        "x-team": "b",
        "user-agent": "cli",
    }

    async def run() -> bytes:
        seen = b""

        async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal seen
            from tests.models.gateway.serving import read_request

            seen = await read_request(reader)
            writer.close()

        from tests.models.gateway.serving import scripted

        options.pop("mock")
        async with (
            scripted(handler) as url,
            gateway_before(url, max_request_retries=0, **options) as attempt,
        ):
            await ask(attempt, "/v1/messages", body_of("anthropic"), headers=headers)
            assert attempt.ticket.token.encode() not in seen
        return seen

    seen = asyncio.run(run()).lower()
    assert b"anthropic-version: 2099-01-01" in seen
    assert b"anthropic-beta: ours" in seen
    assert b"x-team: a" in seen
    assert b"accept-encoding: identity" in seen
    assert b"user-agent: steelyard" in seen
    for unwanted in (b"theirs", b"agents-own", b"cookie", b"x-team: b", b"cli"):
        assert unwanted not in seen


def test_the_models_are_the_one_model() -> None:
    answer, _, stats = asked("/v1/models")
    assert [model["id"] for model in answer.json()["data"]] == ["mock"]
    assert asked("/v1/v1/models/mock")[0].json()["id"] == "mock"
    missing = asked("/v1/models/gpt", headers={"anthropic-version": "1"})[0]
    assert (missing.status, missing.json()["type"]) == (404, "error")
    assert "mock" in missing.json()["error"]["message"]
    assert stats["calls"] == 0


def test_a_look_at_the_root_needs_no_token() -> None:
    head = asked("/", method="HEAD", token="")[0]
    assert (head.status, head.body) == (200, b"")
    assert asked("/", token="")[0].status == 200


def test_counting_tokens_is_passed_on_and_is_no_call() -> None:
    options = {"api_protocol": "anthropic", "params": {"temperature": 0.5}}
    body = {"model": "mock", "messages": [{"role": "user", "content": "hello"}]}
    answer, attempt, stats = asked("/v1/messages/count_tokens", body, options=options)
    assert answer.json()["input_tokens"] > 0
    assert (attempt.ticket.requests, attempt.ticket.usage, attempt.steps) == (0, Usage(), [])
    assert stats["calls"] == 0


def test_an_endpoint_that_cannot_count_rejects_nothing() -> None:
    async def run() -> Any:
        async with served(mock={"required_key": "another"}) as (attempt, _):
            answer = await ask(attempt, "/v1/messages/count_tokens", body_of("anthropic"))
            return answer, attempt

    answer, attempt = asyncio.run(run())
    assert answer.status == 401
    assert attempt.faults == []


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/chat/completions"),
        ("POST", "/v1/embeddings"),
        ("POST", "/v1/responses/abc/cancel"),
        ("DELETE", "/v1/models/mock"),
        ("GET", "/v1/../admin"),
        ("GET", "/metrics"),
        ("OPTIONS", "/v1/messages"),
    ],
)
def test_all_else_is_not_found(method: str, path: str) -> None:
    answer, _, stats = asked(path, method=method)
    assert answer.status == 404
    assert path in answer.json()["error"]["message"]
    assert stats["calls"] == 0


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("model", ["gpt-other", None, 7, {"a": 1}])
def test_another_model_is_refused_and_the_right_one_named(protocol: str, model: Any) -> None:
    body = body_of(protocol) | {"model": model}
    answer, attempt, stats = asked(PATHS[protocol], body)
    assert answer.status == 404
    assert "'mock'" in answer.json()["error"]["message"]
    assert (stats["calls"], attempt.ticket.requests) == (0, 0)


def test_a_model_named_twice_does_not_slip_through() -> None:
    body = b'{"model":"dear","messages":[{"role":"user","content":"x"}],"model":"mock"}'
    options = {"mock": {"keep_bodies": 1}}
    answer, _, stats = asked(PATHS["openai-chat"], body, options=options)
    assert answer.status == 200
    assert "dear" not in stats["bodies"][0]["body"]
    escaped = body.replace(b'"model":"dear"', b'"\\u006dodel":"dear"')
    answer, _, stats = asked(PATHS["openai-chat"], escaped, options=options)
    assert "dear" not in stats["bodies"][0]["body"]


def test_model_params_win_over_the_agents_and_the_rest_goes_as_it_came() -> None:
    options = {"mock": {"keep_bodies": 1}, "params": {"temperature": 0.3, "top_k": 2**66}}
    raw = b'{ "model":"mock", "temperature": 1.50,"odd":[1e2 ,-0.0],\n"messages":[{"role":"user",'
    raw += b'"content":"x"}] } '
    _, _, stats = asked(PATHS["openai-chat"], raw, options=options)
    sent = json.loads(stats["bodies"][0]["body"])
    assert (sent["temperature"], sent["top_k"], sent["odd"]) == (0.3, 2**66, [100.0, -0.0])
    options = {"mock": {"keep_bodies": 1}, "params": {"top_k": 5}}
    _, _, stats = asked(PATHS["openai-chat"], raw, options=options)
    assert stats["bodies"][0]["body"] == raw.rstrip()[:-1].decode() + ',"top_k":5}'


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b'"x"', b"\xff\xfe", b"[" * 5000, b'{"a":' * 3000]
)
def test_a_body_that_is_no_object_is_refused_here(body: bytes) -> None:
    answer, attempt, stats = asked(PATHS["openai-chat"], body)
    assert answer.status == 400
    assert (stats["calls"], attempt.faults) == (0, [])


@pytest.mark.parametrize("token", ["", "sk-steelyard-0", "ünknown", "x" * 5000])
def test_a_foreign_token_gets_nothing(token: str) -> None:
    for protocol in PROTOCOLS:
        answer, attempt, stats = asked(
            PATHS[protocol],
            body_of(protocol),
            options={"bounds": Bounds(linger_s=0.01)},
            headers={"authorization": b"Bearer ".decode() + token.encode().decode("latin-1")},
        )
        assert answer.status == 401
        assert (stats["calls"], attempt.ticket.requests) == (0, 0)


def test_the_token_may_come_as_an_api_key_beside_junk() -> None:
    async def run() -> list[int]:
        async with served() as (attempt, _):
            token = attempt.ticket.token
            sent: list[dict[str, str]] = [
                {"authorization": "Basic x", "x-api-key": token},
                {"authorization": "Bearer junk", "x-api-key": token},
                {"authorization": f"bearer {token}", "x-api-key": "junk"},
            ]
            return [(await ask(attempt, "/v1/models", headers=one)).status for one in sent]

    assert asyncio.run(run()) == [200, 200, 200]


def test_a_token_is_dead_once_its_attempt_is_over() -> None:
    async def run() -> Any:
        async with served() as (attempt, mock):
            other = await admitted(attempt.gateway, attempt.endpoint, attempt.secrets)
            await attempt.ticket.revoke()
            await attempt.ticket.revoke()
            dead = await ask(attempt, PATHS["openai-chat"], body_of("openai-chat"))
            alive = await ask(other, PATHS["openai-chat"], body_of("openai-chat"))
            return dead.status, alive.status, mock.server.stats.calls, attempt, other

    dead, alive, calls, attempt, other = asyncio.run(run())
    assert (dead, alive, calls) == (401, 200, 1)
    assert attempt.steps == []
    assert [step.source for step in other.steps] == ["user", "agent"]


def test_tokens_are_long_and_their_own() -> None:
    async def run() -> set[str]:
        async with served() as (attempt, _):
            made = [
                await admitted(attempt.gateway, attempt.endpoint, attempt.secrets)
                for _ in range(20)
            ]
            return {one.ticket.token for one in made}

    tokens = asyncio.run(run())
    assert len(tokens) == 20
    assert all(len(token) >= 64 for token in tokens)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 403),
        ({"host": "evil.example:80"}, 403),
        ({"host": "127.0.0.1.evil.example"}, 403),
        ({"host": ""}, 403),
        ({"origin": "http://127.0.0.1"}, 403),
        ({"origin": "null"}, 403),
        ({"host": "localhost:1"}, 200),
        ({"host": "127.0.0.1"}, 200),
        ({"host": "[::1]:80"}, 200),
    ],
)
def test_pages_in_a_browser_are_not_served(headers: dict[str, str], status: int) -> None:
    answer, _, _ = asked("/v1/models", headers=headers)
    assert answer.status == status
    assert not any(name.startswith("access-control") for name in answer.headers)


def test_the_socket_is_short_private_and_gone_after() -> None:
    async def run() -> Any:
        async with served() as (attempt, _):
            path = attempt.gateway.socket_path
            modes = stat.S_IMODE(path.stat().st_mode), stat.S_IMODE(path.parent.stat().st_mode)
            reader, writer = await asyncio.open_unix_connection(str(path))
            writer.write(
                b"GET /v1/models HTTP/1.1\r\nhost: anything\r\nx-api-key: "
                + attempt.ticket.token.encode()
                + b"\r\n\r\n"
            )
            head = await reader.readuntil(b"\r\n\r\n")
            writer.close()
            return path, modes, head

    path, modes, head = asyncio.run(run())
    assert modes == (0o666, 0o700)
    assert len(str(path).encode()) <= 107
    assert b" 200 " in head
    assert not path.parent.exists()


def test_a_listener_that_is_handed_in_is_served_until_its_end() -> None:
    async def run() -> Any:
        async with served() as (attempt, _):
            listener = socket.create_server(("127.0.0.1", 0))
            port = listener.getsockname()[1]
            end = await attempt.gateway.serve(listener)
            raw = b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n"
            first = await exchange("127.0.0.1", port, raw)
            end()
            end()
            with pytest.raises(OSError):  # noqa: PT011 — refused or reset, as it falls
                await exchange("127.0.0.1", port, raw)
            still = await ask(attempt, "/v1/models")
            return first.status, listener.fileno(), still.status

    assert asyncio.run(run()) == (200, -1, 200)


def test_two_gateways_on_one_machine_do_not_know_each_others_tokens() -> None:
    async def run() -> Any:
        async with served() as (one, _), served() as (two, _):
            assert one.url != two.url
            assert one.gateway.socket_path != two.gateway.socket_path
            own = await ask(one, "/v1/models")
            foreign = await ask(one, "/v1/models", token=two.ticket.token)
            return own.status, foreign.status

    assert asyncio.run(run()) == (200, 401)


def test_closing_twice_is_harmless() -> None:
    async def run() -> None:
        async with served() as (attempt, _):
            await attempt.gateway.close()
            with pytest.raises(RuntimeError, match="closed"):
                _ = attempt.gateway.socket_path

    asyncio.run(run())


def test_a_temporary_folder_with_a_long_path_is_not_used(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(deep))

    async def run() -> int:
        async with served() as (attempt, _):
            return len(str(attempt.gateway.socket_path))

    assert asyncio.run(run()) <= 107
    assert list(deep.iterdir()) == []


@pytest.mark.parametrize("bound", ["usd", "tokens"])
def test_a_spent_allowance_refuses_the_next_call_and_ends_the_attempt(bound: str) -> None:
    allowance = Allowance(usd=0.001) if bound == "usd" else Allowance(tokens=3)

    async def run() -> Any:
        async with served(allowance=allowance) as (attempt, mock):
            answers = [
                await ask(attempt, PATHS["openai-chat"], body_of("openai-chat", f"n {i}"))
                for i in range(3)
            ]
            return answers, attempt, mock.server.stats.calls

    answers, attempt, calls = asyncio.run(run())
    assert [answer.status for answer in answers] == [200, 402, 402]
    assert calls == 1
    assert [fault.code for fault in attempt.faults] == [IssueCode.ATTEMPT_BUDGET]
    assert f"attempt_{bound}" in attempt.faults[0].message
    assert not attempt.faults[0].request_fault
    assert answers[1].headers["x-should-retry"] == "false"


def test_a_driver_side_client_spends_from_the_same_allowance() -> None:
    from steelyard.components.issues import AttemptFault
    from tests.models.calling import ask as question

    async def run() -> Any:
        allowance = Allowance(tokens=3)
        async with served(allowance=allowance) as (attempt, _):
            client = attempt.endpoint.client(attempt.timer, allowance)
            await client.generate(question("one"))
            with pytest.raises(AttemptFault) as caught:
                await client.generate(question("two"))
            refused = await ask(attempt, PATHS["openai-chat"], body_of("openai-chat"))
            return caught.value.code, refused.status

    assert asyncio.run(run()) == (IssueCode.ATTEMPT_BUDGET, 402)


def test_gateway_is_what_environments_expect() -> None:
    from steelyard.components.gateway import ModelGate

    async def run() -> None:
        async with served() as (attempt, _):
            gate: ModelGate = attempt.gateway
            access = attempt.ticket.access(await gate.host_url())
            assert access.variables()["OPENAI_API_KEY"] == attempt.ticket.token
            assert attempt.ticket.token not in repr(access)
            assert (access.model_id, access.protocol) == ("mock", "openai-chat")

    asyncio.run(run())
    assert Gateway.start.__doc__


def test_calls_that_waited_while_others_spent_the_rest_are_refused() -> None:
    async def run() -> Any:
        options = {"allowance": Allowance(tokens=3), "max_connections": 1}
        async with served(**options) as (attempt, mock):
            answers = await asyncio.gather(
                *(
                    ask(attempt, PATHS["openai-chat"], body_of("openai-chat", f"n {i}"))
                    for i in range(5)
                )
            )
            return sorted(a.status for a in answers), mock.server.stats.calls, attempt.faults

    statuses, calls, faults = asyncio.run(run())
    assert (statuses, calls, len(faults)) == ([200, 402, 402, 402, 402], 1, 1)
