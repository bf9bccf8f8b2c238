"""A request's conversation, whatever the protocol: system prompt and turns, as steps. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import orjson

from steelyard.components.model import ToolCall
from steelyard.components.steps import Step, ToolResult

Item = Any
"""One entry of `messages` or `input`, as the agent wrote it."""
MEDIA_TYPES: Final = frozenset(
    {"image", "image_url", "input_image", "document", "file", "input_file", "audio", "input_audio"}
)


@dataclass(frozen=True, slots=True)
class Conversation:
    """What a request says so far."""

    system: str | None
    items: Sequence[Item]
    thread: str
    """Where the conversation goes on from, as far as the request says; '' for its beginning."""


def conversation(protocol: str, data: Mapping[str, Any]) -> Conversation:
    """Part a request's system prompt from its turns; never raises, whatever it holds."""
    if protocol == "openai-responses":
        given = data.get("input")
        items = given if isinstance(given, list) else [{"role": "user", "content": given}]
        system = [data["instructions"]] if data.get("instructions") else []
        thread = data.get("previous_response_id") or data.get("conversation")
    else:
        given = data.get("messages")
        items = given if isinstance(given, list) else []
        system = [data["system"]] if protocol == "anthropic" and data.get("system") else []
        thread = None
    leading = 0
    while leading < len(items) and _role(items[leading]) in ("system", "developer"):
        system.append(items[leading].get("content"))
        leading += 1
    texts = [text_of(part) for part in system]
    return Conversation(
        "\n\n".join(text for text in texts if text) or None,
        items[leading:] if leading else items,
        thread if isinstance(thread, str) else "",
    )


def _role(item: Item) -> str:
    """Tell whose turn an item is: `user`, `assistant`, `tool`, `system`, `developer`."""
    if not isinstance(item, dict):
        return "user"
    role = item.get("role")
    if isinstance(role, str):
        return "tool" if role == "function" else role
    kind = item.get("type")
    if isinstance(kind, str) and kind.endswith("_output"):
        return "tool"
    return "assistant" if isinstance(kind, str) else "user"


def is_assistants(item: Item) -> bool:
    """True for what the model said itself."""
    return _role(item) == "assistant"


def key_of(item: Item) -> bytes:
    """Give what tells an item from others; marks of the prompt cache, which move, left out."""
    if isinstance(item, dict):
        content = item.get("content")
        if isinstance(content, list):
            content = [_unmarked(part) for part in content]
            # Clients turn a text into one marked part, and back again on the next call.
            if len(content) == 1 and isinstance(content[0], dict):
                part = content[0]
                if set(part) == {"type", "text"}:
                    content = part["text"]
            item = {**item, "content": content}
    try:
        return orjson.dumps(item, option=orjson.OPT_NON_STR_KEYS)
    except TypeError:
        return json.dumps(item).encode("ascii")


def _unmarked(part: Any) -> Any:
    if isinstance(part, dict) and "cache_control" in part:
        return {name: value for name, value in part.items() if name != "cache_control"}
    return part


def text_of(content: Any) -> str:
    """Give the text of a content; what is no text is named by its kind and size."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(filter(None, (_part_text(part) for part in content)))
    if content is None:
        return ""
    return _part_text(content)


def _part_text(part: Any) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        return _short(part)
    kind = str(part.get("type"))
    for name in ("text", "refusal", "thinking"):
        if isinstance(part.get(name), str):
            return str(part[name])
    if kind in MEDIA_TYPES:
        return _media_note(kind, part)
    if kind in ("redacted_thinking", "reasoning"):
        return ""
    if "content" in part:
        return text_of(part["content"])
    return _short(part)


def _media_note(kind: str, part: Mapping[str, Any]) -> str:
    """Name an image or file by its type and size; its data are not kept."""
    data = orjson_size(part)
    source = part.get("source")
    media = source.get("media_type") if isinstance(source, dict) else None
    url = part.get("image_url")
    if isinstance(url, dict):
        url = url.get("url")
    if media is None and isinstance(url, str) and url.startswith("data:"):
        media = url[5:60].partition(";")[0]
    return f"[{media if isinstance(media, str) else kind}, {data} bytes as sent]"


def orjson_size(value: Any) -> int:
    """Give the size of a value as JSON."""
    try:
        return len(orjson.dumps(value))
    except TypeError:
        return len(json.dumps(value))


def _short(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (ValueError, TypeError, RecursionError):
        return "(unreadable)"


def steps_of(items: Iterable[Item]) -> list[Step]:
    """Turn items into steps; tool results that follow each other become one."""
    steps: list[Step] = []
    for item in items:
        for step in _item_steps(item):
            last = steps[-1] if steps else None
            if step.results and last is not None and last.results and not last.message:
                steps[-1] = Step("system", "", results=last.results + step.results)
            else:
                steps.append(step)
    return steps


def _item_steps(item: Item) -> list[Step]:
    role = _role(item)
    if not isinstance(item, dict):
        return [Step("user", text_of(item))]
    if role == "tool":
        call_id = item.get("tool_call_id") or item.get("call_id") or item.get("name")
        result = ToolResult(
            call_id if isinstance(call_id, str) else None,
            text_of(item.get("content", item.get("output"))),
        )
        return [Step("system", "", results=(result,))]
    if role == "assistant":
        return [_assistant_step(item)]
    content = item.get("content")
    if role in ("system", "developer"):
        return [Step("system", text_of(content))]
    return _user_steps(content)


def _user_steps(content: Any) -> list[Step]:
    """Part tool results, which `anthropic` keeps in the user's turn, from the user's words."""
    if not isinstance(content, list):
        return [Step("user", text_of(content))]
    results = []
    words = []
    for part in content:
        if isinstance(part, dict) and part.get("type") == "tool_result":
            call_id = part.get("tool_use_id")
            text = text_of(part.get("content"))
            results.append(ToolResult(call_id if isinstance(call_id, str) else None, text))
        else:
            words.append(part)
    steps = [Step("system", "", results=tuple(results))] if results else []
    if words or not results:
        steps.append(Step("user", text_of(words)))
    return steps


GIVEN: Final[Mapping[str, Any]] = MappingProxyType({"given": True})
"""Marks what the agent put into the model's mouth: no call of this attempt said it."""


def _assistant_step(item: Mapping[str, Any]) -> Step:
    content = item.get("content")
    calls: list[ToolCall] = []
    if item.get("type") == "function_call":
        calls.append(_call(item.get("call_id"), item.get("name"), item.get("arguments")))
    given = item.get("tool_calls")
    for call in given if isinstance(given, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            calls.append(_call(call.get("id"), function.get("name"), function.get("arguments")))
    words = content
    if isinstance(content, list):
        uses = [p for p in content if isinstance(p, dict) and p.get("type") == "tool_use"]
        calls += [_call(use.get("id"), use.get("name"), _short(use.get("input"))) for use in uses]
        words = [part for part in content if part not in uses]
    return Step("agent", text_of(words), GIVEN, tuple(calls))


def _call(call_id: Any, name: Any, arguments: Any) -> ToolCall:
    return ToolCall(
        call_id if isinstance(call_id, str) else "",
        name if isinstance(name, str) else "",
        arguments if isinstance(arguments, str) else _short(arguments),
    )


def mapped(step: Step, change: Callable[[str], str]) -> Step:
    """Copy a step with every text of it changed, but for `extra`."""
    return Step(
        step.source,
        change(step.message),
        step.extra,
        tuple(ToolCall(change(c.id), change(c.name), change(c.arguments)) for c in step.tool_calls),
        tuple(
            ToolResult(None if r.call_id is None else change(r.call_id), change(r.content))
            for r in step.results
        ),
        None if step.reasoning is None else change(step.reasoning),
        None if step.model is None else change(step.model),
        step.usage,
    )
