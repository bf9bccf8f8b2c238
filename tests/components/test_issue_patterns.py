"""Patterns on issues: what they match, and that none of them holds the process up."""

from __future__ import annotations

import logging
import time

import pytest

from steelyard.components.issue_patterns import BadPattern, IssuePatterns
from steelyard.components.issues import Issue, IssueCode, Phase, Severity

SLOW = "(a+)+$"
SLOW_TEXT = "a" * 60 + "b"


def error(message: str, code: IssueCode = IssueCode.AGENT_FAILED) -> Issue:
    return Issue.of(code, Phase.RUN, message)


@pytest.mark.parametrize(
    ("pattern", "message", "found"),
    [
        ("(?i)connection.*reset", "Connection was RESET by peer", True),
        ("(?i)temporar", "a temporary failure", True),
        ("^agent_failed$", "whatever", True),
        ("agent_fail", "whatever", True),
        ("reset$", "reset, then more", False),
        ("", "anything", True),
        ("(?:con|re)+set", "reset", True),
        (r"(.)\1\1", "aaa", True),
    ],
)
def test_a_pattern_is_searched_in_the_message_and_in_the_code(
    pattern: str, message: str, found: bool
) -> None:
    issue = error(message)
    assert IssuePatterns.of([pattern]).first_match([issue]) == (issue if found else None)


def test_no_patterns_match_nothing() -> None:
    assert IssuePatterns.of([]).first_match([error("anything")]) is None


@pytest.mark.parametrize("code", [IssueCode.CLEANUP_FAILED, IssueCode.HARNESS_CRASHED])
def test_patterns_are_for_errors_alone(code: IssueCode) -> None:
    assert error("", code).severity is not Severity.ERROR
    assert IssuePatterns.of(["."]).first_match([error("x", code)]) is None


def test_a_pattern_that_does_not_compile_is_named() -> None:
    with pytest.raises(BadPattern, match=r"'\('"):
        IssuePatterns.of(["ok", "("])


def test_a_long_message_is_searched_in_its_first_part() -> None:
    assert IssuePatterns.of(["end"]).first_match([error("x" * 1_000_000 + "end")]) is None


@pytest.mark.parametrize("pattern", ["(?i)connection.*reset", "temporar", "a|b|c", "x{2,5}y"])
def test_ordinary_patterns_on_ordinary_messages_need_no_process(pattern: str) -> None:
    assert IssuePatterns.of([pattern]).is_quick([error("the connection was reset by its peer")])


@pytest.mark.parametrize("pattern", [SLOW, r"(a|a)*\1", "a*" * 10 + "b", "(a?){30}a{30}"])
def test_a_pattern_that_may_take_for_ever_is_not_searched_here(pattern: str) -> None:
    assert not IssuePatterns.of([pattern]).is_quick([error(SLOW_TEXT)])


@pytest.mark.integration
def test_a_pattern_that_takes_too_long_matches_nothing_and_is_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    began = time.monotonic()
    with caplog.at_level(logging.WARNING):
        assert IssuePatterns.of([SLOW]).first_match([error(SLOW_TEXT)]) is None
    assert time.monotonic() - began < 60
    assert "longer than 1 s" in caplog.text
    assert SLOW in caplog.text


@pytest.mark.integration
def test_a_slow_pattern_hides_no_other() -> None:
    issue = error(SLOW_TEXT)
    assert IssuePatterns.of([SLOW, "ab$"]).first_match([issue]) is issue
