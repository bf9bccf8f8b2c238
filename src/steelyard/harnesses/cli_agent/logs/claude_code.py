"""Claude Code: the session's JSON lines below `~/.claude/projects`, and `stream-json` it printed.

One answer of the model is several lines with one message id, a line for each block.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from steelyard.components.model import ToolCall
from steelyard.components.steps import Step
from steelyard.components.values import Usage
from steelyard.harnesses.cli_agent.log import (
    AgentLog,
    Reported,
    Steps,
    call,
    count,
    dollars,
    entries,
    items,
    member,
    text,
)


@dataclass(slots=True)
class _Answer:
    """The blocks of one answer, as far as they were written."""

    id: str
    texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    usage: Usage | None = None
    is_aside: bool = False

    def step(self) -> Step:
        return Step(
            "agent",
            "\n".join(self.texts),
            {"sidechain": True} if self.is_aside else {},
            tool_calls=tuple(self.calls),
            reasoning="\n".join(self.thoughts) or None,
            usage=self.usage,
        )


def read(log: bytes, printed: bytes) -> AgentLog:
    """Read both: the session's file for the steps, what was printed for how it ended."""
    session, stream = entries(log), entries(printed)
    steps = Steps()
    answer: _Answer | None = None
    version: str | None = None
    for line in session.objects or stream.objects:
        kind = line.get("type")
        message = line.get("message")
        version = version or text(line.get("version")) or None
        if kind == "assistant" and isinstance(message, Mapping):
            name = text(message.get("id"))
            if answer is None or answer.id != name:
                if answer is not None:
                    steps.add(answer.step())
                answer = _Answer(name, is_aside=line.get("isSidechain") is True)
            _add_blocks(answer, message)
        elif kind == "user":
            if answer is not None:
                steps.add(answer.step())
                answer = None
            _add_user(steps, member(message, "content"))
    if answer is not None:
        steps.add(answer.step())
    result: Mapping[str, Any] = next(
        (one for one in reversed(stream.objects) if one.get("type") == "result"), {}
    )
    subtype = text(result.get("subtype"))
    failed = result.get("is_error") is True or subtype.startswith("error")
    hit_limit = subtype == "error_max_turns"
    return AgentLog(
        steps.all(),
        _reported(result),
        answer=text(result.get("result")) or None,
        failure=_failure(result, subtype) if failed and not hit_limit else None,
        hit_turn_limit=hit_limit,
        version=version,
        denied=len(items(result.get("permission_denials"))),
        is_cut=session.is_cut or stream.is_cut,
        unread_lines=session.unread_lines + stream.unread_lines,
        left_out_steps=steps.left_out,
    )


def _add_blocks(answer: _Answer, message: Mapping[str, Any]) -> None:
    for block in items(message.get("content")):
        kind = member(block, "type")
        if kind == "text":
            answer.texts.append(text(block.get("text")))
        elif kind == "thinking":
            answer.thoughts.append(text(block.get("thinking")))
        elif kind == "tool_use":
            answer.calls.append(call(block.get("id"), block.get("name"), block.get("input")))
    answer.usage = _usage(message.get("usage")) or answer.usage  # the last one is whole


def _add_user(steps: Steps, content: Any) -> None:
    if isinstance(content, str):
        steps.add(Step("user", text(content)))
    for block in items(content):
        kind = member(block, "type")
        if kind == "text":
            steps.add(Step("user", text(block.get("text"))))
        elif kind == "tool_result":
            inner = block.get("content")
            if not isinstance(inner, str):
                inner = "\n".join(text(member(part, "text")) for part in items(inner))
            steps.add_result(text(block.get("tool_use_id")) or None, inner)


def _usage(data: Any) -> Usage | None:
    """Anthropic counts cached input apart; ours holds it."""
    plain, output = count(member(data, "input_tokens")), count(member(data, "output_tokens"))
    if plain is None or output is None:
        return None
    cached = count(member(data, "cache_read_input_tokens")) or 0
    written = count(member(data, "cache_creation_input_tokens")) or 0
    return Usage(plain + cached + written, output, cached, requests=1, cost_usd=None)


def _reported(result: Mapping[str, Any]) -> Reported:
    usage = _usage(result.get("usage"))
    return Reported(
        None if usage is None else usage.input_tokens,
        None if usage is None else usage.output_tokens,
        None if usage is None else usage.cached_tokens,
        count(result.get("num_turns")),
        dollars(result.get("total_cost_usd")),
    )


def _failure(result: Mapping[str, Any], subtype: str) -> str:
    said = text(result.get("result")) or "; ".join(map(text, items(result.get("errors"))))
    return said[:1000] or subtype or "it says that it failed"
