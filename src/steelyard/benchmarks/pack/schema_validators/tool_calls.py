"""The schema of the validator that looks at the tools an agent called: `tool_calls`."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import Field, model_validator

from steelyard.benchmarks.pack.schema_validators.base import Pattern, Strict, Text, ValidatorSpec

MAX_WANTED: Final = 100
Count = Annotated[int, Field(ge=0, le=MAX_WANTED)]
Total = Annotated[int, Field(ge=0, le=1_000_000)]


class NamePattern(Strict):
    """Names that a pattern matches as a whole."""

    regex: Pattern


ToolName = Text | NamePattern


class CallSpec(Strict):
    """A call that is wanted, or at most so many of which are allowed."""

    name: ToolName
    """The tool's, or `{regex: …}` for all of it."""
    arguments: dict[str, Any] | None = None
    """What they must hold; others may stand beside them. Texts are templates."""
    count: Count | None = None
    """Exactly so many; stands for `min` and `max`."""
    min: Count | None = None
    """1 by default, 0 where `max` is 0."""
    max: Count | None = None

    @model_validator(mode="after")
    def _has_one_count(self) -> CallSpec:
        if self.count is not None and (self.min is not None or self.max is not None):
            raise ValueError("give count, or min and max")
        if self.max is not None and self.needed > self.max:
            raise ValueError("min is more than max")
        return self

    @property
    def needed(self) -> int:
        """How many are wanted."""
        if self.count is not None:
            return self.count
        return self.min if self.min is not None else int(self.max != 0)

    @property
    def allowed(self) -> int | None:
        """How many may be made; None for any number."""
        return self.max if self.count is None else self.count


class ToolCallsSpec(ValidatorSpec):
    """Which tools were called, with which arguments, in which order."""

    type: Literal["tool_calls"]
    calls: Annotated[list[CallSpec], Field(max_length=50)] = Field(default=[])
    order: Literal["any", "subsequence", "exact"] = "any"
    """`subsequence`: in this order, others between; `exact`: these and no others."""
    forbid: Annotated[list[ToolName], Field(max_length=50)] = Field(default=[])
    """Tools that may not be called at all."""
    min: Total | None = None
    """Calls of any tool."""
    max: Total | None = None
    partial: bool = False
    """True: the share of the wanted calls that were made counts."""

    @model_validator(mode="after")
    def _asks_something(self) -> ToolCallsSpec:
        bounds = (self.min is not None, self.max is not None, self.order == "exact")
        if not self.calls and not self.forbid and not any(bounds):
            raise ValueError("give at least one of calls, forbid, min and max")
        if sum(call.needed for call in self.calls) > MAX_WANTED:
            raise ValueError(f"more than {MAX_WANTED} calls are wanted")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError("min is more than max")
        ranged = any(call.min is not None or call.max is not None for call in self.calls)
        if self.order == "exact" and ranged:
            raise ValueError("in exact order a call has a count, not min or max")
        return self

    def reads_steps(self) -> bool:
        """Say that it looks at the trajectory."""
        return True


class ReferenceCall(Strict):
    """A call that `oracle` notes in its trajectory."""

    name: Text
    arguments: dict[str, Any] = Field(default={})
    """Texts are templates."""
