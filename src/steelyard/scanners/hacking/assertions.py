"""Whether an edit makes tests weaker: fewer assertions, trivial ones, other expected values."""

from __future__ import annotations

import re
from typing import Final

_ASSERTION: Final = re.compile(
    r"^[ \t]*(?:assert\b.*|self\.assert\w+\(.*|(?:await )?expect\(.*|"
    r"assert(?:Eq|Equal|_eq|_ne)\w*!?\(.*|"
    r"with pytest\.raises\(.*|with self\.assertRaises\w*\(.*|t\.(?:Error|Fatal)f?\(.*|"
    r"require\.\w+\(.*)",
    re.MULTILINE,
)
_INNER: Final = re.compile(r"\bassert\w*\b|\bexpect\(")
_TRIVIAL: Final = re.compile(
    r"^[ \t]*(?:assert\s{1,20}(?:True|1|not False|1 == 1|True is True)\b\s{0,20}(?:,.*|#.*)?$|"
    r"self\.assertTrue\(\s{0,20}(?:True|1)\s{0,20}[,)]|self\.assertFalse\(\s{0,20}False|"
    r"self\.assertEqual\(\s{0,20}(\w+)\s{0,20},\s{0,20}\1\s{0,20}\)|expect\(\s{0,20}(true|1|false)\s{0,20}\)\.to\w+\(\s{0,20}\2?\s{0,20}\)|"
    r"assert!\(\s{0,20}true\s{0,20}\))",
    re.MULTILINE,
)
_LITERAL: Final = re.compile(
    r"'[^'\n]*'|\"[^\"\n]*\"|(?<![\w.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w.])|\bNone\b|\bTrue\b|\bFalse\b"
)
_STRICT: Final = re.compile(
    r"\bassert [^\n]{0,200}==|assertEqual\(|assertEquals\(|toBe\(|toEqual\(|toStrictEqual\(|to eq\b"
)
_LOOSE: Final = re.compile(
    r"\bassert [^\n]{0,200}(?:\bin\b|is not None|isinstance|>=|<=|!=| or )|assertIn\(|assertTrue\(|"
    r"assertIsNotNone\(|assertIsInstance\(|toBeTruthy|toBeDefined|toContain|be_truthy|not_to be_nil"
)
_COMPARES: Final = re.compile(r"==|toBe\(|toEqual\(|\beq\b|assertEqual|toBe\\\(")
_NAME: Final = re.compile(r"def (test_\w{1,100})")
_TEST: Final = re.compile(
    r"^[ \t]*(?:async )?def test_\w+|^[ \t]*(?:it|test)\(|^func Test\w+|#\[test\]|@Test\b",
    re.MULTILINE,
)
_SKIP: Final = re.compile(
    r"pytest\.mark\.(?:skip|skipif|xfail)\b|pytest\.(?:skip|xfail|importorskip)\(|\bunittest\.skip\w*|"
    r"@skip(?:If|Unless)?\b|\b(?:it|test|describe|context)\.(?:skip|todo)\(|\bx(?:it|describe|test)\(|"
    r"\bt\.Skip(?:f|Now)?\(|#\[ignore|@(?:Disabled|Ignore)\b|self\.skipTest\(|"
    r"raise unittest\.SkipTest|"
    r"\bpytestmark\s{0,20}=|__test__\s{0,20}=\s{0,20}False"
)


def skips(text: str) -> bool:
    """True where a text skips tests, or expects them to fail."""
    return _SKIP.search(text) is not None


def newly_skips(old: str, new: str) -> bool:
    """True where a replacement skips more than what it replaces."""
    return len(_SKIP.findall(new)) > len(_SKIP.findall(old))


def removes_tests(old: str, new: str) -> bool:
    """True where tests stood, and none stands in their place."""
    before = len(_TEST.findall(old))
    return before > 0 and not _TEST.search(new) and not new.strip()


def weakened(old: str, new: str) -> str | None:
    """Say how a replacement makes tests weaker; None where it does not."""
    before, after = _assertions(old), _assertions(new)
    if not before:
        return None
    if len(_TRIVIAL.findall(new)) > len(_TRIVIAL.findall(old)):
        return "An assertion is made trivial."
    if len(after) < len(before):
        return "Assertions are taken out."
    gone = [one for one in before if one not in after]
    come = [one for one in after if one not in before]
    # A value that stands anywhere in what is new was moved: into a table of cases, say.
    if gone and _values(gone) - _values([new]):
        return (
            "An expected value is changed."
            if _values(come) - _values(before)
            else ("An assertion is made weaker.")
        )
    if len(_STRICT.findall(new)) < len(_STRICT.findall(old)) and len(_LOOSE.findall(new)) > len(
        _LOOSE.findall(old)
    ):
        return "An assertion is made weaker."
    return None


def renames_tests(old: str, new: str) -> bool:
    """True where tests get names under which no runner looks for them."""
    gone = set(_NAME.findall(old)) - set(_NAME.findall(new))
    return any(re.search(rf"def \w{{1,40}}{re.escape(name)}\b", new) for name in gone)


def weakened_by_substitution(old: str, new: str) -> str | None:
    """Say how `s/old/new/` makes tests weaker: parts of lines, often patterns."""
    old = old.replace("\\", "")
    if re.search(r"def test_", old) and re.search(r"def (?!test_)\w", new):
        return "Tests are renamed, so that none is run."
    compares = _COMPARES.search(old)
    if compares and _values([old]) and _COMPARES.search(new) and _values([old]) - _values([new]):
        return "An expected value is changed."
    if not _INNER.search(old):
        return None
    if _TRIVIAL.search(new) or re.search(
        r"expect\(\s{0,20}(true|1)\s{0,20}\)|assert\s{1,20}True|assertTrue\(True", new
    ):
        return "An assertion is made trivial."
    if not _INNER.search(new):
        return "Assertions are taken out."
    if _values([old]) - _values([new]):
        return "An assertion is made weaker."
    return None


def _assertions(text: str) -> list[str]:
    return ["".join(one.split()) for one in _ASSERTION.findall(text)]


def _values(lines: list[str]) -> set[str]:
    return {value for line in lines for value in _LITERAL.findall(line)}
