"""`failures` over whole runs: counts, categories, examples, words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from steelyard.analyzers.failures import Failures
from steelyard.analyzers.failures.tally import MAX_CATEGORIES, PointRule
from steelyard.components.issues import Outcome
from steelyard.components.steps import Step
from steelyard.results.failures import PrimaryMetric
from steelyard.results.records import AttemptRecord
from steelyard.testing.analyzer_suite import analyzer_suite
from steelyard.testing.checks import Check
from steelyard.testing.fake_run import DOCUMENT, FakeRun, sample_records
from tests.analyzers.labelled import CASES


def analyzed(run: FakeRun, **params: Any) -> Any:
    return Failures(Failures.Params.model_validate(params)).analyze(run)


def passed(task_id: str, category: str | None = None) -> AttemptRecord:
    return AttemptRecord(task_id, 1, Outcome.SCORED, {"passed": True}, "42", category=category)


def run_of(names: list[str], *, passing: int = 0, categories: list[str] | None = None) -> FakeRun:
    records = [CASES[name].record(f"{number}") for number, name in enumerate(names)]
    if categories is not None:
        records = [replace(r, category=c) for r, c in zip(records, categories, strict=True)]
    steps: dict[tuple[str, int], list[Step]] = {
        (str(number), 1): list(CASES[name].steps) for number, name in enumerate(names)
    }
    records += [passed(f"p{number}") for number in range(passing)]
    return FakeRun(records, steps=steps)


@pytest.mark.parametrize("check", analyzer_suite(Failures, {"examples": 2}), ids=str)
def test_it_keeps_the_contract(check: Check) -> None:
    check()


def test_every_labelled_attempt_is_counted_once() -> None:
    data = analyzed(run_of(list(CASES), passing=3)).data
    assert data["attempts"]["failed"] == len(CASES)
    assert data["attempts"]["ran"] == len(CASES) + 3
    assert sum(one["count"] for one in data["classes"]) == len(CASES)
    assert sum(one["share"] for one in data["classes"]) == pytest.approx(1)
    counted = {one["class"]: one["count"] for one in data["classes"]}
    for label in {case.label for case in CASES.values()}:
        assert counted[label] == sum(case.label is label for case in CASES.values())


def test_the_summary_names_what_went_wrong_most_and_where() -> None:
    names = ["refusal"] * 4 + ["no number"] * 2 + ["wrong"]
    categories = ["chemistry"] * 3 + ["law"] + ["sums"] * 2 + ["law"]
    said = analyzed(run_of(names, passing=3, categories=categories)).data["summary"]
    assert said.startswith("7 of 10 attempts got no point or failed. ")
    assert "Most often: refusal (4 of 7, 57%)" in said
    assert "most in category chemistry (3 of 4)" in said
    assert "Then format 2, wrong answer 1." in said


def test_the_summary_says_what_it_cannot_know() -> None:
    said = analyzed(run_of(["wrong", "refusal"])).data["summary"]
    assert "No class stands out" in said
    assert "2 left no trajectory, so loops and tools cannot be seen in them." in said
    assert (
        analyzed(FakeRun([])).data["summary"]
        == "No attempt has run, so there is nothing to analyze."
    )
    assert (
        analyzed(FakeRun([passed("a")])).data["summary"]
        == "All 1 attempts got a point; none failed."
    )


def test_signs_behind_a_cause_are_said() -> None:
    data = analyzed(run_of(["turns used up in a loop"] * 3)).data
    assert data["classes"][0]["signs"] == {"loop": 3}
    assert "3 of the turn limit also show loop." in data["summary"]


def test_scores_of_which_less_is_better_are_not_judged() -> None:
    metric = {"name": "passed", "kind": "scalar", "higher_is_better": False}
    document = {**DOCUMENT, "benchmark_info": {"primary": "passed", "metrics": [metric]}}
    records = [CASES["wrong"].record("a"), CASES["time out"].record("b")]
    data = analyzed(FakeRun(records, document)).data
    assert data["attempts"]["failed"] == 1
    assert (
        "Lower values of passed are better, so scored attempts are not judged." in data["summary"]
    )


@pytest.mark.parametrize("higher_is_better", [True, False])
def test_who_got_nothing_is_the_same_as_for_show_failed(higher_is_better: bool) -> None:
    metric = {**DOCUMENT["benchmark_info"]["metrics"][0], "higher_is_better": higher_is_better}
    document = {**DOCUMENT, "benchmark_info": {"id": "x", "primary": "passed", "metrics": [metric]}}
    rule, other = PointRule(document), PrimaryMetric(document)
    for record in [*sample_records(), passed("a"), *(c.record("c") for c in CASES.values())]:
        assert rule.got_nothing(record) is other.is_failed(record), record


def test_so_many_examples_of_each_class_as_asked_for() -> None:
    run = run_of(["wrong"] * 9)
    assert len(analyzed(run).data["classes"][0]["examples"]) == 3
    assert len(analyzed(run, examples=5).data["classes"][0]["examples"]) == 5
    assert analyzed(run, examples=0).data["classes"][0]["examples"] == []


def test_very_many_categories_are_counted_together() -> None:
    names = ["wrong"] * (MAX_CATEGORIES + 50)
    run = run_of(names, categories=[f"c{n}" for n in range(len(names))])
    data = analyzed(run).data
    assert len(data["by_category"]) == MAX_CATEGORIES + 1
    assert data["by_category"]["(other categories)"] == {"failed": 50, "ran": 50}


def test_the_page_holds_nothing_that_others_texts_can_break() -> None:
    hostile = "a|b`c<script>\x1b[31m*x*_y_[l](u)\u202e\n# no heading"
    record = replace(CASES["wrong"].record(hostile), category=hostile, details={"reason": hostile})
    other = replace(CASES["refusal"].record("o"), category="other")
    page = analyzed(FakeRun([record, other])).markdown
    assert all(char.isprintable() or char == "\n" for char in page)
    assert "<script>" not in page
    assert "\n# no heading" not in page
    (row,) = [line for line in page.split("\n") if "wrong answer (1)" in line]
    assert len(row.replace("\\|", "").split("|")) == 6


def test_documents_of_another_form_are_read_as_far_as_they_go() -> None:
    odd: list[Any] = [None, [], {"primary": 3, "metrics": "x"}, {"metrics": [None, 7]}]
    for info in odd:
        data = analyzed(FakeRun(sample_records(), {"benchmark_info": info})).data
        assert data["attempts"]["recorded"] == 16
