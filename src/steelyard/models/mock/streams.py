"""Answers as server-sent events, in the grammar of each protocol. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import orjson

from steelyard.models.mock.wire import (
    CREATED,
    Answer,
    Call,
    answer_id,
    messages_blocks,
    messages_body,
    responses_body,
    responses_items,
    stop_reason,
    usage_body,
)

PIECE_CHARACTERS: Final = 24


def events(call: Call, answer: Answer) -> Iterator[bytes]:
    """Give the events of an answer, each a whole block that ends with an empty line."""
    if call.protocol == "openai-chat":
        return _chat(call, answer)
    if call.protocol == "openai-responses":
        return _responses(call, answer)
    return _messages(call, answer)


def pieces(text: str) -> Iterator[str]:
    """Cut a text into what one event carries."""
    for start in range(0, len(text), PIECE_CHARACTERS):
        yield text[start : start + PIECE_CHARACTERS]


def _data(data: Any) -> bytes:
    return b"data: " + orjson.dumps(data) + b"\n\n"


def _named(data: dict[str, Any]) -> bytes:
    return f"event: {data['type']}\n".encode() + _data(data)


def _chat(call: Call, answer: Answer) -> Iterator[bytes]:
    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        return _data({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    head = {
        "id": answer_id(call, "chatcmpl-"),
        "object": "chat.completion.chunk",
        "created": CREATED,
        "model": call.model,
    }
    yield chunk({"role": "assistant", "content": ""})
    for piece in pieces(answer.reasoning):
        yield chunk({"reasoning_content": piece})
    for piece in pieces(answer.text):
        yield chunk({"content": piece})
    for index, use in enumerate(answer.tool_calls):
        call_id = answer_id(call, f"call_{index}_")
        start = {"id": call_id, "type": "function", "function": {"name": use.name, "arguments": ""}}
        yield chunk({"tool_calls": [{"index": index, **start}]})
        for piece in pieces(use.arguments_text):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, stop_reason(call, answer))
    if call.wants_usage:
        yield _data({**head, "choices": [], "usage": usage_body(call, answer)})
    yield b"data: [DONE]\n\n"


def _responses(call: Call, answer: Answer) -> Iterator[bytes]:
    number = -1

    def event(kind: str, **fields: Any) -> bytes:
        nonlocal number
        number += 1
        return _named({"type": f"response.{kind}", "sequence_number": number, **fields})

    started = responses_body(call, answer, status="in_progress")
    yield event("created", response=started)
    yield event("in_progress", response=started)
    for index, item in enumerate(responses_items(call, answer)):
        at = {"item_id": item["id"], "output_index": index}
        if item["type"] == "message":
            part = item["content"][0]
            empty = {**item, "status": "in_progress", "content": []}
            yield event("output_item.added", output_index=index, item=empty)
            yield event("content_part.added", **at, content_index=0, part={**part, "text": ""})
            for piece in pieces(part["text"]):
                yield event("output_text.delta", **at, content_index=0, delta=piece, logprobs=[])
            yield event("output_text.done", **at, content_index=0, text=part["text"], logprobs=[])
            yield event("content_part.done", **at, content_index=0, part=part)
        elif item["type"] == "function_call":
            empty = {**item, "status": "in_progress", "arguments": ""}
            yield event("output_item.added", output_index=index, item=empty)
            for piece in pieces(item["arguments"]):
                yield event("function_call_arguments.delta", **at, delta=piece)
            yield event(
                "function_call_arguments.done",
                **at,
                name=item["name"],
                arguments=item["arguments"],
            )
        else:
            yield event("output_item.added", output_index=index, item={**item, "summary": []})
        yield event("output_item.done", output_index=index, item=item)
    yield event("completed", response=responses_body(call, answer))


def _messages(call: Call, answer: Answer) -> Iterator[bytes]:
    whole = messages_body(call, answer)
    usage = usage_body(call, answer)
    yield _named(
        {
            "type": "message_start",
            "message": {
                **whole,
                "content": [],
                "stop_reason": None,
                "usage": {**usage, "output_tokens": 1},
            },
        }
    )
    for index, block in enumerate(messages_blocks(call, answer)):
        empty, deltas = _block_parts(block)
        yield _named({"type": "content_block_start", "index": index, "content_block": empty})
        if index == 0:
            yield _named({"type": "ping"})
        for delta in deltas:
            yield _named({"type": "content_block_delta", "index": index, "delta": delta})
        yield _named({"type": "content_block_stop", "index": index})
    yield _named(
        {
            "type": "message_delta",
            "delta": {"stop_reason": whole["stop_reason"], "stop_sequence": None},
            "usage": {"output_tokens": usage.get("output_tokens", 0)},
        }
    )
    yield _named({"type": "message_stop"})


def _block_parts(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    if block["type"] == "text":
        deltas = [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
        return {"type": "text", "text": ""}, deltas
    if block["type"] == "thinking":
        thinking = [
            {"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"])
        ]
        signature = {"type": "signature_delta", "signature": block["signature"]}
        return {"type": "thinking", "thinking": "", "signature": ""}, [*thinking, signature]
    arguments = orjson.dumps(block["input"]).decode()
    partial = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces(arguments)]
    return {**block, "input": {}}, partial
