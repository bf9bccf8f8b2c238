"""Each clause of the benchmark suite finds what breaks it, and lets pass what keeps it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from steelyard.components.environment import NoParams
from steelyard.components.registry import Kind, find
from steelyard.environments.host_process import HostProcess
from steelyard.testing.benchmark_suite import CLAUSES, benchmark_suite
from steelyard.testing.checks import Check, run_suite
from steelyard.testing.fake_environment import FakeEnvironment
from tests.testing.broken_benchmarks import BROKEN, Sound

ROOT = Path(__file__).parents[2]


def test_every_clause_has_something_that_breaks_it() -> None:
    benchmark_suite(Sound)
    assert set(BROKEN) == set(CLAUSES.names())


@pytest.mark.parametrize("check", benchmark_suite(Sound, environment=FakeEnvironment), ids=str)
def test_what_is_sound_keeps_every_clause(check: Check) -> None:
    check()


@pytest.mark.parametrize("clause", BROKEN)
def test_what_is_broken_breaks_its_clause_and_no_other(clause: str) -> None:
    broken = BROKEN[clause]
    failed = run_suite(benchmark_suite(broken.component, environment=FakeEnvironment)).failed
    assert clause in failed
    assert set(failed) <= {clause, *broken.also}


PACK = "steelyard.benchmarks.pack:PackBenchmark"
KEPT: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("humaneval", {}, {}),
    (PACK, {"path": str(ROOT / "examples/packs/refund-triage")}, {}),
    # Its own programs alone are run: no sandbox is needed, and thirty of them take a while.
    (
        PACK,
        {"path": str(ROOT / "examples/packs/code-fix")},
        {"environment": lambda: HostProcess(NoParams()), "wrong_answers": ["no"]},
    ),
]


@pytest.mark.integration
@pytest.mark.parametrize(
    ("name", "params", "world"), KEPT, ids=["humaneval", "refund-triage", "code-fix"]
)
def test_a_built_in_benchmark_keeps_every_clause(
    name: str, params: dict[str, Any], world: dict[str, Any]
) -> None:
    component = find(Kind.BENCHMARK, name).component
    report = run_suite(benchmark_suite(component, params, tasks=1, **world))
    assert report.passed, str(report)
