"""The official SDKs through the gateway: they notice nothing, and everything is on record."""

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
from tests.models.gateway.serving import KEY, Attempt, gateway_before

pytestmark = pytest.mark.integration

TEXT = "A sentence that is longer than one piece of a stream, with ünïcode."
ARGUMENTS = {"path": "/tmp/a-rather-long-path"}
ANSWERS = [
    {"match": "say it", "answer": TEXT, "reasoning": "Thinking about it."},
    {"match": "use the tool", "tool_calls": [{"name": "list_files", "arguments": ARGUMENTS}]},
]
USER: Any = [{"role": "user", "content": "say it"}]
TOOL_USER: Any = [{"role": "user", "content": "use the tool"}]


@pytest.fixture(scope="module")
def mock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MockEndpoint]:
    path: Path = tmp_path_factory.mktemp("answers") / "answers.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in ANSWERS), encoding="utf-8")
    with MockEndpoint("--answers", str(path), "--require-key", KEY) as running:
        yield running


def with_gpt(mock: MockEndpoint, work: Any, **options: Any) -> Attempt:
    """Run `work` with the OpenAI SDK as an agent would have it; give its attempt."""

    async def run() -> Attempt:
        async with gateway_before(mock.url, **options) as attempt:
            access = attempt.ticket.access(attempt.url).variables()
            async with openai.AsyncOpenAI(
                base_url=access["OPENAI_BASE_URL"], api_key=access["OPENAI_API_KEY"]
            ) as client:
                await work(client)
            return attempt

    return asyncio.run(run())


def with_claude(mock: MockEndpoint, work: Any) -> Attempt:
    """The same with Anthropic's."""

    async def run() -> Attempt:
        async with gateway_before(mock.url, api_protocol="anthropic") as attempt:
            access = attempt.ticket.access(attempt.url).variables()
            async with anthropic.AsyncAnthropic(
                base_url=access["ANTHROPIC_BASE_URL"], api_key=access["ANTHROPIC_API_KEY"]
            ) as client:
                await work(client)
            return attempt

    return asyncio.run(run())


def check(attempt: Attempt, *sources: str) -> None:
    """What holds of every attempt that went well."""
    assert [step.source for step in attempt.steps] == list(sources)
    assert attempt.faults == []
    assert attempt.ticket.usage.cost_usd is not None
    assert attempt.ticket.usage.cost_usd > 0
    assert attempt.ticket.calls_succeeded == sources.count("agent")


def test_openai_chat(mock: MockEndpoint) -> None:
    async def work(client: openai.AsyncOpenAI) -> None:
        got = await client.chat.completions.create(model="mock", messages=USER)
        assert got.choices[0].message.content == TEXT
        assert [model.id async for model in client.models.list()] == ["mock"]
        assert (await client.models.retrieve("mock")).id == "mock"

    attempt = with_gpt(mock, work)
    check(attempt, "user", "agent")
    assert (attempt.steps[1].message, attempt.steps[1].reasoning) == (TEXT, "Thinking about it.")


@pytest.mark.parametrize("wants_usage", [True, False])
def test_openai_chat_streams(mock: MockEndpoint, wants_usage: bool) -> None:
    async def work(client: openai.AsyncOpenAI) -> None:
        options: Any = {"include_usage": True} if wants_usage else openai.omit
        stream = await client.chat.completions.create(
            model="mock", messages=USER, stream=True, stream_options=options
        )
        chunks = [chunk async for chunk in stream]
        assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == TEXT
        assert any(chunk.usage is not None for chunk in chunks) is wants_usage

    attempt = with_gpt(mock, work)
    check(attempt, "user", "agent")
    assert attempt.steps[1].message == TEXT
    assert attempt.steps[1].usage == attempt.ticket.usage


def test_openai_chat_uses_tools_turn_by_turn(mock: MockEndpoint) -> None:
    async def work(client: openai.AsyncOpenAI) -> None:
        messages: Any = list(TOOL_USER)
        async with client.chat.completions.stream(model="mock", messages=messages) as stream:
            message = (await stream.get_final_completion()).choices[0].message
        assert message.tool_calls is not None
        call = message.tool_calls[0]
        messages.append(message.model_dump(exclude_none=True))
        messages.append({"role": "tool", "tool_call_id": call.id, "content": "a.txt"})
        messages.append({"role": "user", "content": "say it"})
        got = await client.chat.completions.create(model="mock", messages=messages)
        assert got.choices[0].message.content == TEXT

    attempt = with_gpt(mock, work)
    check(attempt, "user", "agent", "system", "user", "agent")
    call = attempt.steps[1].tool_calls[0]
    assert (call.name, json.loads(call.arguments)) == ("list_files", ARGUMENTS)
    assert attempt.steps[2].results[0].call_id == call.id
    assert attempt.steps[2].results[0].content == "a.txt"


def test_openai_responses(mock: MockEndpoint) -> None:
    async def work(client: openai.AsyncOpenAI) -> None:
        got = await client.responses.create(model="mock", input="say it", instructions="brief")
        assert got.output_text == TEXT

    attempt = with_gpt(mock, work, api_protocol="openai-responses")
    check(attempt, "system", "user", "agent")


def test_openai_responses_stream_and_use_tools(mock: MockEndpoint) -> None:
    async def work(client: openai.AsyncOpenAI) -> None:
        async with client.responses.stream(model="mock", input="use the tool") as stream:
            final = await stream.get_final_response()
        calls = [item for item in final.output if item.type == "function_call"]
        result = {
            "type": "function_call_output",
            "call_id": calls[0].call_id,
            "output": "a.txt",
        }
        items: Any = [{"role": "user", "content": "use the tool"}]
        items += [calls[0].model_dump(exclude_none=True), result]
        items.append({"role": "user", "content": "say it"})
        async with client.responses.stream(model="mock", input=items) as stream:
            text = "".join(
                [e.delta async for e in stream if e.type == "response.output_text.delta"]
            )
        assert text == TEXT

    attempt = with_gpt(mock, work, api_protocol="openai-responses")
    check(attempt, "user", "agent", "system", "user", "agent")
    assert attempt.steps[2].results[0].content == "a.txt"


def test_anthropic_answers_and_counts(mock: MockEndpoint) -> None:
    async def work(client: anthropic.AsyncAnthropic) -> None:
        got = await client.messages.create(
            model="mock", max_tokens=99, messages=USER, system="be brief"
        )
        assert [block.type for block in got.content] == ["thinking", "text"]
        counted = await client.messages.count_tokens(model="mock", messages=USER)
        assert counted.input_tokens > 0
        assert [model.id async for model in client.models.list()] == ["mock"]
        assert (await client.models.retrieve("mock")).id == "mock"

    check(with_claude(mock, work), "system", "user", "agent")


def test_anthropic_streams_and_uses_tools(mock: MockEndpoint) -> None:
    async def work(client: anthropic.AsyncAnthropic) -> None:
        messages: Any = list(TOOL_USER)
        async with client.messages.stream(model="mock", max_tokens=99, messages=messages) as stream:
            final = await stream.get_final_message()
        block: Any = final.content[-1]
        assert block.input == ARGUMENTS
        messages.append({"role": "assistant", "content": [block.model_dump(exclude_none=True)]})
        result = {"type": "tool_result", "tool_use_id": block.id, "content": "a.txt"}
        messages.append({"role": "user", "content": [result, {"type": "text", "text": "say it"}]})
        async with client.beta.messages.stream(
            model="mock", max_tokens=99, messages=messages, betas=["b-1"]
        ) as stream:
            text = "".join([piece async for piece in stream.text_stream])
        assert text == TEXT

    attempt = with_claude(mock, work)
    check(attempt, "user", "agent", "system", "user", "agent")
    assert json.loads(attempt.steps[1].tool_calls[0].arguments) == ARGUMENTS
    assert attempt.steps[2].results[0].content == "a.txt"


def test_refusals_are_the_sdks_own_errors(mock: MockEndpoint) -> None:
    async def gpt(client: openai.AsyncOpenAI) -> None:
        with pytest.raises(openai.NotFoundError, match="'mock'"):
            await client.chat.completions.create(model="other", messages=USER)
        with pytest.raises(openai.NotFoundError):
            await client.models.retrieve("other")
        with pytest.raises(openai.AuthenticationError):
            await client.with_options(api_key="junk").models.list()
        with pytest.raises(openai.NotFoundError):
            await client.embeddings.create(model="mock", input="x")

    async def claude(client: anthropic.AsyncAnthropic) -> None:
        with pytest.raises(anthropic.NotFoundError, match="'mock'"):
            await client.messages.create(model="other", max_tokens=9, messages=USER)
        with pytest.raises(anthropic.AuthenticationError):
            await client.with_options(api_key="junk").models.list()

    assert with_gpt(mock, gpt).steps == []
    assert with_claude(mock, claude).steps == []


def test_sdks_do_not_try_again_what_the_gateway_has_tried() -> None:
    with MockEndpoint("--fault", "503") as running:

        async def gpt(client: openai.AsyncOpenAI) -> None:
            with pytest.raises(openai.InternalServerError):
                await client.chat.completions.create(model="mock", messages=USER)

        with_gpt(running, gpt, max_request_retries=1)
        assert running.stats()["calls"] == 2

        async def claude(client: anthropic.AsyncAnthropic) -> None:
            with pytest.raises(anthropic.InternalServerError):
                await client.messages.create(model="mock", max_tokens=9, messages=USER)

        with_claude(running, claude)
        assert running.stats()["calls"] == 2 + 6


def test_a_blocking_client_in_another_thread_works_too(mock: MockEndpoint) -> None:
    async def run() -> str:
        async with gateway_before(mock.url) as attempt:

            def call() -> str:
                with openai.OpenAI(
                    base_url=f"{attempt.url}/v1", api_key=attempt.ticket.token
                ) as client:
                    got = client.chat.completions.create(model="mock", messages=USER)
                    return got.choices[0].message.content or ""

            return await asyncio.to_thread(call)

    assert asyncio.run(run()) == TEXT
