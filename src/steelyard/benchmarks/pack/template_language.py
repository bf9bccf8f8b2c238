"""The small part of Jinja2 that a pack's template may use, and the bounds it is held to.

What may stand in a template is a list of node kinds, filters and tests: what is new in Jinja is
refused until someone has thought about it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import islice
from typing import Any, Final

MAX_OUTPUT_CHARS: Final = 4 * 1024 * 1024
MAX_LOOP_STEPS: Final = 10_000
_MAX_INT_BITS: Final = 4096

_FILTERS: Final = frozenset(
    {
        "abs",
        "capitalize",
        "count",
        "d",
        "default",
        "dictsort",
        "first",
        "float",
        "int",
        "items",
        "last",
        "length",
        "list",
        "lower",
        "map",
        "max",
        "min",
        "reject",
        "rejectattr",
        "reverse",
        "round",
        "select",
        "selectattr",
        "sort",
        "string",
        "sum",
        "title",
        "trim",
        "truncate",
        "unique",
        "upper",
    }
)
_TESTS: Final = frozenset(
    {
        "boolean",
        "defined",
        "divisibleby",
        "eq",
        "equalto",
        "even",
        "false",
        "float",
        "ge",
        "greaterthan",
        "gt",
        "in",
        "integer",
        "iterable",
        "le",
        "lessthan",
        "lower",
        "lt",
        "mapping",
        "ne",
        "none",
        "number",
        "odd",
        "sequence",
        "string",
        "true",
        "undefined",
        "upper",
    }
)
_NODES: Final = frozenset(
    {
        "Add",
        "And",
        "Assign",
        "Compare",
        "Concat",
        "CondExpr",
        "Const",
        "Dict",
        "Div",
        "Filter",
        "FloorDiv",
        "For",
        "Getattr",
        "Getitem",
        "If",
        "Keyword",
        "List",
        "Mod",
        "Mul",
        "NSRef",
        "Name",
        "Neg",
        "Not",
        "Operand",
        "Or",
        "Output",
        "Pair",
        "Pos",
        "Slice",
        "Sub",
        "Template",
        "TemplateData",
        "Test",
        "Tuple",
    }
)
_REMEDIES: Final[Mapping[str, str]] = {
    "Call": "use a filter: {{ text | upper }}, not {{ text.upper() }}",
    "Macro": "write the text out",
    "Include": "a template stands alone",
    "Import": "a template stands alone",
    "FromImport": "a template stands alone",
    "Extends": "a template stands alone",
    "Pow": "compute the value in the case",
}


class TemplateProblem(ValueError):
    """A template that cannot be compiled, or not rendered with these values."""

    def __init__(self, message: str, *, line: int | None = None, remedy: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        """Counted from 1 within the template; None where unknown."""
        self.remedy = remedy


class _Budget(threading.local):
    """Loop steps left in the render that this thread is doing."""

    steps: int = MAX_LOOP_STEPS


budget = _Budget()


def _counted(value: Iterable[Any]) -> list[Any]:
    items = list(islice(value, budget.steps + 1))
    if len(items) > budget.steps:
        raise TemplateProblem(f"its loops take more than {MAX_LOOP_STEPS} steps")
    budget.steps -= len(items)
    return items


def _limited(text: str) -> str:
    if len(text) > MAX_OUTPUT_CHARS:
        raise TemplateProblem(f"it builds a text of more than {MAX_OUTPUT_CHARS} characters")
    return text


def _concatenated(first: Any, *others: Any) -> str:
    return _limited("".join(map(str, (first, *others))))


def _joined(value: Iterable[Any], separator: str = "", attribute: Any = None) -> str:
    if attribute is not None:
        raise TemplateProblem("join takes no attribute", remedy="map(attribute=...) | join")
    items = [str(item) for item in value]
    size = sum(map(len, items)) + len(separator) * max(len(items) - 1, 0)
    if size > MAX_OUTPUT_CHARS:
        raise TemplateProblem(f"it joins more than {MAX_OUTPUT_CHARS} characters")
    return separator.join(items)


def _replaced(value: Any, old: str, new: str) -> str:
    text = str(value)
    times = text.count(old)
    if len(text) + times * (len(new) - len(old)) > MAX_OUTPUT_CHARS:
        raise TemplateProblem(f"replace makes more than {MAX_OUTPUT_CHARS} characters")
    return text.replace(old, new)


def _json(value: Any, indent: int | None = None) -> str:
    if indent is not None and not 0 <= indent <= 8:
        raise TemplateProblem("tojson takes an indent of 0 to 8")
    return _limited(json.dumps(value, ensure_ascii=False, indent=indent))


@cache
def jinja_environment() -> Any:
    """Give the one Jinja environment: sandboxed, strict, without globals."""
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class PackEnvironment(ImmutableSandboxedEnvironment):
        """Jinja's sandbox without globals, with bounded arithmetic."""

        intercepted_binops = frozenset({"+", "*", "%", "-", "//"})

        def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
            if operator == "%" and not isinstance(left, int | float):
                raise TemplateProblem("% takes numbers only", remedy="join texts with ~")
            if operator == "*" and not (
                isinstance(left, int | float) and isinstance(right, int | float)
            ):
                raise TemplateProblem("* takes numbers only")
            if operator == "+" and _length(left) + _length(right) > MAX_OUTPUT_CHARS:
                raise TemplateProblem(f"+ builds more than {MAX_OUTPUT_CHARS} items")
            result = super().call_binop(context, operator, left, right)
            if isinstance(result, int) and result.bit_length() > _MAX_INT_BITS:
                raise TemplateProblem(f"a number grows beyond {_MAX_INT_BITS} bits")
            return result

    # Not autoescaped: prompts are plain text, nothing of this is ever HTML.
    environment = PackEnvironment(undefined=StrictUndefined, autoescape=False, cache_size=0)
    environment.globals.clear()
    known = dict(environment.filters)
    environment.filters.clear()
    environment.filters.update({name: known[name] for name in _FILTERS})
    environment.filters.update(
        join=_joined, replace=_replaced, tojson=_json, _counted=_counted, _concat=_concatenated
    )
    known_tests = dict(environment.tests)
    environment.tests.clear()
    environment.tests.update({name: known_tests[name] for name in _TESTS})
    return environment


def _length(value: Any) -> int:
    return len(value) if isinstance(value, str | list | tuple) else 0


def check_nodes(tree: Any) -> None:
    """Raise `TemplateProblem` at the first node that a pack's template may not hold."""
    for node in _walk(tree):
        kind = type(node).__name__
        if kind not in _NODES:
            raise TemplateProblem(
                f"a pack's template may not hold {_word(kind)}",
                line=node.lineno,
                remedy=_REMEDIES.get(kind),
            )
        if kind in ("Getattr", "Name") and _name_of(node).startswith("_"):
            raise TemplateProblem(
                f"a pack's template may not read {_name_of(node)!r}", line=node.lineno
            )
        if kind == "Filter":
            _check_filter(node)
        if kind == "For" and node.recursive:
            raise TemplateProblem("a loop may not be recursive", line=node.lineno)


def _check_filter(node: Any) -> None:
    known = {*_FILTERS, "join", "replace", "tojson"}
    names = [node.name]
    if node.name in ("map", "select", "reject"):
        # `map("filter")` names a filter or test by a value: it must be one that we know now.
        names += [getattr(argument, "value", None) for argument in node.args[:1]]
        known |= _TESTS if node.name != "map" else set()
    for name in names:
        if name not in known:
            raise TemplateProblem(
                f"unknown filter {name!r}",
                line=node.lineno,
                remedy=f"known: {', '.join(sorted(known))}",
            )


def _name_of(node: Any) -> str:
    return str(node.attr if type(node).__name__ == "Getattr" else node.name)


def _word(kind: str) -> str:
    return {"Call": "a call", "Pow": "**", "AssignBlock": "a {% set %} block"}.get(
        kind, f"{kind.lower()!r}"
    )


def _walk(node: Any) -> Iterable[Any]:
    waiting = [node]
    while waiting:
        current = waiting.pop()
        yield current
        waiting.extend(current.iter_child_nodes())


def optional_names(tree: Any) -> frozenset[str]:
    """Names that the template itself asks about with `is defined` or `default`."""
    names = set()
    for node in _walk(tree):
        kind = type(node).__name__
        asks = (kind == "Test" and node.name in ("defined", "undefined")) or (
            kind == "Filter" and node.name in ("default", "d")
        )
        if asks and type(node.node).__name__ == "Name":
            names.add(node.node.name)
    return frozenset(names)


def bounded(tree: Any) -> Any:
    """Put a counter before every loop, and a bound on every `~`."""
    from jinja2 import nodes

    environment = jinja_environment()

    def rebuilt(node: Any) -> Any:
        for field, value in node.iter_fields():
            if isinstance(value, nodes.Node):
                setattr(node, field, rebuilt(value))
            elif isinstance(value, list):
                setattr(
                    node,
                    field,
                    [rebuilt(item) if isinstance(item, nodes.Node) else item for item in value],
                )
        if isinstance(node, nodes.For):
            node.iter = nodes.Filter(node.iter, "_counted", [], [], None, None, lineno=node.lineno)
        if isinstance(node, nodes.Concat):
            first, *others = node.nodes
            node = nodes.Filter(first, "_concat", others, [], None, None, lineno=node.lineno)
        if hasattr(node, "set_environment"):
            node.set_environment(environment)
        return node

    return rebuilt(tree)
