"""The mock speaks the protocols: the official SDKs understand it, streaming and not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from steelyard.testing.endpoint import MockEndpoint

pytestmark = pytest.mark.integration

USER: Any = [{"role": "user", "content": "say it"}]
TOOL_USER: Any = [{"role": "user", "content": "use the tool"}]
TEXT = "A sentence that is longer than one piece of a stream, with ünïcode."
ANSWERS = [
    {"match": "say it", "answer": TEXT, "reasoning": "Thinking about it at some length."},
    {
        "match": "use the tool",
        "tool_calls": [{"name": "list_files", "arguments": {"path": "/tmp/a-rather-long-path"}}],
    },
]


@pytest.fixture(scope="module")
def mock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MockEndpoint]:
    path: Path = tmp_path_factory.mktemp("answers") / "answers.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in ANSWERS), encoding="utf-8")
    with MockEndpoint("--answers", str(path), "--require-key", "k-1", "--model", "m") as running:
        yield running


@pytest.fixture
def gpt(mock: MockEndpoint) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=mock.url, api_key="k-1", max_retries=0) as client:
        yield client


@pytest.fixture
def claude(mock: MockEndpoint) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=mock.origin, api_key="k-1", max_retries=0) as client:
        yield client


def test_openai_chat_answers(gpt: openai.OpenAI) -> None:
    got = gpt.chat.completions.create(model="m", messages=USER)
    assert got.choices[0].message.content == TEXT
    assert got.usage is not None
    assert got.usage.total_tokens == got.usage.prompt_tokens + got.usage.completion_tokens


def test_openai_chat_calls_tools(gpt: openai.OpenAI) -> None:
    got = gpt.chat.completions.create(model="m", messages=TOOL_USER)
    calls: Any = got.choices[0].message.tool_calls
    assert got.choices[0].finish_reason == "tool_calls"
    assert json.loads(calls[0].function.arguments) == {"path": "/tmp/a-rather-long-path"}


@pytest.mark.parametrize("wants_usage", [True, False])
def test_openai_chat_streams_with_usage_where_it_is_asked_for(
    gpt: openai.OpenAI, wants_usage: bool
) -> None:
    options: Any = {"include_usage": True} if wants_usage else openai.omit
    stream = gpt.chat.completions.create(
        model="m", messages=USER, stream=True, stream_options=options
    )
    chunks = list(stream)
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert text == TEXT
    assert (chunks[-1].usage is not None) is wants_usage


def test_openai_chat_streams_tool_calls(gpt: openai.OpenAI) -> None:
    with gpt.chat.completions.stream(model="m", messages=TOOL_USER) as stream:
        final = stream.get_final_completion()
    calls: Any = final.choices[0].message.tool_calls
    assert calls[0].function.name == "list_files"
    assert json.loads(calls[0].function.arguments) == {"path": "/tmp/a-rather-long-path"}


def test_openai_responses_answer(gpt: openai.OpenAI) -> None:
    got = gpt.responses.create(model="m", input="say it", instructions="be brief")
    assert got.output_text == TEXT
    assert got.usage is not None
    assert got.usage.output_tokens_details.reasoning_tokens > 0


def test_openai_responses_stream(gpt: openai.OpenAI) -> None:
    with gpt.responses.stream(model="m", input="say it") as stream:
        deltas = [event.delta for event in stream if event.type == "response.output_text.delta"]
        final = stream.get_final_response()
    assert "".join(deltas) == final.output_text == TEXT


def test_openai_responses_stream_tool_calls(gpt: openai.OpenAI) -> None:
    with gpt.responses.stream(model="m", input="use the tool") as stream:
        final = stream.get_final_response()
    calls = [item for item in final.output if item.type == "function_call"]
    assert json.loads(calls[0].arguments) == {"path": "/tmp/a-rather-long-path"}


def test_anthropic_answers(claude: anthropic.Anthropic) -> None:
    got = claude.messages.create(model="m", max_tokens=99, messages=USER, system="be brief")
    assert [block.type for block in got.content] == ["thinking", "text"]
    assert got.content[1].text == TEXT  # type: ignore[union-attr]
    assert got.stop_reason == "end_turn"
    assert got.usage.input_tokens > 0


def test_anthropic_calls_tools(claude: anthropic.Anthropic) -> None:
    got = claude.messages.create(model="m", max_tokens=99, messages=TOOL_USER)
    block: Any = got.content[0]
    assert (got.stop_reason, block.name) == ("tool_use", "list_files")
    assert block.input == {"path": "/tmp/a-rather-long-path"}


@pytest.mark.parametrize(("messages", "kind"), [(USER, "text"), (TOOL_USER, "tool_use")])
def test_anthropic_streams(claude: anthropic.Anthropic, messages: Any, kind: str) -> None:
    with claude.messages.stream(model="m", max_tokens=99, messages=messages) as stream:
        final = stream.get_final_message()
    block: Any = final.content[-1]
    assert block.type == kind
    assert final.usage.output_tokens > 1
    if kind == "text":
        assert block.text == TEXT
    else:
        assert block.input == {"path": "/tmp/a-rather-long-path"}


def test_anthropic_counts_tokens(claude: anthropic.Anthropic) -> None:
    assert claude.messages.count_tokens(model="m", messages=USER).input_tokens > 0


def test_both_list_the_models(gpt: openai.OpenAI, claude: anthropic.Anthropic) -> None:
    assert [model.id for model in gpt.models.list()] == ["m"]
    assert [model.id for model in claude.models.list()] == ["m"]


def test_a_wrong_key_is_an_authentication_error_to_both(mock: MockEndpoint) -> None:
    with (
        openai.OpenAI(base_url=mock.url, api_key="no", max_retries=0) as gpt,
        pytest.raises(openai.AuthenticationError),
    ):
        gpt.chat.completions.create(model="m", messages=USER)
    with (
        anthropic.Anthropic(base_url=mock.origin, api_key="no", max_retries=0) as claude,
        pytest.raises(anthropic.AuthenticationError),
    ):
        claude.messages.create(model="m", max_tokens=9, messages=USER)


def test_the_async_clients_understand_it_too(mock: MockEndpoint) -> None:
    async def run() -> str:
        async with openai.AsyncOpenAI(base_url=mock.url, api_key="k-1", max_retries=0) as client:
            got = await client.chat.completions.create(model="m", messages=USER)
            return got.choices[0].message.content or ""

    assert asyncio.run(run()) == TEXT
