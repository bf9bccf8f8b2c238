"""The validator `choice`: which option does an answer pick?

In this order, and the first that says something decides: the whole answer is a letter or an
option's words; the last "answer is X" names one; the last line is one; exactly one option's
words stand in the answer. Two options at once pick neither.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from string import ascii_uppercase
from typing import Any, ClassVar, Final

from steelyard.benchmarks.pack.schema_validators.texts import ChoiceSpec
from steelyard.benchmarks.pack.template import Template
from steelyard.benchmarks.pack.validators.contract import (
    PASSED,
    TextValidator,
    Verdict,
    rendered,
)
from steelyard.benchmarks.pack.validators.making import Making
from steelyard.benchmarks.pack.validators.texts import normal, shown, texts_of
from steelyard.components.issues import AttemptFault, IssueCode

_MARKS: Final = " \t\r\n*_`\"'()[]{}<>.:,;!#"
# A small letter counts only at the end of its line ("the answer is a matter of taste" picks
# nothing), and `I` not before a small word ("answer: I think").
_SAYS: Final = re.compile(
    r"(?i:\b(?:answer|choice|option)\b(?: is:?|:)?)[ \t*_`\"'(\[]{0,6}"
    r"(I(?![A-Za-z']| [a-z])|[A-HJ-Z](?![A-Za-z'])|[a-z](?=[*_`\"')\].]{0,6}$))",
    re.MULTILINE,
)
_LEADING: Final = re.compile(r"[*_(\[ ]{0,4}([A-Z])[)\].:*_]{1,4}(?: |$)")
_MAX_CHARS: Final = 200_000


def picked(text: str, options: Sequence[str] | None) -> str | None:
    """Give the letter of the option that a text picks, None where it picks none or several.

    Args:
        text: what the agent said; of a very long one, the end.
        options: their words, A first; None where only letters are known.
    """
    text = text[-_MAX_CHARS:].strip()
    letters = ascii_uppercase[: len(options)] if options is not None else ascii_uppercase
    whole = _named(text, letters, options)
    if whole is not None:
        return whole
    said = [m[1].upper() for m in _SAYS.finditer(text) if m[1].upper() in letters]
    if said:
        return said[-1]
    lines = [line for line in text.split("\n") if line.strip()]
    if len(lines) > 1:
        last = _named(lines[-1], letters, options)
        if last is not None:
            return last
    if options is None:
        return None
    folded = normal(text, trim=True, ignore_case=True)
    standing = [
        letter
        for letter, words in zip(letters, options, strict=True)
        if _stands_in(normal(words, trim=True, ignore_case=True), folded)
    ]
    return standing[0] if len(standing) == 1 else None


def _named(text: str, letters: str, options: Sequence[str] | None) -> str | None:
    bare = text.strip(_MARKS)
    if len(bare) == 1 and bare.upper() in letters:
        return bare.upper()
    if options is not None:
        own = normal(bare, trim=True, ignore_case=True)
        for letter, words in zip(letters, options, strict=True):
            if own == normal(words.strip(_MARKS), trim=True, ignore_case=True):
                return letter
    leading = _LEADING.match(text.strip())
    if leading and leading[1] in letters and "\n" not in text.strip():
        return leading[1]
    return None


def _stands_in(words: str, text: str) -> bool:
    """True where the words stand in the text as words, not as part of a longer one."""
    start = text.find(words) if words else -1
    while start >= 0:
        end = start + len(words)
        before, after = text[start - 1 : start], text[end : end + 1]
        if not (before.isalnum() and words[0].isalnum()) and not (
            after.isalnum() and words[-1].isalnum()
        ):
            return True
        start = text.find(words, start + 1)
    return False


class Choice(TextValidator):
    """The text picks the expected option."""

    checks_cases: ClassVar[bool] = True

    def __init__(
        self,
        name: str,
        spec: ChoiceSpec,
        stdout_of: str | None,
        expected: Template,
        options: Sequence[Template] | None,
    ) -> None:
        super().__init__(name, spec, stdout_of)
        self._expected, self._options = expected, options

    async def judge(self, text: str, fields: Mapping[str, Any]) -> Verdict:
        """Find what was picked and compare."""
        wanted, options = self._wanted(fields)
        found = picked(text, options)
        if found == wanted:
            return PASSED
        own = _named_as(rendered(self._expected, fields), wanted, options)
        return Verdict(0.0, f"expected {own(wanted)}, found {own(found) if found else 'no choice'}")

    def fault_in(self, fields: Mapping[str, Any]) -> str | None:
        """Find an expected choice that is not an option."""
        self._wanted(fields)
        return None

    def _wanted(self, fields: Mapping[str, Any]) -> tuple[str, Sequence[str] | None]:
        options = texts_of(self._options, fields) if self._options is not None else None
        written = rendered(self._expected, fields)
        wanted = _expected_letter(written, options)
        if wanted is None:
            raise AttemptFault(
                IssueCode.TASK_INVALID, f"the expected choice {shown(written)} is not an option"
            )
        return wanted, options


def _expected_letter(written: str, options: Sequence[str] | None) -> str | None:
    own = written.strip()
    if options is not None:
        if not 2 <= len(options) <= len(ascii_uppercase):
            return None
        matches = [
            letter
            for letter, words in zip(ascii_uppercase, options, strict=False)
            if words.strip() == own
        ]
        if len(matches) == 1:
            return matches[0]
    letters = ascii_uppercase[: len(options)] if options is not None else ascii_uppercase
    return own.upper() if len(own) == 1 and own.upper() in letters else None


def _named_as(written: str, wanted: str, options: Sequence[str] | None) -> Callable[[str], str]:
    """Name options as the pack does: by letters where it expects one, else by their words."""
    if options is None or written.strip().upper() == wanted:
        return lambda letter: letter
    return lambda letter: shown(options[ascii_uppercase.index(letter)].strip())


def make_choice(making: Making, spec: ChoiceSpec) -> Choice:
    """Make one."""
    expected = making.compiled(spec.expected, "expected")
    options = making.each(spec.options, "options") if spec.options is not None else None
    is_text = options is not None and len(options) == 1 and options[0].field is None
    if is_text and options is not None and not options[0].is_malformed:
        making.problem("options are a list, or `{{ field }}` for a field that holds one", "options")
    return Choice(making.name, spec, making.stdout_of(spec), expected, options)
