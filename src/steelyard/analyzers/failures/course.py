"""What an agent did, in one pass over its steps and in memory that does not grow with them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import orjson

from steelyard.analyzers.failures.phrases import QUOTE_CHARS, ToolFault, quote, tool_fault_in
from steelyard.components.model import ToolCall
from steelyard.components.steps import Step, ToolResult

LONGEST_CYCLE: Final = 6
"""Actions in the longest cycle that is looked for."""
ROUNDS: Final = 4
"""So many rounds of the same are a loop: fewer may be patience."""
_KEPT_CHARS: Final = 64 * 1024
_QUOTED: Final = 2 * QUOTE_CHARS


@dataclass(frozen=True, slots=True)
class Seen:
    """Where something stood: a step, counted from 1, and a few words of it."""

    step: int
    what: str
    quote: str

    @property
    def where(self) -> str:
        """The place, for people."""
        return f"step {self.step}, {self.what}" if self.what else f"step {self.step}"


@dataclass(frozen=True, slots=True)
class Repetition:
    """The same actions with the same results, round after round."""

    rounds: int
    period: int
    """Actions of a round."""
    seen: Seen
    """The last of it."""
    actions: int


@dataclass(slots=True)
class Course:
    """Facts about one trajectory."""

    agent_steps: int = 0
    calls: int = 0
    malformed: int = 0
    unknown: int = 0
    errors: int = 0
    """Of all kinds, the two above included."""
    failing_at_end: int = 0
    """How many calls failed in a row at the end."""
    bad_call: Seen | None = None
    """The first that was malformed or of an unknown tool; else the last that failed."""
    actions: int = 0
    repetition: Repetition | None = None
    """The longest."""
    last_text: str = ""
    last_text_step: int = 0
    stop: tuple[str, int] | None = None
    """Why the model stopped at the agent's last step, and that step's number."""
    fault: tuple[str, str, int] | None = None
    """Code, message and number of the agent's last step, where its call failed."""
    _recent: deque[int] = field(default_factory=lambda: deque(maxlen=LONGEST_CYCLE))
    _same: list[int] = field(default_factory=lambda: [0] * (LONGEST_CYCLE + 1))

    @property
    def failed_share(self) -> float:
        """Which part of its tool calls failed; 0 where there were none."""
        return self.errors / self.calls if self.calls else 0.0

    @property
    def repeated_share(self) -> float:
        """Which part of its actions the longest repetition makes up."""
        return self.repetition.actions / self.actions if self.repetition and self.actions else 0.0


def course_of(steps: Iterable[Step]) -> Course:
    """Read a trajectory. What the prompt gave as an example turn is not the agent's."""
    course = Course()
    for number, step in enumerate(steps, 1):
        if step.source == "agent" and not step.extra.get("given"):
            _add(course, number, step)
    return course


def _add(course: Course, number: int, step: Step) -> None:
    course.agent_steps += 1
    if step.message.strip():
        course.last_text, course.last_text_step = step.message[-_KEPT_CHARS:], number
    stop = step.extra.get("stop_reason")
    course.stop = (stop, number) if isinstance(stop, str) else None
    code = step.extra.get("fault")
    said = step.extra.get("fault_message")
    course.fault = (code, str(said or ""), number) if isinstance(code, str) else None
    if step.tool_calls:
        _add_calls(course, number, step.tool_calls, step.results)
    elif step.message.strip():
        _act(course, number, hash(step.message), "", step.message)


def _add_calls(
    course: Course, number: int, calls: Sequence[ToolCall], results: Sequence[ToolResult]
) -> None:
    by_id = {result.call_id: result.content for result in results if result.call_id}
    loose = [result.content for result in results if not result.call_id]
    for index, call in enumerate(calls):
        result = by_id.get(call.id) if call.id in by_id else None
        if result is None and index < len(loose):
            result = loose[index]
        course.calls += 1
        _judge(course, number, call, result)
        action = hash((call.name, call.arguments, result))
        _act(course, number, action, call.name, f"{call.name} {call.arguments}")


def _judge(course: Course, number: int, call: ToolCall, result: str | None) -> None:
    """Tell whether a call failed. A result that no one recorded says nothing."""
    fault = None if result is None else tool_fault_in(result)
    is_odd = not _is_object(call.arguments)
    is_unknown = fault is ToolFault.UNKNOWN_TOOL
    is_malformed = fault is ToolFault.BAD_ARGUMENTS or (
        is_odd and (result is None or fault is ToolFault.OTHER)
    )
    if fault is None and not is_malformed:
        course.failing_at_end = 0
        return
    course.errors += 1
    course.failing_at_end += 1
    name = quote(call.name, 60)
    if result is None:
        seen = Seen(number, f"arguments of {name}", quote(call.arguments))
    else:
        seen = Seen(number, f"result of {name}", quote(result))
    if is_unknown or is_malformed:
        if not course.malformed + course.unknown:
            course.bad_call = seen
        course.unknown += is_unknown
        course.malformed += is_malformed
    elif not course.malformed + course.unknown:
        course.bad_call = seen


def _is_object(arguments: str) -> bool:
    if not arguments.strip():
        return True  # a tool without parameters
    try:
        return isinstance(orjson.loads(arguments), dict)
    except orjson.JSONDecodeError:
        return False


def _act(course: Course, number: int, action: int, what: str, text: str) -> None:
    """Note an action, and for each period for how long it has been going round in it."""
    course.actions += 1
    recent, same = course._recent, course._same
    known = len(recent)
    for period in range(1, LONGEST_CYCLE + 1):
        if period <= known and recent[known - period] == action:
            same[period] += 1
            length = same[period] + period
            longest = course.repetition.actions if course.repetition else 0
            if length >= ROUNDS * period and length > longest:
                place = f"call of {what[:60]}" if what else "message"
                seen = Seen(number, place, text[:_QUOTED])
                course.repetition = Repetition(length // period, period, seen, length)
        else:
            same[period] = 0
    recent.append(action)
