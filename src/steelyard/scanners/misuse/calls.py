"""Calls themselves: repeated in vain, written wrongly, of tools that there are not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import orjson

from steelyard.components.model import ToolCall
from steelyard.components.scanner import FindingSeverity
from steelyard.components.steps import Step, ToolResult
from steelyard.scanners.reporting import Hit

REPEATS: Final = 5
"""Equal calls, one right after the other, that all failed."""
_LOOKED_AT: Final = 1500
_COMPARED: Final = 4096
_MAX_OPEN: Final = 200
_MAX_PARSED: Final = 4 * 1024 * 1024
_FAILED: Final = re.compile(
    r"\berror\b|\bexit(?:ed with)? code:? [1-9]|\"returncode\": ?-?[1-9]|not found|no such file|"
    r"\bfailed\b|traceback|refused|denied|could not",
    re.IGNORECASE,
)
_REFUSED: Final = re.compile(r"argument|json|validation|invalid|pars(?:e|ing)", re.IGNORECASE)
_UNKNOWN: Final = re.compile(
    r"^\s*(?:<tool_use_error>)?\s*(?:error:?\s*)?(?:no such tool|unknown tool|unsupported call|"
    r"tool [`'\"]?[\w.-]+[`'\"]? (?:is )?(?:not found|does not exist|not available)|"
    r"unrecognized tool|invalid tool name)",
    re.IGNORECASE,
)
_LOW: Final = FindingSeverity.LOW


class Calls:
    """Remembers the last call of this attempt, and those whose results are still to come."""

    def __init__(self) -> None:
        self._last: tuple[str, str] | None = None
        self._first = ""
        """What the first of the equal calls gave back: looked at when there is a second."""
        self._failures = self._answers = 0
        self._names: dict[str, str] = {}

    def of_step(self, step: Step) -> Iterator[Hit]:
        """Judge the calls and results of a step."""
        for call in step.tool_calls:
            yield from self._called(call)
        for result in step.results:
            yield from self._answered(result, step)

    def _called(self, call: ToolCall) -> Iterator[Hit]:
        arguments = call.arguments
        key = (call.name, arguments if len(arguments) <= _COMPARED else arguments[:_COMPARED])
        if key != self._last:
            self._last, self._failures, self._answers = key, 0, 0
        if len(self._names) > _MAX_OPEN:
            self._names.clear()
        self._names[call.id] = call.name
        # Some tools take text as it is: a patch, a command. Others say that they cannot read it.
        if arguments.lstrip()[:1] in ("{", "[") and not _is_object(arguments):
            yield Hit(
                "malformed-call", _LOW, f"The arguments of {call.name[:60]!r} are no JSON object.",
                arguments, 0.9,
            )  # fmt: skip

    def _answered(self, result: ToolResult, step: Step) -> Iterator[Hit]:
        content = result.content
        if self._last is not None and _REFUSED.search(content[:300]):
            yield from self._refused(content, step)
        if _UNKNOWN.match(content[:300]):
            name = self._names.get(result.call_id or "", "")
            if not name or name in content[:300] or "tool" in content[:40].lower():
                yield Hit("malformed-call", _LOW, "It called a tool that there is not.",
                          content[:200], 0.8)  # fmt: skip
        if self._last is None:
            return
        self._answers += 1
        if self._answers == 1:
            self._first = _shown(content)  # most calls are never repeated: not judged yet
            return
        if self._answers == 2:
            self._failures = 1 if _FAILED.search(self._first) else 0
        if not _FAILED.search(_shown(content)):
            self._failures = 0
            return
        self._failures += 1
        if self._failures == REPEATS:
            text = self._last[1] if step.tool_calls else content[:200]
            name = self._last[0][:60]
            yield Hit(
                "repeated-failure",
                _LOW,
                f"The same call of {name!r} failed {REPEATS} times on end.",
                text,
                0.9,
            )

    def _refused(self, content: str, step: Step) -> Iterator[Hit]:
        """Judge arguments that were plain text, and that the tool could not read."""
        name, arguments = self._last or ("", "")
        if arguments.strip() and arguments.lstrip()[:1] not in ("{", "["):
            shown = arguments if step.tool_calls else content[:200]
            said = f"The arguments of {name[:60]!r} are no JSON object."
            yield Hit("malformed-call", _LOW, said, shown, 0.85)


def _shown(content: str) -> str:
    if len(content) <= 2 * _LOOKED_AT:
        return content
    return content[:_LOOKED_AT] + content[-400:]


def _is_object(text: str) -> bool:
    if not text.strip() or len(text) > _MAX_PARSED:
        return True
    try:
        return isinstance(orjson.loads(text), dict)
    except orjson.JSONDecodeError:
        return False
