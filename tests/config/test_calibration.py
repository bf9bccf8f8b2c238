"""A calibration adds a ceiling and a floor for each benchmark, and clashes with nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from steelyard.config.calibration import with_calibration
from steelyard.config.data_source import read_data
from steelyard.config.layers import ORCHESTRATION
from steelyard.config.resolve import Resolution, resolve_orchestration


def resolved(requests: list[dict[str, Any]], tmp_path: Path) -> Resolution:
    document = {
        "defaults": {"harness": {"id": "chat"}, "model": {"id": "m", "base_url": "http://h/v1"}},
        "requests": requests,
    }
    node = read_data(document, layer=ORCHESTRATION)
    return resolve_orchestration(node, environ={}, cwd=tmp_path, finds_files=False)


def request(name: str, benchmark: str = "b", **changes: Any) -> dict[str, Any]:
    return {"name": name, "benchmark": {"id": benchmark}, **changes}


def added(requests: list[dict[str, Any]], tmp_path: Path) -> list[str]:
    found, _ = with_calibration(resolved(requests, tmp_path))
    return [each.name for each in found.orchestration.requests[len(requests) :]]


def test_each_benchmark_gets_a_ceiling_and_a_floor_after_all_requests(tmp_path: Path) -> None:
    requests = [request("one"), request("two", "other"), request("three")]
    found, calibrations = with_calibration(resolved(requests, tmp_path))
    names = [each.name for each in found.orchestration.requests]
    assert names == [
        "one", "two", "three", "one-oracle", "one-nop", "two-oracle", "two-nop"
    ]  # fmt: skip
    assert [(c.oracle, c.nop, c.of) for c in calibrations] == [
        ("one-oracle", "one-nop", ("one", "three")),
        ("two-oracle", "two-nop", ("two",)),
    ]


@pytest.mark.parametrize(
    "changes",
    [
        {"execution": {"limit": 3}},
        {"execution": {"sample_ids": ["a"]}},
        {"execution": {"shard": "1/2"}},
        {"environment": {"id": "sandbox"}},
        {"benchmark": {"id": "b", "form": "x"}},
        {"output": {"run_name": "g"}},
    ],
)
def test_other_tasks_or_another_place_are_calibrated_apart(
    changes: dict[str, Any], tmp_path: Path
) -> None:
    assert len(added([request("one"), request("two") | changes], tmp_path)) == 4


def test_another_model_harness_or_k_shares_the_calibration(tmp_path: Path) -> None:
    other = request("two", execution={"attempts": {"k": 5}}, harness={"id": "command"})
    assert added([request("one"), other], tmp_path) == ["one-oracle", "one-nop"]


def test_what_is_added_keeps_the_tasks_and_calls_no_model(tmp_path: Path) -> None:
    execution = {"limit": 3, "attempts": {"k": 4, "strategy": "pass"}, "max_retries": 0}
    found, _ = with_calibration(
        resolved([request("one", execution=execution, budget={"usd": 1})], tmp_path)
    )
    oracle = found.orchestration.requests[1]
    assert (oracle.harness.id, oracle.model.id, oracle.model.base_url) == ("oracle", "none", None)
    assert (oracle.execution.limit, oracle.execution.attempts.k) == (3, 1)
    assert oracle.budget.usd is None


def test_names_and_folders_that_are_taken_are_not_taken_again(tmp_path: Path) -> None:
    taken = [request("one"), request("ONE-oracle"), request("one-nop")]
    assert added(taken, tmp_path) == ["one-oracle-2", "one-nop-2"]


def test_faults_of_what_is_added_are_placed_at_the_request_it_is_for(tmp_path: Path) -> None:
    found, _ = with_calibration(resolved([request("one"), request("two", "other")], tmp_path))
    assert len(found.provenance.root.value["requests"].value) == 6
    where = found.provenance.where(("requests", 4, "benchmark", "id"))
    assert where == found.provenance.where(("requests", 1, "benchmark", "id"))
