"""The schemas of validators that compare texts, numbers and choices."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from steelyard.benchmarks.pack.schema_validators.base import (
    Pattern,
    Scalar,
    Text,
    TextValidatorSpec,
)


class ExactSpec(TextValidatorSpec):
    """The text is the expected one, outer white space aside."""

    type: Literal["exact"]
    expected: Scalar
    ignore_case: bool = False
    trim: bool = True


class OneOfSpec(TextValidatorSpec):
    """The text is one of the expected ones."""

    type: Literal["one_of"]
    expected: Annotated[list[Scalar], Field(min_length=1)] | Text
    """A list, or `{{ field }}` for a field that holds one."""
    ignore_case: bool = False
    trim: bool = True


class ContainsSpec(TextValidatorSpec):
    """The expected texts stand in the text."""

    type: Literal["contains"]
    expected: Annotated[list[Scalar], Field(min_length=1)] | Scalar
    """A text, a list, or `{{ field }}` for a field that holds either."""
    match: Literal["all", "any"] = "all"
    ignore_case: bool = False


class RegexSpec(TextValidatorSpec):
    """The pattern is found in the text (or, with `full`, matches all of it, trimmed)."""

    type: Literal["regex"]
    pattern: Pattern
    """Python's syntax; a template."""
    full: bool = False
    ignore_case: bool = False
    multiline: bool = False
    """`^` and `$` match at each line."""
    dotall: bool = False
    """`.` matches line ends too."""


class NumberSpec(TextValidatorSpec):
    """A number in the text is close: |a - e| <= max(tolerance, relative * |e|)."""

    type: Literal["number"]
    expected: int | float | Text
    tolerance: Annotated[float, Field(ge=0)] = 0.0
    relative: Annotated[float, Field(ge=0)] = 0.0
    find: Literal["last", "first", "only"] = "last"
    """Which number of the text; `only`: the text is a number and nothing else."""


class ChoiceSpec(TextValidatorSpec):
    """The text picks one of the options, by its letter or its words."""

    type: Literal["choice"]
    expected: Scalar
    """The letter, or the option's own words."""
    options: Annotated[list[Scalar], Field(min_length=2, max_length=26)] | Text | None = None
    """A list, or `{{ field }}`; without it, only letters are understood."""


class FuzzySpec(TextValidatorSpec):
    """The text is like the expected one, by an edit distance."""

    type: Literal["fuzzy"]
    expected: Annotated[list[Scalar], Field(min_length=1)] | Scalar
    """A text, a list of which the best counts, or `{{ field }}` for a field that holds either."""
    algorithm: Literal[
        "ratio",
        "partial_ratio",
        "token_sort_ratio",
        "token_set_ratio",
        "jaro_winkler",
        "levenshtein",
    ] = "ratio"
    threshold: Annotated[float, Field(gt=0, le=1)] | None = None
    """Passes where the similarity is at least this; without it, the similarity is the value."""
    ignore_case: bool = False
    trim: bool = True


class TokenF1Spec(TextValidatorSpec):
    """The words of the text and of the expected one overlap, as SQuAD measures it."""

    type: Literal["token_f1"]
    expected: Annotated[list[Scalar], Field(min_length=1)] | Scalar
    """A text, a list of which the best counts, or `{{ field }}` for a field that holds either."""
    threshold: Annotated[float, Field(gt=0, le=1)] | None = None
    """Passes where F1 is at least this; without it, F1 is the value."""
    words: Literal["squad", "unicode"] = "squad"
    """`squad`: as published, for English; `unicode`: for any language."""
