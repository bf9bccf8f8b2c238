"""Gates respect a metric's direction, say by how much they were missed, and know their metrics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from steelyard.config.errors import BadInput
from steelyard.results.comparison import compare_runs
from steelyard.results.gates import (
    Gate,
    difference_gates,
    fail_under_gates,
    judge_difference,
    judge_run,
)
from steelyard.results.summary import summarise
from tests.results.comparing import FATAL, NO, YES, a_document, a_side, scalar_metric

REQUESTS = {"one": ["score", "latency"], "two": ["score"], "a:b": ["x=y"]}


def read(*texts: str, **how: Any) -> list[tuple[str, str | None, float]]:
    return [(g.request, g.metric, g.limit) for g in fail_under_gates(texts, REQUESTS, **how)]


def test_a_gate_holds_for_every_request_that_has_its_metric() -> None:
    assert read("score=0.5") == [("one", "score", 0.5), ("two", "score", 0.5)]
    assert read("latency=3") == [("one", "latency", 3.0)]


def test_a_gate_may_name_its_request() -> None:
    assert read("two:score=-1e-3") == [("two", "score", -0.001)]
    assert read("a:b:x=y=2") == [("a:b", "x=y", 2.0)]
    assert read("x=y=2") == [("a:b", "x=y", 2.0)]


def test_every_request_may_have_to_be_official() -> None:
    assert [(request, metric) for request, metric, _ in read(needs_official=True)] == [
        ("one", None), ("two", None), ("a:b", None)
    ]  # fmt: skip


def test_unknown_metrics_and_other_forms_are_refused_at_once() -> None:
    with pytest.raises(BadInput) as error:
        read("scor=0.5", "score", "score=", "=1", "score=high", "score=nan", "two:latency=1")
    said = str(error.value)
    assert len(error.value.problems) == 7
    assert "did you mean 'score'?" in said
    assert "did you mean 'two:score'?" in said or "there are: two:score" in said
    assert said.count("METRIC=VALUE, with a number") == 5


def test_a_gate_of_a_difference_needs_no_number() -> None:
    gates = difference_gates(["score", "latency=-0.5"], ["score", "latency"])
    assert [(g.metric, g.limit) for g in gates] == [("score", 0.0), ("latency", -0.5)]
    with pytest.raises(BadInput, match="did you mean 'score'"):
        difference_gates(["scores=1"], ["score"])


def metrics_of(tmp_path: Path, values: Any, **changes: Any) -> dict[str, Any]:
    figures = {f"t{number:02}": [value] for number, value in enumerate(values)}
    return summarise(a_side(tmp_path, "a", figures, **changes))


def test_a_missed_gate_says_by_how_much(tmp_path: Path) -> None:
    metrics = metrics_of(tmp_path, [YES, NO, NO, NO])
    missed = judge_run(Gate("--fail-under", "a", "accuracy", 0.5), metrics)
    assert (missed.is_met, missed.found) == (False, 0.25)
    assert missed.said == "accuracy avg@1 is 0.25, 0.25 below 0.5"
    assert judge_run(Gate("--fail-under", "a", "accuracy", 0.25), metrics).is_met


def test_confident_gates_hold_the_worse_end_of_the_interval(tmp_path: Path) -> None:
    metrics = metrics_of(tmp_path, [YES] * 8 + [NO] * 2)
    gate = Gate("--fail-under", "a", "accuracy", 0.5, is_confident=True)
    found = judge_run(gate, metrics)
    assert (found.is_met, found.found) == (False, pytest.approx(0.490162, abs=1e-6))
    assert "the lower end of accuracy avg@1's 95% interval is 0.4902" in found.said


def test_where_less_is_better_the_limit_is_one_from_above(tmp_path: Path) -> None:
    document = a_document(metrics=[scalar_metric()])
    metrics = metrics_of(tmp_path, [1.0, 2.0, 3.0], metric="latency", document=document)
    assert judge_run(Gate("", "a", "latency", 2.5), metrics).is_met
    missed = judge_run(Gate("", "a", "latency", 1.5), metrics)
    assert missed.said == "latency avg@1 is 2, 0.5 above 1.5"
    sure = judge_run(Gate("", "a", "latency", 2.5, is_confident=True), metrics)
    assert not sure.is_met
    assert "the upper end of latency" in sure.said


def test_what_has_no_value_or_no_interval_meets_no_gate(tmp_path: Path) -> None:
    nothing = metrics_of(tmp_path / "nothing", [FATAL, FATAL])
    assert "has no value" in judge_run(Gate("", "a", "accuracy", 0.0), nothing).said
    assert not judge_run(Gate("", "a", "accuracy", 0.0), nothing).is_met
    document = a_document(metrics=[scalar_metric("q", higher_is_better=True)])
    one = metrics_of(tmp_path / "one", [0.5], metric="q", document=document)
    sure = judge_run(Gate("", "a", "q", 0.1, is_confident=True), one)
    assert (sure.is_met, sure.found) == (False, None)
    assert "no interval to be confident of" in sure.said
    assert not judge_run(Gate("", "a", "accuracy", 0.0), None).is_met
    assert "no score 'gone'" in judge_run(Gate("", "a", "gone", 0.0), one).said


def test_official_is_a_gate_of_its_own(tmp_path: Path) -> None:
    part = metrics_of(tmp_path / "part", [YES, YES, FATAL])
    official = judge_run(Gate("--require-official", "a", None), part)
    assert (official.is_met, official.said) == (False, "2 of 3 planned attempts count")
    under = judge_run(Gate("", "a", "accuracy", 0.5), part)
    assert under.is_met
    assert "(not official)" in under.said
    whole = metrics_of(tmp_path / "whole", [YES, NO])
    assert judge_run(Gate("--require-official", "a", None), whole).is_met


def test_a_difference_is_judged_in_the_better_direction(tmp_path: Path) -> None:
    document = a_document(metrics=[scalar_metric()])
    roots = [
        a_side(tmp_path, name, {f"t{n}": [v] for n, v in enumerate(values)}, metric="latency",
               document=document)
        for name, values in (("a", [3.0, 4.0, 5.0]), ("b", [2.0, 3.0, 4.5]))
    ]  # fmt: skip
    (faster,) = compare_runs(roots)
    (slower,) = compare_runs(roots[::-1])
    gate = Gate("--gate latency=0.5", "", "latency", 0.5)
    assert judge_difference(gate, faster).is_met
    missed = judge_difference(gate, slower)
    assert (missed.is_met, missed.found) == (False, pytest.approx(-5 / 6))
    assert "the gain in latency avg@1 is -0.8333, 1.333 below 0.5" in missed.said
    sure = judge_difference(Gate("", "", "latency", 0.5, is_confident=True), faster)
    assert not sure.is_met
