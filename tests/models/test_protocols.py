"""The wire forms: what is sent byte for byte, and that hostile answers only ever fault."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.components.issues import AttemptFault, IssueCode
from steelyard.components.model import ModelRequest
from steelyard.components.values import Message
from steelyard.models.protocols import PROTOCOLS
from steelyard.models.protocols.encoding import encode
from steelyard.models.protocols.form import EndpointError, Reading, TokenCounts

NAMES = sorted(PROTOCOLS)
USER = ModelRequest([Message("user", "What is 2 + 2?")])
WITH_SYSTEM = ModelRequest(
    [Message("system", "Be brief."), Message("user", "Hi"), Message("assistant", "Ho")]
)
ODD_PARAMS = {
    "temperature": 0.1,
    "top_p": 1.0,
    "max_tokens": 77,
    "seed": 2**70,
    "reasoning": {"effort": "high", "nested": {"deep": [1, {"deeper": None}]}},
    "x-unknown": ["ä", "\ud800", True, -0.0, 1e-7],
    "": "",
    "metadata": {"a.b": {"c d": []}},
}


def body_of(name: str, request: ModelRequest, params: dict[str, Any]) -> dict[str, Any]:
    _, body = PROTOCOLS[name].build("m-1", request, params)
    return body


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_reaches_the_wire_as_it_is(name: str) -> None:
    sent = json.loads(encode(body_of(name, USER, ODD_PARAMS)))
    for key, value in ODD_PARAMS.items():
        assert json.dumps(sent[key]) == json.dumps(value)


def test_an_openai_chat_body_is_exactly_this() -> None:
    body = body_of("openai-chat", WITH_SYSTEM, {"temperature": 0, "logit_bias": {"5": -1.5}})
    assert encode(body) == (
        b'{"model":"m-1","messages":[{"role":"system","content":"Be brief."},'
        b'{"role":"user","content":"Hi"},{"role":"assistant","content":"Ho"}],'
        b'"temperature":0,"logit_bias":{"5":-1.5}}'
    )


def test_an_openai_responses_body_is_exactly_this() -> None:
    body = body_of("openai-responses", WITH_SYSTEM, {"text": {"verbosity": "low"}})
    assert encode(body) == (
        b'{"model":"m-1","input":[{"role":"user","content":"Hi"},'
        b'{"role":"assistant","content":"Ho"}],"instructions":"Be brief.",'
        b'"text":{"verbosity":"low"}}'
    )


def test_an_anthropic_body_is_exactly_this() -> None:
    thinking = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
    assert encode(body_of("anthropic", WITH_SYSTEM, thinking)) == (
        b'{"model":"m-1","max_tokens":8192,"messages":[{"role":"user","content":"Hi"},'
        b'{"role":"assistant","content":"Ho"}],"system":"Be brief.",'
        b'"thinking":{"type":"enabled","budget_tokens":1024}}'
    )


def test_model_params_override_the_default_of_max_tokens() -> None:
    assert body_of("anthropic", USER, {"max_tokens": 5})["max_tokens"] == 5


@pytest.mark.parametrize("name", NAMES)
def test_the_requests_own_params_win_over_the_models(name: str) -> None:
    request = ModelRequest(USER.messages, {"temperature": 1})
    assert body_of(name, request, {"temperature": 0, "top_p": 0.5})["temperature"] == 1


@pytest.mark.parametrize("name", NAMES)
def test_params_do_not_leak_from_one_call_to_the_next(name: str) -> None:
    params = {"stop": ["x"]}
    body_of(name, ModelRequest(USER.messages, {"temperature": 1}), params)
    assert params == {"stop": ["x"]}
    assert "temperature" not in body_of(name, USER, params)


def test_numbers_that_json_cannot_carry_are_refused() -> None:
    with pytest.raises(ValueError, match="JSON"):
        encode({"seed": 2**80, "temperature": float("nan")})


CHAT = {
    "model": "gpt",
    "choices": [
        {
            "finish_reason": "tool_calls",
            "message": {
                "content": None,
                "reasoning_content": "hm",
                "tool_calls": [{"id": "c1", "function": {"name": "ls", "arguments": '{"a":'}}],
            },
        }
    ],
    "usage": {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "total_tokens": 15,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 2},
    },
}
RESPONSES = {
    "model": "gpt",
    "status": "incomplete",
    "incomplete_details": {"reason": "max_output_tokens"},
    "output": [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "function_call", "call_id": "c1", "name": "ls", "arguments": '{"a":'},
        {"type": "message", "content": [{"type": "output_text", "text": "hello"}]},
    ],
    "usage": {
        "input_tokens": 10,
        "output_tokens": 5,
        "input_tokens_details": {"cached_tokens": 4},
        "output_tokens_details": {"reasoning_tokens": 2},
    },
}
ANTHROPIC = {
    "model": "claude",
    "stop_reason": "tool_use",
    "content": [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "hello"},
        {"type": "tool_use", "id": "c1", "name": "ls", "input": {"a": 1}},
    ],
    "usage": {
        "input_tokens": 3,
        "cache_read_input_tokens": 4,
        "cache_creation_input_tokens": 3,
        "output_tokens": 5,
    },
}
SOUND = {"openai-chat": CHAT, "openai-responses": RESPONSES, "anthropic": ANTHROPIC}


def read(name: str, data: Any) -> Reading:
    return PROTOCOLS[name].read(orjson.dumps(data))


def test_an_openai_chat_answer_is_read_in_full() -> None:
    got = read("openai-chat", CHAT)
    assert (got.text, got.stop_reason, got.model, got.reasoning) == (
        "",
        "tool_calls",
        "gpt",
        "hm",
    )
    assert (got.tool_calls[0].name, got.tool_calls[0].arguments) == ("ls", '{"a":')
    assert got.counts == TokenCounts(10, 5, 4, 2)


def test_an_openai_responses_answer_is_read_in_full() -> None:
    got = read("openai-responses", RESPONSES)
    assert (got.text, got.stop_reason, got.reasoning) == ("hello", "max_output_tokens", "hm")
    assert (got.tool_calls[0].id, got.tool_calls[0].arguments) == ("c1", '{"a":')
    assert got.counts == TokenCounts(10, 5, 4, 2)


def test_an_anthropic_answer_is_read_in_full() -> None:
    got = read("anthropic", ANTHROPIC)
    assert (got.text, got.stop_reason, got.reasoning) == ("hello", "tool_use", "hm")
    assert json.loads(got.tool_calls[0].arguments) == {"a": 1}
    assert got.counts == TokenCounts(10, 5, 4, 0, 3)


def test_reasoning_left_out_of_completion_tokens_is_added() -> None:
    usage = {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "total_tokens": 115,
        "completion_tokens_details": {"reasoning_tokens": 100},
    }
    counts = read("openai-chat", CHAT | {"usage": usage}).counts
    assert counts == TokenCounts(10, 105, 0, 100)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "usage",
    [
        None,
        3,
        [],
        {},
        {"prompt_tokens": -1, "completion_tokens": 1, "input_tokens": -1, "output_tokens": 1},
        {"prompt_tokens": "9", "completion_tokens": 1, "input_tokens": "9", "output_tokens": 1},
        {"prompt_tokens": 10**12, "completion_tokens": 1, "input_tokens": 10**12}
        | {"output_tokens": 1},
        {"prompt_tokens": True, "completion_tokens": 1, "input_tokens": True, "output_tokens": 1},
        {"prompt_tokens": 1.5, "completion_tokens": 1, "input_tokens": 1.5, "output_tokens": 1},
    ],
)
def test_usage_that_cannot_be_right_is_unknown(name: str, usage: Any) -> None:
    got = read(name, SOUND[name] | {"usage": usage})
    assert got.counts is None
    assert got.model


def test_more_cached_than_given_tokens_is_unknown() -> None:
    usage = {
        "prompt_tokens": 1,
        "completion_tokens": 1,
        "prompt_tokens_details": {"cached_tokens": 2},
    }
    assert read("openai-chat", CHAT | {"usage": usage}).counts is None


def test_a_lone_surrogate_in_an_answer_is_replaced() -> None:
    body = b'{"choices":[{"message":{"content":"a\\ud800b \\ud83d\\ude00"}}]}'
    assert PROTOCOLS["openai-chat"].read(body).text == "a\ufffdb \U0001f600"


def test_an_error_with_status_200_keeps_its_own_status() -> None:
    with pytest.raises(EndpointError) as caught:
        read("openai-chat", {"error": {"code": 429, "message": "slow down"}})
    assert caught.value.status == 429


def test_a_failed_response_is_an_error_of_its_code() -> None:
    with pytest.raises(EndpointError) as caught:
        read("openai-responses", {"status": "failed", "error": {"code": "rate_limit_exceeded"}})
    assert caught.value.status == 429


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"{}", b"\xff\xfe", b"[" * 100_000])
def test_garbage_is_an_invalid_response(name: str, body: bytes) -> None:
    with pytest.raises(AttemptFault) as caught:
        PROTOCOLS[name].read(body)
    assert caught.value.code is IssueCode.MODEL_RESPONSE_INVALID
    assert len(caught.value.message) < 500


def read_or_fault(name: str, body: bytes) -> None:
    try:
        got = PROTOCOLS[name].read(body)
    except (AttemptFault, EndpointError):
        return
    got.text.encode("utf-8")
    assert all(isinstance(call.arguments, str) for call in got.tool_calls)


FIELDS = [
    *("choices", "message", "content", "text", "type", "usage", "output", "tool_calls"),
    *("name", "status", "error", "code", "arguments", "input", "thinking", "summary"),
    *("prompt_tokens", "completion_tokens", "input_tokens", "output_tokens", "function"),
    *("prompt_tokens_details", "refusal", "incomplete_details", "reasoning"),
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(FIELDS),
            inner,
            max_size=5,
        )
    ),
    max_leaves=25,
)


@given(st.sampled_from(NAMES), JSON)
def test_no_json_makes_read_raise_anything_but_a_fault(name: str, data: Any) -> None:
    read_or_fault(name, json.dumps(data).encode())


@given(st.sampled_from(NAMES), st.binary(max_size=200))
def test_no_bytes_make_read_raise_anything_but_a_fault(name: str, body: bytes) -> None:
    read_or_fault(name, body)


@given(st.sampled_from(NAMES), st.data())
def test_no_spoiled_field_makes_read_raise_anything_but_a_fault(
    name: str, data: st.DataObject
) -> None:
    answer = json.loads(json.dumps(SOUND[name]))
    node, key = data.draw(st.sampled_from(list(_places(answer))))
    node[key] = data.draw(JSON)
    read_or_fault(name, json.dumps(answer).encode())


def _places(node: Any) -> Any:
    items = node.items() if isinstance(node, dict) else enumerate(node)
    for key, value in items:
        yield node, key
        if isinstance(value, dict | list):
            yield from _places(value)


def test_tool_input_nested_deeply_is_read_or_faulted() -> None:
    for depth in (200, 900, 5_000):
        nested = b'{"a":' * depth + b"1" + b"}" * depth
        body = b'{"content":[{"type":"tool_use","name":"x","input":' + nested + b"}]}"
        read_or_fault("anthropic", body)
