"""mini-SWE-agent: its trajectory file, one JSON document written whole after each step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from steelyard.components.steps import Step
from steelyard.components.values import Usage
from steelyard.harnesses.cli_agent.log import (
    MAX_LOG_BYTES,
    AgentLog,
    Reported,
    Steps,
    call,
    count,
    dollars,
    items,
    member,
    parsed,
    text,
)

_LIMITS: Final = frozenset({"LimitsExceeded"})
_DONE: Final = frozenset({"", "Submitted"})


def read(log: bytes, printed: bytes) -> AgentLog:
    """Read the trajectory; what was printed is for people alone."""
    document = parsed(log) if len(log) <= MAX_LOG_BYTES else None
    if not isinstance(document, Mapping):
        return AgentLog(is_cut=bool(log.strip()))
    steps = Steps()
    usages = []
    for message in items(document.get("messages")):
        role = member(message, "role")
        if role == "assistant":
            usage = _usage(member(message, "extra", "response", "usage"))
            usages.append(usage)
            calls = tuple(
                call(
                    member(one, "id"),
                    member(one, "function", "name"),
                    member(one, "function", "arguments"),
                )
                for one in items(member(message, "tool_calls"))
            )
            reasoning = text(member(message, "reasoning_content")) or None
            steps.add(
                Step(
                    "agent",
                    text(member(message, "content")),
                    tool_calls=calls,
                    reasoning=reasoning,
                    usage=usage,
                )
            )
        elif role == "tool":
            identifier = text(member(message, "tool_call_id")) or None
            steps.add_result(identifier, text(member(message, "content")))
        elif role in ("user", "system"):
            steps.add(Step(role, text(member(message, "content"))))
    info = document.get("info")
    status = text(member(info, "exit_status"))
    return AgentLog(
        steps.all(),
        _reported(info, usages),
        answer=text(member(info, "submission")) or None,
        failure=f"it ended with {status}" if status not in _DONE | _LIMITS else None,
        hit_turn_limit=status in _LIMITS,
        version=text(member(info, "mini_version")) or None,
        left_out_steps=steps.left_out,
    )


def _usage(data: Any) -> Usage | None:
    given, made = count(member(data, "prompt_tokens")), count(member(data, "completion_tokens"))
    if given is None or made is None:
        return None
    cached = count(member(data, "prompt_tokens_details", "cached_tokens")) or 0
    reasoning = count(member(data, "completion_tokens_details", "reasoning_tokens")) or 0
    return Usage(given, made, cached, reasoning, 1, None)


def _reported(info: Any, usages: list[Usage | None]) -> Reported:
    stats = member(info, "model_stats")
    cost, calls = dollars(member(stats, "instance_cost")), count(member(stats, "api_calls"))
    known = [usage for usage in usages if usage is not None]
    if not known or len(known) < len(usages):
        return Reported(requests=calls, cost_usd=cost)
    total = sum(known, Usage(cost_usd=None))
    return Reported(total.input_tokens, total.output_tokens, total.cached_tokens, calls, cost)
