"""Streams are read as they pass: however they are cut, the reading and the bytes are the same."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.models.gateway import streams
from steelyard.models.gateway.cover import Cover, Secrets
from steelyard.models.gateway.streams import StreamEnd, StreamReader
from steelyard.models.mock.streams import events
from steelyard.models.mock.wire import Answer, Call, ToolUse, Turn, answer_body
from steelyard.models.protocols import PROTOCOLS

TOOLS = (ToolUse("list_files", {"path": "/tmp/ä"}), ToolUse("read", '{"n": 1}'))
ANSWERS = {
    "text": Answer(
        "A sentence that is longer than one piece, with ünïcode.", reasoning="Hm, well."
    ),
    "tools": Answer("", TOOLS),
    "both": Answer("First this.", TOOLS[:1], "Thinking.", stop_reason=None),
    "silence": Answer(""),
}


def call_of(protocol: str, wants_usage: bool = True) -> Call:
    return Call(protocol, "mock", (Turn("user", "hello"),), True, wants_usage, {"model": "mock"})


def stream_of(protocol: str, answer: Answer) -> bytes:
    return b"".join(events(call_of(protocol), answer))


def passed(pieces: list[bytes], protocol: str, strips: bool = False) -> tuple[bytes, StreamEnd]:
    reader = StreamReader(protocol, strips_usage=strips)
    out = b"".join([*(reader.feed(piece) for piece in pieces), reader.close()])
    return out, reader.end()


def cut(data: bytes, places: list[int]) -> list[bytes]:
    at = sorted({place % (len(data) + 1) for place in places})
    return [data[i:j] for i, j in zip([0, *at], [*at, len(data)], strict=True)]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("kind", ANSWERS)
def test_a_stream_reads_as_the_whole_answer_would(protocol: str, kind: str) -> None:
    answer = ANSWERS[kind]
    whole = PROTOCOLS[protocol].read(orjson.dumps(answer_body(call_of(protocol), answer)))
    _, end = passed([stream_of(protocol, answer)], protocol)
    assert end.is_complete
    assert end.error is None
    got = end.reading
    assert (got.text, got.stop_reason, got.counts) == (whole.text, whole.stop_reason, whole.counts)
    assert (got.reasoning, got.model) == (whole.reasoning, whole.model)
    said = [(c.id, c.name, orjson.loads(c.arguments)) for c in got.tool_calls]
    assert said == [(c.id, c.name, orjson.loads(c.arguments)) for c in whole.tool_calls]


@given(
    protocol=st.sampled_from(sorted(PROTOCOLS)),
    kind=st.sampled_from(sorted(ANSWERS)),
    end_of_line=st.sampled_from([b"\n", b"\r\n", b"\r"]),
    places=st.lists(st.integers(0, 100_000), max_size=40),
    strips=st.booleans(),
)
@settings(deadline=None, max_examples=60)
def test_any_cut_gives_the_same_reading_and_the_same_bytes(
    protocol: str, kind: str, end_of_line: bytes, places: list[int], strips: bool
) -> None:
    data = stream_of(protocol, ANSWERS[kind]).replace(b"\n", end_of_line)
    strips = strips and protocol == "openai-chat"
    out, end = passed(cut(data, places), protocol, strips)
    whole_out, whole_end = passed([data], protocol, strips)
    assert end == whole_end
    assert out == whole_out
    if not strips:
        assert out == data


def test_usage_that_only_we_asked_for_is_taken_out_and_nothing_else() -> None:
    answer = ANSWERS["both"]
    asked = stream_of("openai-chat", answer)
    unasked = b"".join(events(call_of("openai-chat", wants_usage=False), answer))
    out, end = passed(cut(asked, list(range(0, len(asked), 7))), "openai-chat", strips=True)
    assert out == unasked
    assert end.reading.counts is not None


@pytest.mark.parametrize(
    "event",
    [
        {"choices": [], "prompt_filter_results": [{}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": {}},
        {"choices": [], "usage": None},
        {"usage": {"prompt_tokens": 1, "completion_tokens": 1}},
    ],
)
def test_other_chunks_without_words_stay(event: Any) -> None:
    data = b"data: " + orjson.dumps(event) + b"\n\n"
    assert passed([data], "openai-chat", strips=True)[0] == data


def test_comments_and_an_end_without_a_blank_line_stay() -> None:
    data = b': keep-alive\n\nevent: x\nid: 3\n\ndata: {"choices":[]}\n\ndata: [DONE]'
    out, end = passed(cut(data, [3, 20, 40]), "openai-chat", strips=True)
    assert out == data
    assert end.is_complete


def test_data_over_several_lines_is_one_event() -> None:
    data = b'data: {"choices": [{"index": 0,\ndata:  "delta": {"content": "hi"}}]}\n\n'
    assert passed([data], "openai-chat")[1].reading.text == "hi"


def test_a_block_without_end_is_not_held_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MAX_HELD_BYTES", 100)
    reader = StreamReader("openai-chat", strips_usage=True)
    out = reader.feed(b"data: " + b"x" * 60)
    assert out == b""
    out += reader.feed(b"y" * 60)
    assert len(out) == 126
    out += reader.feed(b"z\n\n") + reader.close()
    assert out == b"data: " + b"x" * 60 + b"y" * 60 + b"z\n\n"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_half_a_stream_is_not_complete_and_its_usage_not_known(protocol: str) -> None:
    blocks = list(events(call_of(protocol), ANSWERS["text"]))
    _, end = passed(blocks[: len(blocks) // 2], protocol)
    assert not end.is_complete
    assert end.reading.counts is None
    assert ANSWERS["text"].text.startswith(end.reading.text)


@pytest.mark.parametrize(
    ("protocol", "event", "status"),
    [
        ("openai-chat", {"error": {"message": "m", "type": "server_error", "code": None}}, 500),
        ("openai-chat", {"error": {"message": "m", "code": 429}}, 429),
        ("openai-chat", {"error": "out of luck"}, 500),
        ("anthropic", {"type": "error", "error": {"type": "overloaded_error"}}, 529),
        ("anthropic", {"type": "error"}, 500),
        ("openai-responses", {"type": "error", "code": "rate_limit_exceeded"}, 429),
        (
            "openai-responses",
            {
                "type": "response.failed",
                "response": {"status": "failed", "error": {"code": "context_length_exceeded"}},
            },
            400,
        ),
    ],
)
def test_an_error_in_mid_stream_is_an_error(protocol: str, event: Any, status: int) -> None:
    _, end = passed([b"data: " + orjson.dumps(event) + b"\n\n"], protocol)
    assert end.error is not None
    assert end.error.status == status


NAMES = st.sampled_from(
    [
        "type",
        "delta",
        "choices",
        "index",
        "content",
        "tool_calls",
        "function",
        "usage",
        "error",
        "response",
        "item",
        "content_block",
        "message",
        "output",
        "status",
        "arguments",
        "text",
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=5),
    max_leaves=12,
)
TYPES = st.sampled_from(
    [
        "message_start",
        "message_delta",
        "content_block_start",
        "content_block_delta",
        "error",
        "response.completed",
        "response.failed",
        "response.output_item.done",
        "response.created",
        "response.output_text.delta",
        "message_stop",
    ]
)


@given(protocol=st.sampled_from(sorted(PROTOCOLS)), event=st.dictionaries(NAMES, JSON), kind=TYPES)
@settings(deadline=None, max_examples=60)
def test_no_event_makes_a_reader_stumble(protocol: str, event: dict[str, Any], kind: str) -> None:
    for one in (event, {**event, "type": kind}):
        try:
            data = b"data: " + orjson.dumps(one) + b"\n\n"
        except TypeError:  # integers beyond 64 bits
            continue
        out, end = passed([data], protocol)
        assert out == data
        assert end.reading.text is not None


@given(protocol=st.sampled_from(sorted(PROTOCOLS)), data=st.binary(max_size=200))
@settings(deadline=None, max_examples=60)
def test_no_bytes_make_a_reader_stumble(protocol: str, data: bytes) -> None:
    out, _ = passed(cut(data, [5, 50, 90]), protocol)
    assert out == data


KEYS = ["sk-secret-value-1234", "pass word/+=&?"]


@given(
    texts=st.lists(st.sampled_from([*KEYS, "sk-sec", "ret", "s", "data: x", "\n\n", "=", "cGFz"])),
    places=st.lists(st.integers(0, 1000), max_size=30),
)
@settings(deadline=None, max_examples=60)
def test_no_cut_lets_a_secret_through(texts: list[str], places: list[int]) -> None:
    secrets = Secrets(KEYS)
    data = "".join(texts).encode()
    cover = Cover(secrets)
    out = b"".join([*(cover.feed(piece) for piece in cut(data, places)), cover.close()])
    assert out == secrets.covered(data)
    assert not any(key.encode() in out for key in KEYS)


def test_nothing_is_held_back_at_the_end_of_an_event() -> None:
    cover = Cover(Secrets(KEYS))
    assert cover.feed(b'data: {"a": "sk-secret"}\n\n') == b'data: {"a": "sk-secret"}\n\n'
    assert cover.feed(b"data: sk-secret-val") == b"data: "
    assert cover.feed(b"ley\n\n") == b"sk-secret-valley\n\n"


def test_values_that_cannot_be_told_from_text_are_left_alone() -> None:
    assert Secrets(["EMPTY", "x"]).forms == []
