"""What an agent's own log says, and reading logs that may say anything.

The log was written beside code of a model: it is parsed line by line, every text and the number
of steps are bounded, and a last line that is cut off is told. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from steelyard.components.model import ToolCall
from steelyard.components.steps import Step, ToolResult

MAX_LOG_BYTES: Final = 32 * 1024 * 1024
"""Of a log that are read; the rest is left out, and that is told."""
MAX_LINE_BYTES: Final = 8 * 1024 * 1024
MAX_STEPS: Final = 2000
MAX_TEXT_CHARS: Final = 16 * 1024
"""Of one text of a step."""
_MAX_COUNT: Final = 1 << 53


@dataclass(frozen=True, slots=True)
class Reported:
    """The figures that the agent itself gives; None where it gives none.

    Usage is counted at the gateway. These stand beside it, never instead of it.
    """

    input_tokens: int | None = None
    """Cached ones included."""
    output_tokens: int | None = None
    cached_tokens: int | None = None
    requests: int | None = None
    cost_usd: float | None = None

    def as_json(self) -> dict[str, Any]:
        """Give what is known."""
        known = {
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cached_tokens": self.cached_tokens,
            "requests": self.requests,
            "cost_usd": self.cost_usd,
        }
        return {name: value for name, value in known.items() if value is not None}


@dataclass(frozen=True, slots=True)
class AgentLog:
    """What a log says."""

    steps: tuple[Step, ...] = ()
    """In ATIF's words."""
    reported: Reported = Reported()
    answer: str | None = None
    """The agent's last words, or what it submitted."""
    failure: str | None = None
    """Where it says that it failed though its exit code says nothing: how."""
    hit_turn_limit: bool = False
    version: str | None = None
    """That it says to be."""
    denied: int = 0
    """Tool calls that its own rules refused."""
    is_cut: bool = False
    """The last line is cut off: the program was ended while it wrote."""
    unread_lines: int = 0
    """Lines that are no JSON object."""
    left_out_steps: int = 0
    """Beyond `MAX_STEPS`."""


@dataclass(frozen=True, slots=True)
class Entries:
    """The JSON objects of a log, one a line."""

    objects: tuple[Mapping[str, Any], ...] = ()
    is_cut: bool = False
    unread_lines: int = 0


def entries(data: bytes) -> Entries:
    """Read JSON lines; what is none is counted, and a torn last line told apart."""
    found: list[Mapping[str, Any]] = []
    unread = 0
    is_cut = False
    lines = data[:MAX_LOG_BYTES].split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        entry = parsed(line) if len(line) <= MAX_LINE_BYTES else None
        if isinstance(entry, dict):
            found.append(entry)
        elif number == len(lines):  # nothing ended it
            is_cut = True
        else:
            unread += 1
    return Entries(tuple(found), is_cut, unread)


def parsed(data: bytes | str) -> Any:
    """Parse JSON; None where it is none, too deep or not UTF-8."""
    try:
        return orjson.loads(data)
    except (orjson.JSONDecodeError, RecursionError):
        return None


class Steps:
    """Steps as they are found, no more of them than `MAX_STEPS`."""

    def __init__(self) -> None:
        self._steps: list[Step] = []
        self.left_out = 0

    def add(self, step: Step) -> None:
        """Add one, or count it as left out."""
        if len(self._steps) < MAX_STEPS:
            self._steps.append(step)
        else:
            self.left_out += 1

    def add_result(self, call_id: str | None, content: str) -> None:
        """Add what a tool gave back: an observation after the step that asked for it."""
        self.add(Step("system", "", results=(ToolResult(call_id, clipped(content)),)))

    def all(self) -> tuple[Step, ...]:
        """Give them in order."""
        return tuple(self._steps)


def member(tree: Any, *path: str) -> Any:
    """Give what lies at a path of mappings; None where there is nothing, or something else."""
    for name in path:
        if not isinstance(tree, Mapping):
            return None
        tree = tree.get(name)
    return tree


def items(tree: Any) -> Sequence[Any]:
    """Give the members of a list; none of anything else."""
    return tree if isinstance(tree, list) else ()


def text(value: Any) -> str:
    """Give a text, bounded; empty of anything else."""
    return clipped(value) if isinstance(value, str) else ""


def count(value: Any) -> int | None:
    """Give a count; None of what is none: negative, fractional, of no use."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MAX_COUNT:
        return value
    return None


def dollars(value: Any) -> float | None:
    """Give an amount; None of what is none."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e9:
        return float(value)
    return None


def call(call_id: Any, name: Any, arguments: Any) -> ToolCall:
    """Make a tool call; arguments that are no text are written as JSON."""
    if not isinstance(arguments, str):
        arguments = orjson.dumps(arguments, default=str).decode("utf-8", "replace")
    return ToolCall(text(call_id), text(name) or "?", clipped(arguments))


def clipped(value: str) -> str:
    """Shorten a text, saying so; what no UTF-8 can hold is replaced."""
    if len(value) > MAX_TEXT_CHARS:
        value = f"{value[:MAX_TEXT_CHARS]}[{len(value) - MAX_TEXT_CHARS} characters left out]"
    return value.encode("utf-8", "replace").decode("utf-8")
