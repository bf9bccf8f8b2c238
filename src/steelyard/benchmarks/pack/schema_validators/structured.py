"""The schemas of validators that read JSON out of a text."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, NonNegativeInt, model_validator

from steelyard.benchmarks.pack.schema_validators.base import (
    Pattern,
    Strict,
    Text,
    TextValidatorSpec,
)

Tolerance = Annotated[float, Field(ge=0)]


class JsonRules(Strict):
    """How two JSON values are compared; numbers by value, keys in any order."""

    tolerance: Tolerance = 0.0
    relative: Tolerance = 0.0
    """Numbers are equal where |a - e| <= max(tolerance, relative * |e|)."""
    ignore_order: bool = False
    """Arrays are multisets."""
    ignore_keys: list[Text] | None = None
    """Keys that do not count, at any depth."""
    subset: bool = False
    """The expected value is contained: objects may have more keys and, with `ignore_order`,
    arrays more elements."""

    def rules(self) -> dict[str, Any]:
        """Give the rules as plain data."""
        given = {name: getattr(self, name) for name in JsonRules.model_fields}
        return {**given, "ignore_keys": self.ignore_keys or []}


class JsonTextSpec(TextValidatorSpec):
    """A validator that reads JSON out of a text."""

    find: Literal["whole", "block", "last"] = "whole"
    """`whole`: the text is JSON and nothing else; `block`: the last fenced block marked `json`;
    `last`: the last object or array in the text."""


class JsonEqualsSpec(JsonTextSpec, JsonRules):
    """The JSON value in the text is the expected one."""

    PACK_FILES: ClassVar[tuple[str, ...]] = ("expected_file",)

    type: Literal["json_equals"]
    expected: Any = None
    """Data, the texts in it templates; a text in its place is JSON itself, or `{{ field }}`."""
    expected_file: Text | None = None
    """The same in a file of the pack; a template of a path."""
    partial: bool = False
    """The value is the share of leaves that are equal."""

    @model_validator(mode="after")
    def _has_one_expected(self) -> JsonEqualsSpec:
        if ("expected" in self.model_fields_set) == (self.expected_file is not None):
            raise ValueError("give one of expected and expected_file")
        if self.partial and self.ignore_order:
            raise ValueError("partial compares place by place: leave out ignore_order, or partial")
        return self


class JsonSchemaSpec(JsonTextSpec):
    """The JSON value in the text meets a JSON Schema (draft 2020-12, unless it says another)."""

    PACK_FILES: ClassVar[tuple[str, ...]] = ("schema_file",)

    type: Literal["json_schema"]
    schema_: Annotated[dict[str, Any] | bool | Text | None, Field(alias="schema")] = None
    """The schema, taken as it is; or `{{ field }}` for a field that holds one."""
    schema_file: Text | None = None
    """A JSON file of the pack; a template of a path."""
    formats: bool = False
    """Check `format`, too."""

    @model_validator(mode="after")
    def _has_one_schema(self) -> JsonSchemaSpec:
        if (self.schema_ is None) == (self.schema_file is None):
            raise ValueError("give one of schema and schema_file")
        return self


class CountSpec(Strict):
    """How many values a path may select: whole numbers, or templates of them."""

    min: NonNegativeInt | Text | None = None
    max: NonNegativeInt | Text | None = None
    equals: NonNegativeInt | Text | None = None

    @model_validator(mode="after")
    def _bounds_something(self) -> CountSpec:
        if self.min is None and self.max is None and self.equals is None:
            raise ValueError("give at least one of min, max and equals")
        low, high = self.min, self.max
        if isinstance(low, int) and isinstance(high, int) and low > high:
            raise ValueError("min is more than max")
        return self


class JsonPathSpec(JsonTextSpec):
    """What a JSONPath (RFC 9535) selects of the JSON value in the text is as expected."""

    type: Literal["json_path"]
    path: Pattern
    """A template."""
    equals: Any = None
    """What is selected is equal to it; texts in it are templates."""
    contains: Any = None
    """What is selected contains it: a text in a text, an element in an array; a template."""
    match: Literal["all", "any"] = "all"
    """How many of the selected values must be equal or contain it; at least one."""
    tolerance: Tolerance = 0.0
    count: CountSpec | None = None
    exists: bool | None = None

    @model_validator(mode="after")
    def _tests_something(self) -> JsonPathSpec:
        if not self.model_fields_set & {"equals", "contains", "count", "exists"}:
            raise ValueError("give at least one of equals, contains, count and exists")
        return self
