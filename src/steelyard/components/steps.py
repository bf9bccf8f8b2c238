"""The steps of a trajectory, in the words of ATIF (Agent Trajectory Interchange Format)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from steelyard.components.model import ToolCall
from steelyard.components.values import Usage


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool gave back."""

    call_id: str | None
    """The `ToolCall.id` it answers; None where that is not known."""
    content: str


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a trajectory, in ATIF's words."""

    source: str
    """`user`, `agent` or `system`."""
    message: str
    extra: Mapping[str, Any] = field(default_factory=dict)
    tool_calls: tuple[ToolCall, ...] = ()
    """Tools that the agent asked for in this step."""
    results: tuple[ToolResult, ...] = ()
    """What those tools gave back: ATIF's observation."""
    reasoning: str | None = None
    model: str | None = None
    """Where another model than the request's answered."""
    usage: Usage | None = None
    """What the step's model call consumed; None where there was none, or it is not known."""

    def as_json(self) -> dict[str, Any]:
        """Give the serialisable form; what is empty is left out."""
        data: dict[str, Any] = {"source": self.source, "message": self.message}
        if self.extra:
            data["extra"] = dict(self.extra)
        if self.tool_calls:
            data["tool_calls"] = [
                {"id": call.id, "name": call.name, "arguments": call.arguments}
                for call in self.tool_calls
            ]
        if self.results:
            data["results"] = [
                {"call_id": result.call_id, "content": result.content} for result in self.results
            ]
        if self.reasoning is not None:
            data["reasoning"] = self.reasoning
        if self.model is not None:
            data["model"] = self.model
        if self.usage is not None:
            data["usage"] = self.usage.as_json()
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Step:
        """Read the serialisable form; raise `KeyError` or `TypeError` on another."""
        usage = data.get("usage")
        return cls(
            data["source"],
            data["message"],
            data.get("extra", {}),
            tuple(ToolCall(**call) for call in data.get("tool_calls", ())),
            tuple(ToolResult(**result) for result in data.get("results", ())),
            data.get("reasoning"),
            data.get("model"),
            None if usage is None else Usage.from_json(usage),
        )
