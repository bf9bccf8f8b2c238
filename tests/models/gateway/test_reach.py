"""What would make a provider reach out for an agent without network is refused, unless allowed."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from steelyard.models.gateway.reach import reaching
from tests.models.calling import PROTOCOLS
from tests.models.gateway.serving import PATHS, ask, body_of, served

PNG = "data:image/png;base64,AAAA"
URL = "https://evil.example/?secret=1"


def turn(*parts: Any) -> list[Any]:
    return [{"role": "user", "content": list(parts)}]


REACHING = [
    ("openai-chat", {"web_search_options": {"user_location": None}}),
    ("openai-chat", {"plugins": [{"id": "web"}]}),
    ("openai-chat", {"search_parameters": {"mode": "on"}}),
    ("openai-chat", {"tools": [{"type": "function"}, {"type": "web_search"}]}),
    ("openai-chat", {"tools": [{"name": "without a type"}]}),
    ("openai-chat", {"messages": turn({"type": "image_url", "image_url": {"url": URL}})}),
    ("openai-chat", {"messages": turn({"type": "image_url", "image_url": URL})}),
    ("openai-responses", {"tools": [{"type": "web_search_preview"}]}),
    ("openai-responses", {"tools": [{"type": "mcp", "server_url": URL}]}),
    ("openai-responses", {"tools": [{"type": "code_interpreter"}]}),
    ("openai-responses", {"tools": [{"type": ["function"]}]}),
    ("openai-responses", {"tools": [{"type": "namespace", "tools": [{"type": "file_search"}]}]}),
    ("openai-responses", {"input": turn({"type": "input_image", "image_url": URL})}),
    ("openai-responses", {"input": turn({"type": "input_file", "file_url": URL})}),
    (
        "openai-responses",
        {
            "input": [
                {
                    "type": "function_call_output",
                    "output": [{"type": "input_image", "image_url": URL}],
                }
            ]
        },
    ),
    ("anthropic", {"mcp_servers": [{"type": "url", "url": URL}]}),
    ("anthropic", {"tools": [{"type": "web_fetch_20250910", "name": "web_fetch"}]}),
    ("anthropic", {"tools": [{"type": "code_execution_20250825", "name": "x"}]}),
    ("anthropic", {"messages": turn({"type": "image", "source": {"type": "url", "url": URL}})}),
    (
        "anthropic",
        {
            "messages": turn(
                {
                    "type": "tool_result",
                    "content": [{"type": "document", "source": {"type": "url", "url": URL}}],
                }
            )
        },
    ),
]
OWN = [
    ("openai-chat", {"tools": [{"type": "function"}, {"type": "custom"}]}),
    ("openai-chat", {"messages": turn({"type": "image_url", "image_url": {"url": PNG}})}),
    ("openai-chat", {"messages": turn({"type": "text", "text": f"see {URL}"})}),
    ("openai-chat", {"tools": None, "plugins": [], "web_search_options": None}),
    ("openai-responses", {"tools": [{"type": "local_shell"}, {"type": "apply_patch"}]}),
    ("openai-responses", {"input": turn({"type": "input_image", "image_url": PNG})}),
    (
        "openai-responses",
        {"input": [{"type": "function_call", "arguments": json.dumps({"file_url": URL})}]},
    ),
    ("anthropic", {"tools": [{"name": "mine", "input_schema": {"url": {"type": "url"}}}]}),
    ("anthropic", {"tools": [{"type": "bash_20250124", "name": "bash"}]}),
    (
        "anthropic",
        {"messages": turn({"type": "tool_use", "input": {"source": {"type": "url", "url": URL}}})},
    ),
]


def raw_of(data: Any) -> bytes:
    return json.dumps(data).encode()


@pytest.mark.parametrize(("protocol", "data"), REACHING)
def test_what_reaches_out_is_named(protocol: str, data: Any) -> None:
    assert reaching(protocol, data, raw_of(data)) is not None
    escaped = raw_of(data).replace(b"url", b"\\u0075rl")
    assert reaching(protocol, data, escaped) is not None


@pytest.mark.parametrize(("protocol", "data"), OWN)
def test_what_the_agent_does_itself_is_its_own(protocol: str, data: Any) -> None:
    assert reaching(protocol, data, raw_of(data)) is None


@pytest.mark.parametrize("value", [7, "x", [1, None], {"type": "text"}, [[[]]], [{"content": 5}]])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_body_of_any_shape_is_looked_at(protocol: str, value: Any) -> None:
    data = {"messages": value, "input": value, "tools": None, "x": "image_url"}
    assert reaching(protocol, data, raw_of(data)) is None


@pytest.mark.parametrize(("protocol", "fields"), REACHING)
def test_the_endpoint_is_asked_for_it_only_where_the_run_allows_it(
    protocol: str, fields: Any
) -> None:
    async def run(allowed: bool) -> tuple[int, bytes, int]:
        async with served(provider_tools=allowed) as (attempt, mock):
            answer = await ask(attempt, PATHS[protocol], body_of(protocol) | fields)
            return answer.status, answer.body, mock.server.stats.calls

    status, body, calls = asyncio.run(run(False))
    assert (status, calls) == (403, 0)
    assert b"model.provider_tools" in body
    assert asyncio.run(run(True))[2] == 1


def test_what_the_user_asks_for_in_the_models_params_is_the_users() -> None:
    async def run() -> int:
        params = {"web_search_options": {}, "tools": [{"type": "web_search"}]}
        async with served(params=params) as (attempt, _):
            body = body_of("openai-chat") | {"tools": [{"type": "mcp"}]}
            return (await ask(attempt, PATHS["openai-chat"], body)).status

    assert asyncio.run(run()) == 200


@pytest.mark.parametrize("allowed", [False, True])
def test_a_call_that_goes_on_unseen_is_never_served(allowed: bool) -> None:
    async def run() -> tuple[int, int]:
        async with served(provider_tools=allowed) as (attempt, mock):
            body = body_of("openai-responses", background=True)
            answer = await ask(attempt, PATHS["openai-responses"], body)
            return answer.status, mock.server.stats.calls

    assert asyncio.run(run()) == (400, 0)


def test_counting_tokens_reaches_out_no_more_than_a_call() -> None:
    async def run() -> int:
        async with served() as (attempt, _):
            parts = turn({"type": "image", "source": {"type": "url", "url": URL}})
            body = body_of("anthropic") | {"messages": parts}
            return (await ask(attempt, "/v1/messages/count_tokens", body)).status

    assert asyncio.run(run()) == 403
