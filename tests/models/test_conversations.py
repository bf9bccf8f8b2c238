"""Tools, what a model said before and what its tools gave back, in the words of each protocol."""

from __future__ import annotations

import json
from typing import Any

import pytest

from steelyard.components.model import AssistantTurn, ModelRequest, Tool, ToolCall, ToolTurn
from steelyard.components.values import Message
from steelyard.models.protocols import PROTOCOLS
from steelyard.models.protocols.encoding import encode

SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}}
CALLS = (ToolCall("c1", "run", '{"command":"ls"}'), ToolCall("c2", "run", "not json"))
REQUEST = ModelRequest(
    (
        Message("system", "Be brief."),
        Message("user", "Go."),
        AssistantTurn("I look.", CALLS),
        ToolTurn((("c1", "a.txt"), ("c2", "malformed"))),
    ),
    tools=(Tool("run", "Run it.", SCHEMA),),
)


def body_of(name: str, request: ModelRequest = REQUEST, **params: Any) -> dict[str, Any]:
    _, body = PROTOCOLS[name].build("m", request, params)
    sent: dict[str, Any] = json.loads(encode(body))
    return sent


def test_openai_chat_keeps_calls_and_gives_each_result_a_message() -> None:
    body = body_of("openai-chat")
    assert body["tools"] == [
        {
            "type": "function",
            "function": {"name": "run", "description": "Run it.", "parameters": SCHEMA},
        }
    ]
    said, one, two = body["messages"][2:]
    assert said["role"] == "assistant"
    assert said["content"] == "I look."
    assert [call["function"]["arguments"] for call in said["tool_calls"]] == [
        '{"command":"ls"}',
        "not json",
    ]
    assert one == {"role": "tool", "tool_call_id": "c1", "content": "a.txt"}
    assert two == {"role": "tool", "tool_call_id": "c2", "content": "malformed"}


def test_openai_responses_lists_calls_and_outputs_as_items() -> None:
    body = body_of("openai-responses")
    assert body["tools"][0]["parameters"] == SCHEMA
    assert body["instructions"] == "Be brief."
    kinds = [item.get("type", item.get("role")) for item in body["input"]]
    assert kinds == [
        "user",
        "assistant",
        "function_call",
        "function_call",
        "function_call_output",
        "function_call_output",
    ]
    assert body["input"][4] == {
        "type": "function_call_output",
        "call_id": "c1",
        "output": "a.txt",
    }


def test_anthropic_uses_blocks_and_answers_all_calls_in_one_message() -> None:
    body = body_of("anthropic")
    assert body["tools"] == [{"name": "run", "description": "Run it.", "input_schema": SCHEMA}]
    said, results = body["messages"][1:]
    assert [block["type"] for block in said["content"]] == ["text", "tool_use", "tool_use"]
    assert said["content"][1]["input"] == {"command": "ls"}
    assert said["content"][2]["input"] == {}, "the protocol takes objects alone"
    assert results["role"] == "user"
    assert [block["tool_use_id"] for block in results["content"]] == ["c1", "c2"]


@pytest.mark.parametrize("name", sorted(PROTOCOLS))
def test_without_tools_none_are_sent(name: str) -> None:
    assert "tools" not in body_of(name, ModelRequest((Message("user", "Hi"),)))


@pytest.mark.parametrize("name", sorted(PROTOCOLS))
def test_params_may_say_how_tools_are_chosen(name: str) -> None:
    assert body_of(name, tool_choice="required")["tool_choice"] == "required"


ANSWERS = {
    "openai-responses": {
        "status": "completed",
        "output": [
            {"type": "reasoning", "id": "rs_1", "encrypted_content": "abc", "summary": []},
            {"type": "function_call", "call_id": "c1", "name": "run", "arguments": "{}"},
        ],
    },
    "anthropic": {
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "sig"},
            {"type": "tool_use", "id": "c1", "name": "run", "input": {"command": "ls"}},
        ],
        "stop_reason": "tool_use",
    },
}


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_reasoning_before_a_call_goes_back_as_it_came(name: str) -> None:
    reading = PROTOCOLS[name].read(json.dumps(ANSWERS[name]).encode())
    turn = AssistantTurn(reading.text, reading.tool_calls, reading.echo)
    request = ModelRequest((Message("user", "Go."), turn, ToolTurn((("c1", "x"),))))
    body = body_of(name, request)
    if name == "anthropic":
        assert body["messages"][1]["content"] == ANSWERS[name]["content"]
    else:
        assert body["input"][1:3] == ANSWERS[name]["output"]


@pytest.mark.parametrize("name", sorted(PROTOCOLS))
def test_an_answer_without_calls_is_not_echoed(name: str) -> None:
    """It is plain text everywhere, and costs no more than that."""
    turn = AssistantTurn("Done.")
    body = body_of(name, ModelRequest((Message("user", "Go."), turn, Message("user", "And?"))))
    said = body.get("messages", body.get("input"))[1]
    assert said == {"role": "assistant", "content": "Done."}
