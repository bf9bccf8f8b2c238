"""Small values that travel between components, the engine and the records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

JSON = Any
"""None, bool, int, float, str, or a list or mapping of them."""


class Trust(StrEnum):
    """How far the code that ran was held apart from what scored it. Never rounded up."""

    ISOLATED = "isolated"
    CONTAINED = "contained"
    HOST = "host"


WEAKEST_FIRST: Final = (Trust.HOST, Trust.CONTAINED, Trust.ISOLATED)


@dataclass(frozen=True, slots=True)
class Usage:
    """What model calls consumed."""

    input_tokens: int = 0
    """All input tokens, cached ones included."""
    output_tokens: int = 0
    """All output tokens, reasoning ones included."""
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    requests: int = 0
    cost_usd: float | None = 0.0
    """None where any call had no known price."""

    def __add__(self, other: Usage) -> Usage:
        known = self.cost_usd is not None and other.cost_usd is not None
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            self.requests + other.requests,
            (self.cost_usd or 0.0) + (other.cost_usd or 0.0) if known else None,
        )

    def as_json(self) -> dict[str, Any]:
        """Give the record's form."""
        return {
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cached_tokens": self.cached_tokens,
            "reasoning_tokens": self.reasoning_tokens,
            "requests": self.requests,
            "cost_usd": self.cost_usd,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Usage:
        """Read the record's form."""
        return cls(
            int(data["input_tokens"]),
            int(data["output_tokens"]),
            int(data["cached_tokens"]),
            int(data["reasoning_tokens"]),
            int(data["requests"]),
            None if data["cost_usd"] is None else float(data["cost_usd"]),
        )


NO_USAGE = Usage()


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation."""

    role: str
    """`system`, `user`, `assistant` or `tool`."""
    content: str
