"""The example of docs/results.md is computed as the product computes it."""

from __future__ import annotations

from typing import Any

from steelyard.components.benchmark import binary
from steelyard.components.issues import Outcome
from steelyard.results.records import AttemptRecord
from steelyard.results.scores import scores
from steelyard.results.tallies import Tallier
from tests.project.checkout import ROOT

TASKS: dict[str, list[bool | None]] = {
    "a": [True, True],
    "b": [True, False],
    "c": [False, False],
    "d": [True, True],
    "e": [True, None],
}
EXAMPLE = (ROOT / "docs/results.md").read_text().partition("\n### An example\n")[2]
EXAMPLE = EXAMPLE.partition("\n## ")[0]


def _scores() -> dict[str, dict[str, Any]]:
    tallier = Tallier([binary("passed")])
    for task, attempts in TASKS.items():
        for number, passed in enumerate(attempts, 1):
            outcome = Outcome.FAILED_FATAL if passed is None else Outcome.SCORED
            metrics = {} if passed is None else {"passed": passed}
            tallier.add(AttemptRecord(task, number, outcome, metrics))
    plan = {"k": 2, "strategy": "avg", "early_stop": False}
    tally = tallier.result(primary="passed", plan=plan, planned_attempts=10)
    return {score["estimator"]: score for score in scores(tally)}


def _pair(pair: list[float]) -> str:
    return f"[{pair[0]:.3f}, {pair[1]:.3f}]"


def test_the_figures_of_the_worked_example_are_right() -> None:
    found = _scores()
    mean = found["avg@2"]
    assert mean["official"] is None
    assert f"{mean['coverage']['fraction']:.0%}" == "90%"
    for said in (
        f"= {mean['reference']:.3f}",
        f"{mean['estimate']['standard_error']:.3f}",
        _pair(mean["estimate"]["interval"]),
        f"{mean['bounds'][0]:.3f}",
        f"{found['pass@2']['reference']:.3f}",
        _pair(found["pass@2"]["bounds"]),
        f"{found['pass^2']['reference']:.3f}",
        _pair(found["pass^2"]["bounds"]),
    ):
        assert said in EXAMPLE, said
    assert mean["bounds"][0] == mean["failures_as_zero"]
    assert mean["bounds"][1] == mean["reference"]
