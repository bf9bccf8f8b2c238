"""The validator `number`: a number in the text is close to the expected one."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any, ClassVar, Final

from steelyard.benchmarks.pack.bounded.closeness import is_close
from steelyard.benchmarks.pack.schema_validators.texts import NumberSpec
from steelyard.benchmarks.pack.template import Template
from steelyard.benchmarks.pack.validators.contract import (
    PASSED,
    TextValidator,
    Verdict,
    rendered,
)
from steelyard.benchmarks.pack.validators.making import Making
from steelyard.components.issues import AttemptFault, IssueCode

# Groups of three digits behind commas, then plain digits: `1,234.5`, `-.5`, `2e-3`. A sign that
# follows a word or digit is a dash (`3-4`, `GPT-4`). Possessive repetition (Python 3.11) keeps the
# search linear, as does the bound on groups.
_DIGITS: Final = r"(?:\d{1,3}(?:,\d{3}){1,130}+(?![\d,])|\d++)"
_NUMBER: Final = re.compile(
    rf"(?<![\w.])(?:(?<![\w)\]])[-+\u2212])?(?:{_DIGITS}(?:\.\d++)?|\.\d++)(?:[eE][-+]?\d{{1,4}}(?!\d))?",
    re.ASCII,
)
_MAX_DIGITS: Final = 400
_MAX_CHARS: Final = 100_000
"""Of a longer text, the end (or, for `first`, the beginning) is read."""
_SHOWN_CHARS: Final = 40
_CURRENCY: Final = "$€£¥"


def numbers_in(text: str) -> list[float]:
    """List the finite numbers that stand in a text, in order, thousands separators understood."""
    return [float(digits) for digits in _numbers_in(text)]


def as_number(text: str) -> float | None:
    """Read a text that is a number and nothing else; None for any other, infinity, or NaN.

    A currency sign before or a per cent sign behind is allowed and means nothing.
    """
    digits = _number(text)
    return None if digits is None else float(digits)


def _numbers_in(text: str) -> Iterator[str]:
    found = (_number(match[0]) for match in _NUMBER.finditer(text))
    return (digits for digits in found if digits is not None)


def _number(text: str) -> str | None:
    """Give a number's digits as Python reads them; as text they are exact."""
    bare = text.strip().lstrip(_CURRENCY).rstrip("%").strip()
    if len(bare) > _MAX_DIGITS or not _NUMBER.fullmatch(bare):
        return None
    digits = bare.replace(",", "").replace("\u2212", "-")
    return digits if math.isfinite(float(digits)) else None


class Number(TextValidator):
    """A number in the text is close."""

    checks_cases: ClassVar[bool] = True

    def __init__(
        self, name: str, spec: NumberSpec, stdout_of: str | None, expected: Template
    ) -> None:
        super().__init__(name, spec, stdout_of)
        self._expected = expected
        self._tolerance, self._relative, self._find = spec.tolerance, spec.relative, spec.find

    async def judge(self, text: str, fields: Mapping[str, Any]) -> Verdict:
        """Find the number and compare."""
        expected = self._expected_number(fields)
        found = self._number_in(text)
        if found is None:
            return Verdict(0.0, "no number in it")
        if is_close(
            Fraction(found),
            Fraction(expected),
            tolerance=self._tolerance,
            relative=self._relative,
        ):
            return PASSED
        return Verdict(0.0, f"expected {_shown(expected)}, found {_shown(found)}")

    def _expected_number(self, fields: Mapping[str, Any]) -> str:
        written = rendered(self._expected, fields)
        expected = _number(written)
        if expected is None:
            raise AttemptFault(
                IssueCode.TASK_INVALID, f"the expected value {written[:80]!r} is not a number"
            )
        return expected

    def fault_in(self, fields: Mapping[str, Any]) -> str | None:
        """Find an expected value that is not a number."""
        self._expected_number(fields)
        return None

    def _number_in(self, text: str) -> str | None:
        if self._find == "only":
            return _number(text)
        is_last = self._find == "last"
        found = list(_numbers_in(text[-_MAX_CHARS:] if is_last else text[:_MAX_CHARS]))
        if not found:
            return None
        return found[-1 if is_last else 0]


def _shown(digits: str) -> str:
    return digits if len(digits) <= _SHOWN_CHARS else f"{float(digits):g}"


def make_number(making: Making, spec: NumberSpec) -> Number:
    """Make one."""
    expected = making.compiled(spec.expected, "expected")
    if expected.is_constant and as_number(expected.source) is None:
        making.problem(f"{spec.expected!r} is not a number", "expected")
    return Number(making.name, spec, making.stdout_of(spec), expected)
