"""Validators that measure how alike two texts are: `fuzzy` and `token_f1`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from steelyard.benchmarks.pack.bounded.likeness import best_f1, best_ratio, cost_of
from steelyard.benchmarks.pack.schema_validators.texts import FuzzySpec, TokenF1Spec
from steelyard.benchmarks.pack.template import Template
from steelyard.benchmarks.pack.timebox import HERE_CHARS, boxed
from steelyard.benchmarks.pack.validators.contract import PASSED, TextValidator, Verdict
from steelyard.benchmarks.pack.validators.making import Making
from steelyard.benchmarks.pack.validators.texts import normal, shown, texts_of

MAX_COST: Final = 1e10
"""About half a second."""
_HERE_COST: Final = 1e8
MAX_F1_CHARS: Final = 1024 * 1024
"""A text of ten times that takes seconds where each character is a word."""
_MAX_EXPECTED_CHARS: Final = 100_000
_MAX_EXPECTED_PARTIAL_CHARS: Final = 2_000


class LikenessValidator(TextValidator):
    """A validator whose value is a likeness, or whether that reaches a threshold."""

    checks_cases: ClassVar[bool] = True

    def __init__(
        self,
        name: str,
        spec: FuzzySpec | TokenF1Spec,
        stdout_of: str | None,
        expected: Sequence[Template],
    ) -> None:
        super().__init__(name, spec, stdout_of)
        self.is_scalar = spec.threshold is None
        self._expected, self._threshold = expected, spec.threshold

    def verdict_of(self, likeness: float, expected: Sequence[str]) -> Verdict:
        """Make a verdict of a likeness."""
        if self._threshold is None:
            return PASSED if likeness >= 1 else Verdict(likeness, f"expected {shown(expected[0])}")
        # Likenesses are fractions of lengths: 1 - 8/10 must meet a threshold of 0.2.
        if likeness >= self._threshold - 1e-9:
            return PASSED
        digits = 3 if round(likeness, 3) < self._threshold else 9
        return Verdict(
            0.0, f"{likeness:.{digits}f} like {shown(expected[0])}, not {self._threshold:g}"
        )


class Fuzzy(LikenessValidator):
    """The text is like the expected one, by an edit distance."""

    def __init__(
        self, name: str, spec: FuzzySpec, stdout_of: str | None, expected: Sequence[Template]
    ) -> None:
        super().__init__(name, spec, stdout_of, expected)
        self._algorithm, self._trim, self._ignore_case = (
            spec.algorithm,
            spec.trim,
            spec.ignore_case,
        )

    async def judge(self, text: str, fields: Mapping[str, Any]) -> Verdict:
        """Compare with each; what is far too long for that is like nothing."""
        own, *expected = (
            normal(one, trim=self._trim, ignore_case=self._ignore_case)
            for one in (text, *texts_of(self._expected, fields))
        )
        cost = sum(cost_of(len(own), len(one), self._algorithm) for one in expected)
        if cost > MAX_COST:
            return Verdict(0.0, f"{len(own)} characters: too long to compare")
        likeness = await boxed(
            best_ratio,
            {"text": own, "expected": expected, "algorithm": self._algorithm},
            here=cost <= _HERE_COST and len(own) <= HERE_CHARS,
            what=f"the validator {self.name}",
        )
        return self.verdict_of(likeness, expected)

    def fault_in(self, fields: Mapping[str, Any]) -> str | None:
        """Find an expected text that is too long to compare anything with."""
        is_partial = self._algorithm == "partial_ratio"
        allowed = _MAX_EXPECTED_PARTIAL_CHARS if is_partial else _MAX_EXPECTED_CHARS
        longest = max(map(len, texts_of(self._expected, fields)))
        if longest <= allowed:
            return None
        return (
            f"an expected text of {longest} characters is too long for {self._algorithm}: at most "
            f"{allowed}"
        )


class TokenF1(LikenessValidator):
    """The words of the text and of the expected one overlap."""

    def __init__(
        self, name: str, spec: TokenF1Spec, stdout_of: str | None, expected: Sequence[Template]
    ) -> None:
        super().__init__(name, spec, stdout_of, expected)
        self._unicode = spec.words == "unicode"

    async def judge(self, text: str, fields: Mapping[str, Any]) -> Verdict:
        """Count shared words."""
        expected = texts_of(self._expected, fields)
        if len(text) > MAX_F1_CHARS:
            return Verdict(0.0, f"{len(text)} characters: too long to compare")
        likeness = await boxed(
            best_f1,
            {"text": text, "expected": expected, "unicode": self._unicode},
            here=len(text) + sum(map(len, expected)) <= HERE_CHARS,
            what=f"the validator {self.name}",
        )
        return self.verdict_of(likeness, expected)

    def fault_in(self, fields: Mapping[str, Any]) -> str | None:
        """Find expected texts that are too long together."""
        total = sum(map(len, texts_of(self._expected, fields)))
        return None if total <= MAX_F1_CHARS else f"expected texts of {total} characters together"


def make_fuzzy(making: Making, spec: FuzzySpec) -> Fuzzy:
    """Make one."""
    expected = making.each(spec.expected, "expected")
    return Fuzzy(making.name, spec, making.stdout_of(spec), expected)


def make_token_f1(making: Making, spec: TokenF1Spec) -> TokenF1:
    """Make one."""
    expected = making.each(spec.expected, "expected")
    return TokenF1(making.name, spec, making.stdout_of(spec), expected)
