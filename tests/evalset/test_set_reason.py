"""Why a set did not complete: counted over its cells."""

from __future__ import annotations

from steelyard.components.issues import Outcome
from steelyard.engine.events import RequestResult, RunOutcome
from steelyard.evalset.set_reason import set_reason


def ended(reason: str | None, **counts: int) -> RequestResult:
    found = {Outcome[name.upper()]: n for name, n in counts.items()}
    planned = sum(counts.values())
    return RequestResult("cell", RunOutcome.FAILED, reason, None, planned, found, None)


def test_a_single_cells_reason_is_the_sets() -> None:
    assert set_reason([ended("all is lost", failed_fatal=2)]) == "all is lost"


def test_what_the_budget_left_is_counted_over_all_cells() -> None:
    cells = [
        ended(None, scored=36),
        ended("the budget left 5 of 36 attempts unstarted", scored=31, skipped_budget=5),
        ended("the budget left 36 of 36 attempts unstarted", skipped_budget=36),
    ]
    assert set_reason(cells) == "the budget left 41 of 108 attempts unstarted, in 2 of 3 cells"


def test_fatal_attempts_are_counted_over_all_cells() -> None:
    cells = [ended(None, scored=2), ended("1 of 2 …", scored=1, failed_fatal=1)]
    assert set_reason(cells) == "1 of 4 attempts ended FATAL, in 1 of 2 cells"


def test_one_reason_for_all_is_said_once_and_others_are_counted() -> None:
    assert set_reason([ended("SIGINT", cancelled=1), ended("SIGINT", cancelled=1)]) == "SIGINT"
    many = [ended("SIGINT", cancelled=1), ended("the time is up", cancelled=1)]
    assert set_reason(many) == "SIGINT; and 1 more reason"
    assert set_reason([ended(None, scored=1), ended(None, scored=1)]) is None
