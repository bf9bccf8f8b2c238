"""Suites as tables: names, clauses, reports, and what is left out."""

from __future__ import annotations

import asyncio

import pytest

from steelyard.testing import checks
from steelyard.testing.checks import Clauses, run_suite

CLAUSES: Clauses[dict[str, int]] = Clauses()


@CLAUSES.add
async def one_is_one(subject: dict[str, int]) -> None:
    """One is
    one.
    """
    assert subject["one"] == 1, f"one is {subject['one']}"


@CLAUSES.add
async def two_is_two(subject: dict[str, int]) -> None:
    """Two is two."""
    if subject["two"] != 2:
        raise AssertionError


def test_a_check_has_its_name_and_its_clause_in_one_line() -> None:
    first, second = CLAUSES.bind({"one": 1, "two": 2})
    assert (str(first), first.clause) == ("one_is_one", "One is one.")
    assert str(second) == "two_is_two"
    first()
    second()


def test_a_check_that_fails_says_what_was_seen_or_at_least_what_was_asked() -> None:
    first, second = CLAUSES.bind({"one": 3, "two": 3})
    with pytest.raises(AssertionError, match="one is 3"):
        first()
    with pytest.raises(AssertionError, match=r"broken: Two is two\."):
        second()


def test_a_report_runs_on_after_a_failure_and_names_it() -> None:
    report = run_suite(CLAUSES.bind({"one": 3, "two": 2}))
    assert not report.passed
    assert report.failed == ("one_is_one",)
    assert "FAILED one_is_one: One is one." in str(report)
    assert "one is 3" in str(report)
    assert "passed two_is_two" in str(report)
    assert str(report).endswith("1 of 2 clauses kept")


def test_a_subject_without_the_key_fails_like_one_with_the_wrong_value() -> None:
    assert run_suite(CLAUSES.bind({})).failed == ("one_is_one", "two_is_two")


def test_what_is_left_out_must_exist() -> None:
    (left,) = CLAUSES.bind({}, leave_out=["two_is_two"])
    assert left.name == "one_is_one"
    with pytest.raises(ValueError, match="no such clause: three"):
        CLAUSES.bind({}, leave_out=["three"])


def test_a_clause_says_what_it_asks_and_stands_once() -> None:
    table: Clauses[None] = Clauses()

    async def silent(subject: None) -> None:
        return

    with pytest.raises(ValueError, match="has no docstring"):
        table.add(silent)
    with pytest.raises(ValueError, match="stands there twice"):
        CLAUSES.add(one_is_one)


def test_a_check_that_hangs_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    table: Clauses[None] = Clauses()

    @table.add
    async def it_ends(_subject: None) -> None:
        """It ends."""
        await asyncio.Event().wait()

    monkeypatch.setattr(checks, "CHECK_WAIT_S", 0.01)
    assert run_suite(table.bind(None)).failed == ("it_ends",)
