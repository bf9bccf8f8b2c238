"""What the validators of JSON find in a text: a value from 0 to 1, with a reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

from steelyard.benchmarks.pack.bounded.faults import MAX_REASON_CHARS, PackFault, shown
from steelyard.benchmarks.pack.bounded.json_compare import Comparison, TooCostly
from steelyard.benchmarks.pack.bounded.json_text import (
    MAX_DEPTH,
    NotJson,
    check_bounds,
    found_json,
    read_json,
)

Found = tuple[float, str | None]
MAX_CHECKED: Final = 100_000
"""Values of a text that a schema or path is applied to: each costs some microseconds a keyword."""
MAX_SELECTED: Final = 100_000
"""Values that a path may select."""
FORMATS: Final = ("date", "email", "idn-email", "ipv4", "ipv6", "uuid")
"""Checked the same way on every machine; others need packages that may be there or not."""
_NOT_SCHEMAS: Final = frozenset({"const", "enum", "default", "examples"})


def equals_expected(
    text: str, find: str, expected: Any, rules: Mapping[str, Any], partial: bool
) -> Found:
    """Compare the value in a text with the expected one.

    With `partial` the value is the share of leaves that are equal at the same place.
    """
    try:
        found = found_json(text, find)
    except NotJson as error:
        return 0.0, str(error)
    comparison = Comparison.of(rules)
    try:
        said = comparison.difference(expected, found)
    except TooCostly as error:
        return 0.0, str(error)
    if said is None:
        return 1.0, None
    if not partial:
        return 0.0, said
    equal, total = comparison.shared_leaves(expected, found)
    # Never 1 where something differs, as where only an empty array stands for an empty object.
    return min(equal / total, 1 - 1e-9), f"{equal} of {total} leaves are equal; first {said}"


def expected_value(text: str) -> Any:
    """Read JSON of the pack; raise `PackFault` where it is refused."""
    try:
        return read_json(text)
    except NotJson as error:
        raise PackFault(f"the expected value {shown(text)}: {error}") from error


def require_bounded(value: Any) -> None:
    """Raise `PackFault` where data of the pack is too deep or too large to compare."""
    try:
        check_bounds(value)
    except NotJson as error:
        raise PackFault(f"the expected value: {error}") from error


def meets_schema(text: str, find: str, schema: Any, formats: bool) -> Found:
    """Check the value in a text against a JSON Schema."""
    from referencing.exceptions import Unresolvable

    try:
        found = found_json(text, find, MAX_CHECKED)
    except NotJson as error:
        return 0.0, str(error)
    validator = _schema_class(schema)(
        schema, registry=_no_registry(), format_checker=_formats() if formats else None
    )
    try:
        first = next(iter(validator.iter_errors(found)), None)
    except Unresolvable as fault:
        raise PackFault(f"the schema refers to {shown(str(fault.ref))}: not in it") from fault
    except (ArithmeticError, ValueError) as fault:
        # The schema was checked, so it is the value that no computation holds.
        return 0.0, f"the value cannot be checked: {type(fault).__name__}"
    if first is None:
        return 1.0, None
    return 0.0, f"{first.json_path[:100]}: {first.message}"[:MAX_REASON_CHARS]


def check_schema(schema: Any, formats: bool) -> None:
    """Raise `PackFault` where something is not a JSON Schema, or refers to what is not in it.

    Nothing is ever fetched or read: a reference that leads out of the schema is a fault.
    """
    from jsonschema.exceptions import SchemaError

    if not isinstance(schema, dict | bool):
        raise PackFault(f"a schema is an object, or true or false, not {shown(schema)}")
    require_bounded(schema)
    kind = _schema_class(schema)
    try:
        kind.check_schema(schema, format_checker=kind.FORMAT_CHECKER)
    except SchemaError as error:
        message = f"malformed schema at {error.json_path[:100]}: {error.message}"
        raise PackFault(message[:MAX_REASON_CHARS]) from error
    except RecursionError as error:
        raise PackFault("the schema nests too deep") from error
    _check_references(schema)
    if formats:
        for part in _subschemas(schema):
            name = part.get("format")
            if isinstance(name, str) and name not in FORMATS:
                listed = ", ".join(FORMATS)
                raise PackFault(f"the format {shown(name)} is not checked here; known: {listed}")


def _schema_class(schema: Any) -> Any:
    from jsonschema import validators

    dialect = schema.get("$schema") if isinstance(schema, dict) else None
    if dialect is None:
        return validators.Draft202012Validator
    unknown: Any = _UnknownDialect
    kind = unknown
    if isinstance(dialect, str):
        kind = validators.validator_for(schema, default=unknown)
    if kind is unknown:
        raise PackFault(f"$schema: {shown(dialect)} is no draft of JSON Schema that is known")
    return kind


class _UnknownDialect:
    """Stands for a `$schema` that is not known."""


def _formats() -> Any:
    from jsonschema import FormatChecker

    return FormatChecker(FORMATS)


def _no_registry() -> Any:
    from referencing import Registry

    return Registry()


def _check_references(schema: Any) -> None:
    from referencing import Specification
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012, specification_with

    parts = list(_subschemas(schema))
    ids = [part["$id"] for part in parts if isinstance(part.get("$id"), str)]
    dialect = schema.get("$schema") if isinstance(schema, dict) else None
    kind: Specification[Any] = (
        specification_with(dialect, default=DRAFT202012) if dialect else DRAFT202012
    )
    resolver = _no_registry().resolver_with_root(kind.create_resource(schema))
    for part in parts:
        for name in ("$ref", "$dynamicRef", "$recursiveRef"):
            reference = part.get(name)
            if not isinstance(reference, str):
                continue
            if not reference.startswith("#") and not ids:
                raise PackFault(
                    f"{name}: {shown(reference)} leads out of the schema; nothing is fetched, so "
                    "put it under $defs"
                )
            if len(ids) > 1 or (ids and name == "$dynamicRef"):
                continue  # found, or not, while it is used: its base depends on where it stands
            try:
                resolver.lookup(reference)
            except Unresolvable as error:
                raise PackFault(f"{name}: there is no {shown(reference)} in the schema") from error


def _subschemas(schema: Any) -> Iterator[dict[str, Any]]:
    """Give every object of a schema, but for those that are values and not schemas."""
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            yield part
            waiting.extend(value for key, value in part.items() if key not in _NOT_SCHEMAS)
        elif isinstance(part, list):
            waiting.extend(part)


def schema_patterns(schema: Any) -> list[str] | None:
    """Give the regular expressions of a schema; None where its cost is not told by them.

    References that refer on, and what compares every element with every other, can take time that
    grows faster than the text.
    """
    patterns: list[str] = []
    references = 0
    for part in _subschemas(schema):
        for key, value in part.items():
            if key == "pattern" and isinstance(value, str):
                patterns.append(value)
            elif key == "patternProperties" and isinstance(value, dict):
                patterns.extend(value)
            elif key in ("uniqueItems", "unevaluatedItems", "unevaluatedProperties"):
                return None
            elif key in ("$ref", "$dynamicRef", "$recursiveRef"):
                references += 1
                if not str(value).startswith(("#/$defs/", "#/definitions/")) or references > 50:
                    return None
            elif key in ("$defs", "definitions") and isinstance(value, dict):
                below = _subschemas(value)
                if any("$ref" in one or "$dynamicRef" in one for one in below):
                    return None
    return patterns


def selects(text: str, find: str, path: str, tests: Mapping[str, Any]) -> Found:
    """Check what a JSONPath (RFC 9535) selects of the value in a text.

    Args:
        text: what a model wrote.
        find: as in `found_json`.
        path: the query.
        tests: any of `equals`, `contains` (with `match`, `all` or `any`, and `tolerance`),
            `count` (`min`, `max`, `equals`) and `exists`.
    """
    from jsonpath_rfc9535 import JSONPathError

    try:
        found = found_json(text, find, MAX_CHECKED)
    except NotJson as error:
        return 0.0, str(error)
    try:
        nodes = compiled_path(path).finditer(found)
        values = [node.value for node in islice(nodes, MAX_SELECTED + 1)]
    except JSONPathError as error:
        raise PackFault(f"the path {shown(path)}: {error}"[:MAX_REASON_CHARS]) from error
    if len(values) > MAX_SELECTED:
        return 0.0, f"the path selects more than {MAX_SELECTED} values"
    for said in (
        _existence(values, tests),
        _count(values, tests),
        _equality(values, tests),
        _containment(values, tests),
    ):
        if said is not None:
            return 0.0, said
    return 1.0, None


def compiled_path(path: str) -> Any:
    """Compile a JSONPath; raise `PackFault` where it is malformed."""
    from jsonpath_rfc9535 import JSONPathEnvironment, JSONPathError

    class Deeper(JSONPathEnvironment):
        """As deep as what is read."""

        max_recursion_depth = MAX_DEPTH + 10

    try:
        return Deeper().compile(path)
    except JSONPathError as error:
        raise PackFault(f"malformed path {shown(path)}: {error}"[:MAX_REASON_CHARS]) from error
    except RecursionError as error:
        raise PackFault("the path nests too deep") from error


def is_plain_path(path: str) -> bool:
    """True where the cost of a path grows no faster than the value it is applied to."""
    if path.count("..") > 1 or "match" in path or "search" in path:
        return False
    return "?" not in path or (path.count("?") == 1 and path.count("$") == 1 and ".." not in path)


def _existence(values: list[Any], tests: Mapping[str, Any]) -> str | None:
    wanted = tests.get("exists")
    if wanted is None or wanted == bool(values):
        return None
    return "the path selects nothing" if wanted else f"the path selects {len(values)} values"


def _count(values: list[Any], tests: Mapping[str, Any]) -> str | None:
    bounds, count = tests.get("count"), len(values)
    if bounds is None:
        return None
    low, high, exact = bounds.get("min"), bounds.get("max"), bounds.get("equals")
    if exact is not None and count != exact:
        return f"the path selects {count} values, not {exact}"
    if low is not None and count < low:
        return f"the path selects {count} values, fewer than {low}"
    if high is not None and count > high:
        return f"the path selects {count} values, more than {high}"
    return None


def _equality(values: list[Any], tests: Mapping[str, Any]) -> str | None:
    if "equals" not in tests:
        return None
    comparison = Comparison(tolerance=tests.get("tolerance", 0.0))
    expected = tests["equals"]
    differences = [comparison.difference(expected, value) for value in values]
    return _for_all_or_any(differences, tests)


def _containment(values: list[Any], tests: Mapping[str, Any]) -> str | None:
    if "contains" not in tests:
        return None
    comparison = Comparison(tolerance=tests.get("tolerance", 0.0))
    expected = tests["contains"]

    def lacking(value: Any) -> str | None:
        if isinstance(value, str):
            has = isinstance(expected, str) and expected in value
        else:
            has = isinstance(value, list) and any(
                comparison.difference(expected, item) is None for item in value
            )
        return None if has else f"{shown(value)} does not contain {shown(expected)}"

    return _for_all_or_any([lacking(value) for value in values], tests)


def _for_all_or_any(said: list[str | None], tests: Mapping[str, Any]) -> str | None:
    if not said:
        return "the path selects nothing"
    faults = [one for one in said if one is not None]
    if not faults or (tests.get("match") == "any" and len(faults) < len(said)):
        return None
    return faults[0]
