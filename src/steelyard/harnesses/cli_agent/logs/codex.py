"""Codex: the session's `rollout-*.jsonl` below `$CODEX_HOME/sessions`, and `--json` it printed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from steelyard.components.model import ToolCall
from steelyard.components.steps import Step
from steelyard.components.values import Usage
from steelyard.harnesses.cli_agent.log import (
    AgentLog,
    Reported,
    Steps,
    call,
    count,
    entries,
    items,
    member,
    text,
)

_CALLS: Final = {"function_call": "arguments", "custom_tool_call": "input"}
_OUTPUTS: Final = ("function_call_output", "custom_tool_call_output")
_SOURCES: Final = {"user": "user", "assistant": "agent"}


class _Answer:
    """What the model said between two requests: thoughts, words and tool calls in one step."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._calls: list[ToolCall] = []

    def add(self, payload: Mapping[str, Any]) -> None:
        kind = text(payload.get("type"))
        if kind == "message":
            self._texts.append(_content(payload))
        elif kind == "reasoning":
            self._thoughts += [text(member(part, "text")) for part in items(payload.get("summary"))]
        elif kind in _CALLS:
            arguments = payload.get(_CALLS[kind])
            self._calls.append(call(payload.get("call_id"), payload.get("name"), arguments))
        elif kind == "local_shell_call":
            self._calls.append(call(payload.get("call_id"), "shell", payload.get("action")))

    def end(self, usage: Usage | None = None) -> None:
        """Make a step of it, where anything was said."""
        if self._texts or self._thoughts or self._calls:
            self._steps.add(
                Step(
                    "agent",
                    "\n".join(self._texts),
                    tool_calls=tuple(self._calls),
                    reasoning="\n".join(self._thoughts) or None,
                    usage=usage,
                )
            )
        self._texts, self._thoughts, self._calls = [], [], []


def read(log: bytes, printed: bytes) -> AgentLog:
    """Read both: the rollout for the steps and figures, what was printed for how it ended."""
    rollout, stream = entries(log), entries(printed)
    steps = Steps()
    answer = _Answer(steps)
    total: Any = None
    last: str | None = None
    version: str | None = None
    requests = 0
    for line in rollout.objects:
        payload = line.get("payload")
        if not isinstance(payload, Mapping):
            continue
        kind = text(payload.get("type"))
        if line.get("type") == "session_meta":
            version = text(payload.get("cli_version")) or None
        elif line.get("type") == "token_usage_record":
            requests += 1
            answer.end(_usage(payload.get("usage")))
        elif line.get("type") == "response_item":
            _add_item(steps, answer, payload)
        elif kind == "token_count":
            total = member(payload, "info", "total_token_usage") or total
        elif kind == "task_complete":
            last = text(payload.get("last_agent_message")) or last
    answer.end()
    usage = _usage(total or _printed_usage(stream.objects))
    return AgentLog(
        steps.all(),
        Reported(
            None if usage is None else usage.input_tokens,
            None if usage is None else usage.output_tokens,
            None if usage is None else usage.cached_tokens,
            requests or None,
        ),
        answer=last or _last_words(stream.objects),
        failure=_failure(stream.objects),
        version=version,
        is_cut=rollout.is_cut or stream.is_cut,
        unread_lines=rollout.unread_lines + stream.unread_lines,
        left_out_steps=steps.left_out,
    )


def _add_item(steps: Steps, answer: _Answer, payload: Mapping[str, Any]) -> None:
    kind = text(payload.get("type"))
    if kind == "message" and payload.get("role") != "assistant":
        answer.end()
        source = _SOURCES.get(text(payload.get("role")), "system")
        steps.add(Step(source, _content(payload)))
    elif kind in _OUTPUTS:
        answer.end()
        output = payload.get("output")
        if not isinstance(output, str):
            output = text(member(output, "content"))
        steps.add_result(text(payload.get("call_id")) or None, output)
    else:
        answer.add(payload)


def _content(payload: Mapping[str, Any]) -> str:
    return text("\n".join(text(member(part, "text")) for part in items(payload.get("content"))))


def _usage(data: Any) -> Usage | None:
    given, made = count(member(data, "input_tokens")), count(member(data, "output_tokens"))
    if given is None or made is None:
        return None
    cached = count(member(data, "cached_input_tokens")) or 0
    reasoning = count(member(data, "reasoning_output_tokens")) or 0
    return Usage(given, made, cached, reasoning, 1, None)


def _printed_usage(stream: tuple[Mapping[str, Any], ...]) -> Any:
    ends = [line.get("usage") for line in stream if line.get("type") == "turn.completed"]
    return ends[-1] if ends else None


def _last_words(stream: tuple[Mapping[str, Any], ...]) -> str | None:
    said = [
        text(member(line, "item", "text"))
        for line in stream
        if line.get("type") == "item.completed" and member(line, "item", "type") == "agent_message"
    ]
    return said[-1] or None if said else None


def _failure(stream: tuple[Mapping[str, Any], ...]) -> str | None:
    for line in reversed(stream):
        if line.get("type") == "turn.failed":
            return text(member(line, "error", "message"))[:1000] or "its turn failed"
        if line.get("type") == "turn.completed":
            return None
    return None
