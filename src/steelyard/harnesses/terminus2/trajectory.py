"""From a step of the package's own trajectory, which is ATIF as ours is, to ours. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from steelyard.components.model import ToolCall
from steelyard.components.steps import Step, ToolResult


def step_of(data: Mapping[str, Any], subagent: str | None = None) -> Step:
    """Read a step.

    Args:
        data: as the package serialises it, without what is empty.
        subagent: the name of the summarising call that it is a step of.
    """
    extra = dict(data.get("extra") or {})
    if subagent is not None:
        extra["subagent"] = subagent
    return Step(
        data["source"],
        _text(data.get("message")),
        extra,
        tuple(
            ToolCall(call["tool_call_id"], call["function_name"], json.dumps(call["arguments"]))
            for call in data.get("tool_calls") or ()
        ),
        tuple(_results((data.get("observation") or {}).get("results") or ())),
        data.get("reasoning_content"),
    )


def _results(results: Sequence[Mapping[str, Any]]) -> Sequence[ToolResult]:
    return [
        ToolResult(result.get("source_call_id"), _text(result["content"]))
        for result in results
        if result.get("content") is not None
    ]


def _text(content: Any) -> str:
    """Give a text; a message of parts has those of its texts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else ()
    return "".join(part.get("text") or "" for part in parts if isinstance(part, dict))
