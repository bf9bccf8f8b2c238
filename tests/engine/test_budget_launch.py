"""A budget over a real launch: it holds, and what it leaves out is in the ledger."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from steelyard.components.issues import Outcome
from steelyard.engine.events import LaunchResult, RunOutcome
from steelyard.testing.endpoint import MockEndpoint
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
