"""The table of clauses names tests and checks that exist."""

from __future__ import annotations

import re
from pathlib import Path

from steelyard.testing.environment_suite import builtin_suite

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/design/containers-clauses.md").read_text()
TESTS = list((ROOT / "tests").rglob("test_*.py"))
FUNCTIONS = re.findall(r"def (test_\w+)", "\n".join(path.read_text() for path in TESTS))


def test_every_test_that_is_named_exists() -> None:
    files = {path.name for path in TESTS}
    named = set(re.findall(r"\btest_\w+\.py", TEXT))
    assert len(named) > 15
    assert named <= files
    for begin, is_cut in re.findall(r"::(test_\w+)(…?)", TEXT):
        assert [one for one in FUNCTIONS if one == begin or (is_cut and one.startswith(begin))]
    for part in re.findall(r"`…(\w+)…?`", TEXT):
        assert [one for one in FUNCTIONS if part in one], part


def test_every_check_of_the_suite_that_is_named_exists() -> None:
    checks = builtin_suite("docker").names()
    _, _, rest = TEXT.partition("## One suite")
    table = rest.partition("## Agents")[0]
    named = re.findall(r"`(\w+)…?`", table) + re.findall(r"`(\w+)…?`", _suite_rows())
    assert len(named) > 20
    for begin in set(named):
        assert [one for one in checks if one.startswith(begin)], begin


def _suite_rows() -> str:
    rows = (row.partition("suite: ")[2] for row in TEXT.splitlines() if "suite: " in row)
    return "\n".join(row.partition(";")[0] for row in rows)
