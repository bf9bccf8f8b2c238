"""What goes on of a body: the model's params over the agent's, the rest as it came."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.models.gateway.bodies import Unreadable, prepare, read_body

RESERVED = frozenset({"model", "messages", "stream"})
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)
NAMES = st.sampled_from(["temperature", "top_p", "model", "stream", "stream_options", "ü", ""])


@given(
    extra=st.dictionaries(NAMES, JSON, max_size=5),
    params=st.dictionaries(NAMES, JSON, max_size=4),
    protocol=st.sampled_from(["openai-chat", "openai-responses", "anthropic"]),
    is_ascii=st.booleans(),
    indent=st.none() | st.integers(0, 3),
)
@settings(deadline=None, max_examples=60)
def test_params_win_and_all_else_stays(
    extra: dict[str, Any],
    params: dict[str, Any],
    protocol: str,
    is_ascii: bool,
    indent: int | None,
) -> None:
    data = {**extra, "model": "m", "messages": []}
    raw = json.dumps(data, ensure_ascii=is_ascii, indent=indent).encode("utf-8", "surrogatepass")
    made = prepare(raw, read_body(raw), protocol, params, RESERVED)
    wanted = {**data, **{k: v for k, v in params.items() if k not in RESERVED}}
    sent = json.loads(made.body)
    if protocol == "openai-chat" and data.get("stream") is True:
        assert sent["stream_options"]["include_usage"] is True
        wanted["stream_options"] = sent["stream_options"]
    else:
        assert not made.strips_usage
    assert sent == wanted


def test_a_body_that_need_not_change_goes_on_byte_for_byte() -> None:
    raw = b'{ "model" :"m","x":1E400, "y": 1.10,\t"stream":false }\n'
    made = prepare(raw, {"model": "m", "stream": False}, "openai-chat", {}, RESERVED)
    assert made.body == raw


@pytest.mark.parametrize(
    ("options", "strips"),
    [(None, True), ({}, True), ({"include_usage": False}, True), ({"include_usage": True}, False)],
)
def test_usage_is_asked_for_and_taken_out_where_only_we_asked(options: Any, strips: bool) -> None:
    data = {"model": "m", "stream": True, "messages": []}
    data |= {} if options is None else {"stream_options": options}
    made = prepare(json.dumps(data).encode(), data, "openai-chat", {}, RESERVED)
    assert json.loads(made.body)["stream_options"] == {"include_usage": True}
    assert made.strips_usage is strips


def test_other_stream_options_stay() -> None:
    data = {"model": "m", "stream": True, "stream_options": {"include_obfuscation": False}}
    made = prepare(json.dumps(data).encode(), data, "openai-chat", {}, RESERVED)
    sent = json.loads(made.body)["stream_options"]
    assert sent == {"include_obfuscation": False, "include_usage": True}


def test_lone_surrogates_are_legal() -> None:
    raw = b'{"model":"m","x":"\\ud800"}'
    assert json.loads(prepare(raw, read_body(raw), "anthropic", {"t": 1}, RESERVED).body)["t"] == 1


@pytest.mark.parametrize("raw", [b"", b"[]", b"1", b"{", b'"\\ud800"', b'{"a":"\\ud800"', b"\xff"])
def test_what_is_no_object_is_unreadable(raw: bytes) -> None:
    with pytest.raises(Unreadable):
        read_body(raw)


@pytest.mark.parametrize("name", ["model", "stream", "tools", "messages", "max_tokens"])
def test_a_field_written_twice_means_the_same_to_the_endpoint_as_to_us(name: str) -> None:
    """Some parsers take the first, and would stream unasked, or use tools that were not seen."""
    fields = {"model": "m", "messages": [], "stream": False, "tools": [], "max_tokens": 1}
    last = json.dumps(fields)[1:].encode()
    raw = b'{"%b": "first", %b' % (name.encode(), last)
    made = prepare(raw, read_body(raw), "anthropic", {}, RESERVED)
    assert b"first" not in made.body
    assert json.loads(made.body) == fields
