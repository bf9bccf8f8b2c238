"""Validators that compare texts: `exact`, `one_of`, `contains`, `regex`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from steelyard.benchmarks.pack.matching import BadPattern, Matcher, is_found, matcher
from steelyard.benchmarks.pack.schema_validators.texts import (
    ContainsSpec,
    ExactSpec,
    OneOfSpec,
    RegexSpec,
)
from steelyard.benchmarks.pack.template import Template
from steelyard.benchmarks.pack.validators.contract import (
    PASSED,
    TextValidator,
    Verdict,
    rendered,
    value_of,
)
from steelyard.benchmarks.pack.validators.making import Making
from steelyard.components.issues import AttemptFault, IssueCode

_SHOWN_CHARS = 80


def normal(text: str, *, trim: bool, ignore_case: bool) -> str:
    """Give the form in which texts are compared.

    Outer white space goes (as Unicode has it), inner stays; case is folded, not lowered, so that
    `ß` and `SS` are the same word. Characters are not normalised: `é` in two code points differs
    from `é` in one.
    """
    if trim:
        text = text.strip()
    return text.casefold() if ignore_case else text


class Exact(TextValidator):
    """The text is the expected one."""

    def __init__(
        self, name: str, spec: ExactSpec, stdout_of: str | None, expected: Template
    ) -> None:
        super().__init__(name, spec, stdout_of)
        self._expected = expected
        self._trim, self._ignore_case = spec.trim, spec.ignore_case

    async def judge(self, text: str, fields: Mapping[str, Any]) -> Verdict:
        """Compare."""
        expected = rendered(self._expected, fields)
        trim, ignore_case = self._trim, self._ignore_case
        if normal(text, trim=trim, ignore_case=ignore_case) == normal(
            expected, trim=trim, ignore_case=ignore_case
        ):
            return PASSED
        return Verdict(0.0, f"expected {shown(expected)}")


class OneOf(TextValidator):
    """The text is one of the expected ones."""

    def __init__(
        self, name: str, spec: OneOfSpec, stdout_of: str | None, expected: Sequence[Template]
    ) -> None:
        super().__init__(name, spec, stdout_of)
        self._expected = expected
        self._trim, self._ignore_case = spec.trim, spec.ignore_case

    async def judge(self, text: str, fields: Mapping[str, Any]) -> Verdict:
        """Compare with each."""
        expected = texts_of(self._expected, fields)
        own = normal(text, trim=self._trim, ignore_case=self._ignore_case)
        if any(
            own == normal(one, trim=self._trim, ignore_case=self._ignore_case) for one in expected
        ):
            return PASSED
        return Verdict(0.0, f"expected one of {', '.join(map(shown, expected[:10]))}")


class Contains(TextValidator):
    """The expected texts stand in the text."""

    def __init__(
        self, name: str, spec: ContainsSpec, stdout_of: str | None, expected: Sequence[Template]
    ) -> None:
        super().__init__(name, spec, stdout_of)
        self._expected = expected
        self._any, self._ignore_case = spec.match == "any", spec.ignore_case

    async def judge(self, text: str, fields: Mapping[str, Any]) -> Verdict:
        """Look for each."""
        own = text.casefold() if self._ignore_case else text
        expected = texts_of(self._expected, fields)
        missing = [
            one for one in expected if (one.casefold() if self._ignore_case else one) not in own
        ]
        if not missing or (self._any and len(missing) < len(expected)):
            return PASSED
        return Verdict(0.0, f"does not contain {', '.join(map(shown, missing[:10]))}")


class Regex(TextValidator):
    """The pattern is found."""

    checks_cases: ClassVar[bool] = True

    def __init__(
        self, name: str, spec: RegexSpec, stdout_of: str | None, pattern: Template
    ) -> None:
        super().__init__(name, spec, stdout_of)
        self._pattern = pattern
        self._full = spec.full
        self._flags = (
            (re.IGNORECASE if spec.ignore_case else 0)
            | (re.MULTILINE if spec.multiline else 0)
            | (re.DOTALL if spec.dotall else 0)
        )

    async def judge(self, text: str, fields: Mapping[str, Any]) -> Verdict:
        """Search, in bounded time."""
        found = self._matcher(fields)
        if await is_found(found, text.strip() if self._full else text, full=self._full):
            return PASSED
        return Verdict(0.0, f"does not match {shown(found.compiled.pattern)}")

    def fault_in(self, fields: Mapping[str, Any]) -> str | None:
        """Find a pattern that is malformed in this case."""
        self._matcher(fields)
        return None

    def _matcher(self, fields: Mapping[str, Any]) -> Matcher:
        try:
            return matcher(rendered(self._pattern, fields), self._flags)
        except BadPattern as error:
            raise AttemptFault(IssueCode.TASK_INVALID, str(error)) from error


def texts_of(templates: Sequence[Template], fields: Mapping[str, Any]) -> list[str]:
    """Render a list of expected texts; `{{ field }}` alone may give a list of its own."""
    if len(templates) == 1:
        value = value_of(templates[0], fields)
        if isinstance(value, list | tuple):
            if not value:
                raise AttemptFault(IssueCode.TASK_INVALID, "the list of expected texts is empty")
            return [str(item) for item in value]
        return [str(value)]
    return [rendered(template, fields) for template in templates]


def shown(text: str) -> str:
    """Quote a text for a reason, cut where it is long."""
    return repr(text if len(text) <= _SHOWN_CHARS else f"{text[: _SHOWN_CHARS - 1]}…")


def make_exact(making: Making, spec: ExactSpec) -> Exact:
    """Make one."""
    expected = making.compiled(spec.expected, "expected")
    return Exact(making.name, spec, making.stdout_of(spec), expected)


def make_one_of(making: Making, spec: OneOfSpec) -> OneOf:
    """Make one."""
    expected = making.each(spec.expected, "expected")
    return OneOf(making.name, spec, making.stdout_of(spec), expected)


def make_contains(making: Making, spec: ContainsSpec) -> Contains:
    """Make one; nothing is found by an empty text."""
    expected = making.each(spec.expected, "expected")
    if any(template.is_constant and template.source == "" for template in expected):
        making.problem("every text contains the empty one", "expected")
    return Contains(making.name, spec, making.stdout_of(spec), expected)


def make_regex(making: Making, spec: RegexSpec) -> Regex:
    """Make one; a pattern that is the same in every case is compiled at once."""
    pattern = making.compiled(spec.pattern, "pattern")
    if pattern.is_constant:
        try:
            matcher(pattern.source)
        except BadPattern as error:
            making.problem(str(error), "pattern")
    return Regex(making.name, spec, making.stdout_of(spec), pattern)
