"""A budget over a real launch: it holds, and what it leaves out is in the ledger."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from steelyard.components.issues import Outcome
from steelyard.engine.events import LaunchResult, RunOutcome
from steelyard.testing.endpoint import MockEndpoint
from tests.engine.flaky import flaky, run_flaky
from tests.engine.launching import records, request, run_all

pytestmark = pytest.mark.integration


def launched(tmp_path: Path, budget: dict[str, Any], **runtime: Any) -> LaunchResult:
    with MockEndpoint("--text", "right") as endpoint:
        one = request(
            benchmark={"tasks": 40},
            harness={"id": "chat"},
            model={"id": "priced", "base_url": endpoint.url},
        )
        prices = {"priced": {"input_per_mtok": 0, "output_per_mtok": 1_000_000}}
        return run_all(tmp_path, one, budget=budget, prices=prices, runtime=runtime)


def test_a_dollar_budget_stops_before_it_is_passed(tmp_path: Path) -> None:
    result = launched(tmp_path, {"usd": 10})
    spent = sum(record.usage.cost_usd or 0 for record in records(result))
    assert 0 < spent <= 10
    counts = result.requests[0].counts
    assert counts[Outcome.SCORED] > 0
    assert counts[Outcome.SCORED] + counts[Outcome.SKIPPED_BUDGET] == 40
    assert result.outcome is RunOutcome.BUDGET_EXCEEDED
    assert result.exit_status == 4


def test_a_budget_that_suffices_changes_nothing(tmp_path: Path) -> None:
    result = launched(tmp_path, {"usd": 100_000})
    assert result.requests[0].counts[Outcome.SCORED] == 40
    assert result.exit_status == 0


def test_a_token_budget_holds_too(tmp_path: Path) -> None:
    result = launched(tmp_path, {"tokens": 50})
    used = [record.usage.input_tokens + record.usage.output_tokens for record in records(result)]
    assert 0 < sum(used) <= 50
    assert result.exit_status == 4


NO_USAGE_TOLD = ("--text", "right", "--fault", "wrong_usage:how=missing")
A_DOLLAR = {"priced": {"input_per_mtok": 0, "output_per_mtok": 500_000}}
"""For each call, of two tokens: told or, where it is not, assumed by its size."""


def test_an_endpoint_that_never_tells_usage_does_not_make_a_budget_endless(tmp_path: Path) -> None:
    for budget in ({"usd": 6}, {"tokens": 60}, {"usd": 6, "reserve_usd": 0}):
        with MockEndpoint(*NO_USAGE_TOLD) as endpoint:
            one = request(
                benchmark={"tasks": 40},
                harness={"id": "chat"},
                model={"id": "priced", "base_url": endpoint.url},
            )
            folder = tmp_path / "-".join(budget)
            folder.mkdir()
            result = run_all(folder, one, budget=budget, prices=A_DOLLAR, task_concurrency=4)
            assert endpoint.stats()["calls"] <= 20
        assert result.outcome is RunOutcome.BUDGET_EXCEEDED
        assert result.requests[0].counts[Outcome.SCORED] > 0
        # That nobody knows what it cost stays on record.
        assert all(
            record.usage.cost_usd is None
            for record in records(result)
            if record.outcome is Outcome.SCORED
        )


@pytest.mark.parametrize("told", [("--text", "right"), NO_USAGE_TOLD], ids=["told", "untold"])
def test_a_retry_has_what_earlier_executions_left_whether_or_not_their_cost_was_told(
    tmp_path: Path, told: tuple[str, ...]
) -> None:
    with MockEndpoint(*told) as endpoint:
        one = flaky(
            tmp_path,
            retries=5,
            fails={"t0": 9},
            script={"calls": True},
            model={"id": "priced", "base_url": endpoint.url},
            budget={"attempt_usd": 2.5},
        )
        result = run_flaky(tmp_path, one, prices=A_DOLLAR)
        assert endpoint.stats()["calls"] == 3
    assert records(result)[0].executions == 3


def test_a_free_model_may_run_where_nothing_may_be_spent_on_others(tmp_path: Path) -> None:
    """`nop` calls no model: a budget of zero does not hold it."""
    result = run_all(tmp_path, request(benchmark={"tasks": 3}), budget={"usd": 0, "tokens": 0})
    assert result.requests[0].counts[Outcome.SCORED] == 3
    assert result.exit_status == 0


def test_a_budget_of_zero_calls_nothing(tmp_path: Path) -> None:
    result = launched(tmp_path, {"usd": 0})
    assert result.requests[0].counts[Outcome.SKIPPED_BUDGET] == 40
    assert result.exit_status == 4


def test_an_attempts_budget_of_zero_calls_nothing(tmp_path: Path) -> None:
    result = launched(tmp_path, {"attempt_tokens": 0})
    assert result.requests[0].counts[Outcome.FAILED_ERROR] == 40
    assert sum(record.usage.requests for record in records(result)) == 0
