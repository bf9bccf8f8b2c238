"""What a tool call's arguments must hold: a tree of values and of rules for values.

A mapping asks for its fields and allows more; a list must be as long and fit item by item. A
mapping with the one key `regex`, `contains`, `any` or `equals` is a rule. A text is a template;
what a case's field gives is a value, never a rule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from steelyard.benchmarks.pack.matching import BadPattern, Matcher, is_found, matcher
from steelyard.benchmarks.pack.template import Template
from steelyard.benchmarks.pack.validators.contract import rendered, value_of
from steelyard.components.issues import AttemptFault, IssueCode

RULES: Final = frozenset({"regex", "contains", "any", "equals"})

Compile = Callable[..., Template]
"""Compiles the template at a path below the arguments: (text, *path)."""


@dataclass(frozen=True, slots=True)
class Is:
    """The value itself, by JSON's equality."""

    value: Any
    """JSON data; before it is settled its texts are templates."""


@dataclass(frozen=True, slots=True)
class HasFields:
    """A mapping that has at least these fields."""

    fields: Mapping[str, Expected]


@dataclass(frozen=True, slots=True)
class IsList:
    """A list of exactly these items."""

    items: Sequence[Expected]


@dataclass(frozen=True, slots=True)
class IsMatched:
    """A text in which the pattern is found."""

    pattern: Template | Matcher


@dataclass(frozen=True, slots=True)
class Holds:
    """A text that holds a text, or a list that holds an item."""

    part: Expected


@dataclass(frozen=True, slots=True)
class IsAnything:
    """Any value, as long as the field is there."""


Expected = Is | HasFields | IsList | IsMatched | Holds | IsAnything


class NotARule(ValueError):
    """A mapping that looks like a rule and is none; says what would be right."""

    def __init__(self, message: str, path: tuple[str | int, ...]) -> None:
        super().__init__(message)
        self.path = path


def expected_of(tree: Any, compiled: Compile, path: tuple[str | int, ...] = ()) -> Expected:
    """Make the tree of what a pack says.

    Raises:
        NotARule: a rule is not well formed.
    """
    if isinstance(tree, Mapping):
        if len(tree) == 1 and not RULES.isdisjoint(tree):
            ((rule, value),) = tree.items()
            return _rule(rule, value, compiled, (*path, rule))
        return HasFields(
            {str(key): expected_of(item, compiled, (*path, key)) for key, item in tree.items()}
        )
    if isinstance(tree, list):
        return IsList([expected_of(item, compiled, (*path, n)) for n, item in enumerate(tree)])
    return Is(with_templates(tree, compiled, path))


def arguments_of(arguments: Mapping[str, Any], compiled: Compile) -> Expected:
    """Make the tree of a call's arguments, of which any may be called `regex` or `any`.

    Raises:
        NotARule: a rule for one of them is not well formed.
    """
    return HasFields(
        {name: expected_of(item, compiled, (name,)) for name, item in arguments.items()}
    )


def with_templates(tree: Any, compiled: Compile, path: tuple[str | int, ...] = ()) -> Any:
    """Copy JSON data with its texts compiled as templates."""
    if isinstance(tree, Mapping):
        return {
            str(key): with_templates(item, compiled, (*path, key)) for key, item in tree.items()
        }
    if isinstance(tree, list):
        return [with_templates(item, compiled, (*path, n)) for n, item in enumerate(tree)]
    return compiled(tree, *path) if isinstance(tree, str) else tree


def filled(tree: Any, fields: Mapping[str, Any]) -> Any:
    """Copy JSON data with its templates rendered; `{{ field }}` alone gives the field itself."""
    if isinstance(tree, Template):
        return value_of(tree, fields)
    if isinstance(tree, Mapping):
        return {key: filled(item, fields) for key, item in tree.items()}
    if isinstance(tree, list):
        return [filled(item, fields) for item in tree]
    return tree


def settled(expected: Expected, fields: Mapping[str, Any]) -> Expected:
    """Render the templates of a tree for one case.

    Raises:
        AttemptFault: TASK_INVALID, a template or the pattern it gives is malformed.
    """
    match expected:
        case Is(value):
            return Is(filled(value, fields))
        case HasFields(below):
            return HasFields({key: settled(item, fields) for key, item in below.items()})
        case IsList(items):
            return IsList([settled(item, fields) for item in items])
        case Holds(part):
            return Holds(settled(part, fields))
        case IsMatched(Template() as template):
            try:
                return IsMatched(matcher(rendered(template, fields)))
            except BadPattern as error:
                raise AttemptFault(IssueCode.TASK_INVALID, str(error)) from error
        case _:
            return expected


async def fits(expected: Expected, value: Any) -> bool:
    """True where a value is what a settled tree asks for.

    Raises:
        AttemptFault: SCORER_TIMED_OUT, a pattern took too long.
    """
    match expected:
        case Is(own):
            return is_same_json(own, value)
        case HasFields(fields):
            if not isinstance(value, Mapping):
                return False
            for key, item in fields.items():
                if key not in value or not await fits(item, value[key]):
                    return False
            return True
        case IsList(items):
            if not isinstance(value, list) or len(value) != len(items):
                return False
            for item, own in zip(items, value, strict=True):
                if not await fits(item, own):
                    return False
            return True
        case IsMatched(Matcher() as pattern):
            return isinstance(value, str) and await is_found(pattern, value, full=False)
        case Holds(part):
            return await _holds(part, value)
        case _:
            return True


def is_same_json(one: Any, other: Any) -> bool:
    """True where two JSON values are equal: 1 is 1.0, true is not 1, fields have no order."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(
            is_same_json(value, other[key]) for key, value in one.items()
        )
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(is_same_json, one, other))
    return bool(one == other)


async def _holds(part: Expected, value: Any) -> bool:
    if isinstance(value, str):
        return isinstance(part, Is) and isinstance(part.value, str) and part.value in value
    if not isinstance(value, list):
        return False
    for item in value:
        if await fits(part, item):
            return True
    return False


def _rule(rule: str, value: Any, compiled: Compile, path: tuple[str | int, ...]) -> Expected:
    if rule == "any":
        if value is not True:
            raise NotARule("write `any: true`, or leave the argument out", path)
        return IsAnything()
    if rule == "contains":
        return Holds(expected_of(value, compiled, path))
    if rule == "equals":
        return Is(with_templates(value, compiled, path))
    if not isinstance(value, str):
        raise NotARule("a pattern is a text", path)
    pattern = compiled(value, *path)
    if pattern.is_constant:
        try:
            matcher(pattern.source)
        except BadPattern as error:
            raise NotARule(str(error), path) from error
    return IsMatched(pattern)
