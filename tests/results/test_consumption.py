"""What a run consumed, in words."""

from __future__ import annotations

from typing import Any

import pytest

from steelyard.components.values import Usage
from steelyard.results.consumption import (
    Spending,
    budget_text,
    dollars,
    paid_before,
    spending,
    spent_beyond,
    without_noise,
)
from tests.results.workload import a_record


@pytest.mark.parametrize(
    ("amount", "known", "text"),
    [
        (0.0, 0.0, "$0"),
        (0.0013, 0.0, "$0.0013"),
        (12.5, 0.0, "$12.5000"),
        (0.000012, 0.0, "$0.000012"),
        (None, 0.0, "unknown"),
        (None, 0.002, "at least $0.0020"),
    ],
)
def test_money_is_written_by_one_rule(amount: float | None, known: float, text: str) -> None:
    assert dollars(amount, known) == text


def test_sums_of_floats_leave_no_noise_in_files() -> None:
    assert without_noise(0.0012989999999999998) == 0.001299
    assert without_noise(None) is None


def metrics(cost: float | None, known: float, *, reused: float | None = 0.0) -> dict[str, Any]:
    tokens = {"input_tokens": 100, "output_tokens": 20, "requests": 3}
    old = dict.fromkeys(tokens, 0) if reused == 0 else dict.fromkeys(tokens, 1)
    return {
        "usage": {**tokens, "cost_usd": cost, "known_cost_usd": known},
        "reused": {"usage": {**old, "cost_usd": reused}},
    }


def test_what_was_reused_is_not_spent_again() -> None:
    assert spending([metrics(0.5, 0.5, reused=0.2)]) == Spending(2, 99, 19, 0.3, 0.3)


def test_what_a_run_says_it_spent_needs_no_reckoning() -> None:
    spent = Spending(2, 99, 19, None, 0.1)
    unknown = metrics(None, 0.3, reused=None)
    assert spending([{**unknown, "spent": spent.as_json()}]) == spent


def test_scoring_work_of_an_earlier_run_spends_what_the_judge_took() -> None:
    agent, judge = Usage(100, 20, requests=2, cost_usd=0.5), Usage(30, 5, requests=1, cost_usd=0.1)
    origin = {"run_id": "a", "path": "a", "cost_usd": 0.5, "usage": agent.as_json()}
    record = a_record(usage=agent + judge, reused_from=origin)
    spent = spent_beyond(record.usage, paid_before(record))
    assert (spent.requests, spent.tokens) == (1, 35)
    assert without_noise(spent.cost_usd) == 0.1


@pytest.mark.parametrize("cost", [None, 0.5])
@pytest.mark.parametrize("usage", [{}, {"usage": None}, {"usage": {"requests": "x"}}])
def test_work_that_is_taken_whole_spends_nothing_its_cost_known_or_not(
    cost: float | None, usage: dict[str, Any]
) -> None:
    origin = {"run_id": "a", "path": "a", "cost_usd": cost, **usage}
    record = a_record(usage=Usage(1, 2, requests=1, cost_usd=cost), reused_from=origin)
    assert spent_beyond(record.usage, paid_before(record)) == Spending()


def test_a_launch_spends_what_its_runs_spend() -> None:
    both = spending([metrics(0.5, 0.5), metrics(None, 0.1), None])
    assert both == Spending(6, 200, 40, None, 0.6)
    assert both.text() == "6 model requests, 200 input and 40 output tokens; cost at least $0.6000"
    assert Spending().text() == "no model requests"


def test_a_budget_says_what_was_spent_of_what_and_that_it_is_more() -> None:
    spent = Spending(4, 60, 20, 0.001538, 0.001538)
    assert budget_text(spent, None, None) is None
    assert budget_text(spent, 1.0, 100) == "$0.0015 of $1.00 and 80 of 100 tokens spent"
    over = "spent; more than the limit, since what had started ran to its end"
    assert budget_text(spent, 0.0002, None) == f"$0.0015 of $0.0002 {over}"
    assert budget_text(spent, None, 30) == f"80 of 30 tokens {over}"
