"""The validator that looks at the tools an agent called: `tool_calls`.

It sees what the trajectory holds. A harness that calls no tools has made none; one that cannot
report its calls cannot be told from it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from steelyard.benchmarks.pack.matching import BadPattern, Matcher, is_found, matcher
from steelyard.benchmarks.pack.schema_validators.tool_calls import (
    NamePattern,
    ToolCallsSpec,
    ToolName,
)
from steelyard.benchmarks.pack.tool_calling.expected import (
    Expected,
    NotARule,
    arguments_of,
    fits,
    settled,
)
from steelyard.benchmarks.pack.tool_calling.order import met_in_any_order, met_in_order
from steelyard.benchmarks.pack.trajectory_text import is_agents_own
from steelyard.benchmarks.pack.validators.contract import PASSED, Validator, Verdict, Work
from steelyard.benchmarks.pack.validators.making import Making
from steelyard.benchmarks.pack.validators.texts import shown
from steelyard.components.issues import AttemptFault, IssueCode
from steelyard.components.model import ToolCall
from steelyard.components.steps import Step

MAX_CALLS: Final = 10_000
MAX_ARGUMENT_BYTES: Final = 1024 * 1024
"""Of one call; what is longer counts as malformed."""
TIMEOUT_S: Final = 60.0
"""For all patterns of an attempt together."""
_NAME_CHARS: Final = 256
"""A longer name is no tool's, and matches no pattern."""
_PLAIN_NAME_CHARS: Final = 64
_CALLS_A_TURN: Final = 200
_NAMES_SHOWN: Final = 10


@dataclass(frozen=True, slots=True)
class Made:
    """A call that was made."""

    name: str
    arguments: Mapping[str, Any] | None
    """None where they are malformed: such a call is none of those that are wanted."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A call that is wanted, its templates compiled."""

    name: str | Matcher
    label: str
    arguments: Expected | None
    needed: int
    allowed: int | None


class ToolCalls(Validator):
    """The right tools were called."""

    def __init__(
        self,
        name: str,
        spec: ToolCallsSpec,
        wanted: Sequence[Wanted],
        forbidden: Sequence[str | Matcher],
    ) -> None:
        super().__init__(name, spec)
        self._spec, self._wanted, self._forbidden = spec, wanted, forbidden
        self.is_scalar = spec.partial

    async def verdict(self, work: Work) -> Verdict:
        """Compare the calls of the trajectory with those that are wanted.

        Raises:
            AttemptFault: SCORER_TIMED_OUT, patterns took too long; TASK_INVALID, a template.
        """
        calls = calls_of(work.context.steps)
        if len(calls) > MAX_CALLS:
            return Verdict(0.0, f"{len(calls)} calls, more than {MAX_CALLS} are not looked at")
        wanted = [
            None if item.arguments is None else settled(item.arguments, work.fields)
            for item in self._wanted
        ]
        try:
            async with asyncio.timeout(TIMEOUT_S) as scope:
                return await self._compared(calls, wanted)
        except TimeoutError as error:
            if not scope.expired():
                raise
            raise AttemptFault(
                IssueCode.SCORER_TIMED_OUT,
                f"the patterns of {self.name} took longer than {TIMEOUT_S:g} s on these calls",
            ) from error

    async def _compared(
        self, calls: Sequence[Made], arguments: Sequence[Expected | None]
    ) -> Verdict:
        names = _Names()
        fitting: list[list[int]] = [[] for _ in self._wanted]
        bad: list[str] = []
        for number, call in enumerate(calls):
            if number % _CALLS_A_TURN == _CALLS_A_TURN - 1:
                await asyncio.sleep(0)
            for tool in self._forbidden:
                if await names.match(tool, call.name):
                    bad.append(call.name)
                    break
            if call.arguments is None:
                continue
            for entry, item in enumerate(self._wanted):
                if await names.match(item.name, call.name):
                    inside = arguments[entry]
                    if inside is None or await fits(inside, call.arguments):
                        fitting[entry].append(number)
        return self._weighed(calls, fitting, bad)

    def _weighed(
        self, calls: Sequence[Made], fitting: Sequence[Sequence[int]], bad: Sequence[str]
    ) -> Verdict:
        spec = self._spec
        needed = [item.needed for item in self._wanted]
        wanted = sum(needed)
        if spec.order == "any":
            met = met_in_any_order(fitting, needed)
        else:
            met = met_in_order(fitting, needed, len(calls))
            wanted = max(wanted, len(calls)) if spec.order == "exact" else wanted
        broken = self._broken(calls, fitting, bad)
        value = met / wanted if wanted else 1.0
        if not spec.partial:
            value = float(met == wanted)
        if value >= 1 and not broken:
            return PASSED
        short = [] if met == wanted else [self._shortfall(calls, fitting, met, wanted)]
        return Verdict(0.0 if broken else value, "; ".join([*broken, *short]))

    def _broken(
        self, calls: Sequence[Made], fitting: Sequence[Sequence[int]], bad: Sequence[str]
    ) -> list[str]:
        """Say which bounds were passed; no partial credit makes up for them."""
        spec, broken = self._spec, []
        if bad:
            broken.append(f"called {_listed(bad)}, which is forbidden")
        for item, made in zip(self._wanted, fitting, strict=True):
            if item.allowed is not None and len(made) > item.allowed:
                broken.append(f"{len(made)} calls of {item.label}, {item.allowed} are allowed")
        if spec.min is not None and len(calls) < spec.min:
            broken.append(f"{len(calls)} calls, at least {spec.min} are wanted")
        if spec.max is not None and len(calls) > spec.max:
            broken.append(f"{len(calls)} calls, {spec.max} are allowed")
        return broken

    def _shortfall(
        self, calls: Sequence[Made], fitting: Sequence[Sequence[int]], met: int, wanted: int
    ) -> str:
        missing = [
            item.label
            for item, made in zip(self._wanted, fitting, strict=True)
            if len(made) < item.needed
        ]
        what = f"no fitting call of {_listed(missing)}" if missing else "not in the order"
        if self._spec.order == "any" and not missing:
            what = "one call cannot stand for two"
        made = _listed([call.name for call in calls]) if calls else "none"
        return f"{met} of {wanted} wanted calls, {what}; called: {made}"


class _Names:
    """Matches names, each pair once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], bool] = {}

    async def match(self, wanted: str | Matcher, name: str) -> bool:
        if isinstance(wanted, str):
            return wanted == name
        if len(name) > _NAME_CHARS:
            return False
        key = (wanted.compiled.pattern, name)
        if key not in self._known:
            self._known[key] = await is_found(wanted, name, full=True)
        return self._known[key]


def calls_of(steps: Sequence[Step]) -> list[Made]:
    """Give the agent's calls in order, their arguments read where they can be."""
    return [
        Made(call.name, _arguments(call))
        for step in steps
        if is_agents_own(step)
        for call in step.tool_calls
    ]


def _arguments(call: ToolCall) -> Mapping[str, Any] | None:
    """Read arguments; an empty text, as some endpoints send it, is no arguments."""
    if len(call.arguments) > MAX_ARGUMENT_BYTES:
        return None
    try:
        data = orjson.loads(call.arguments or "{}")
    except ValueError:
        return None
    return data if isinstance(data, dict) else None


def _listed(names: Sequence[str]) -> str:
    distinct = list(dict.fromkeys(names))
    more = f" and {len(distinct) - _NAMES_SHOWN} more" if len(distinct) > _NAMES_SHOWN else ""
    return ", ".join(map(shown, distinct[:_NAMES_SHOWN])) + more


def make_tool_calls(making: Making, spec: ToolCallsSpec) -> ToolCalls:
    """Make a `tool_calls`."""
    wanted = [
        Wanted(
            _name(making, item.name, "calls", number, "name"),
            item.name.regex if isinstance(item.name, NamePattern) else item.name,
            _expected(making, item.arguments, ("calls", number, "arguments")),
            item.needed,
            item.allowed,
        )
        for number, item in enumerate(spec.calls)
    ]
    forbidden = [_name(making, tool, "forbid", n) for n, tool in enumerate(spec.forbid)]
    return ToolCalls(making.name, spec, wanted, forbidden)


def _name(making: Making, tool: ToolName, *path: str | int) -> str | Matcher:
    if not isinstance(tool, NamePattern):
        return tool
    try:
        found = matcher(tool.regex)
    except BadPattern as error:
        making.problem(str(error), *path)
        return ""
    if not found.may_run_here(_PLAIN_NAME_CHARS):
        making.problem(
            f"the pattern {tool.regex[:80]!r} is too costly for names",
            *path,
            remedy="write it without nested repetition, with at most two open-ended ones",
        )
    return found


def _expected(
    making: Making, arguments: Mapping[str, Any] | None, path: tuple[str | int, ...]
) -> Expected | None:
    if arguments is None:
        return None
    try:
        return arguments_of(arguments, lambda text, *at: making.compiled(text, *path, *at))
    except NotARule as error:
        making.problem(str(error), *path, *error.path)
        return None
