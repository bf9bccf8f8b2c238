"""`compare`: what is printed, what exit status it has, what it writes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.results.comparing import FATAL, NO, YES, a_document, a_side, scalar_metric
from tests.results.workload import FixedClock

Run = Callable[..., Any]
GOLDEN = Path(__file__).parent / "golden" / "compare"


@pytest.fixture
def roots(project: Path) -> list[str]:
    """Two runs of twelve tasks; the second is better at five and worse at one."""
    names = [f"task-{number:02}" for number in range(12)]
    categories = {name: "even" if number % 2 == 0 else "odd" for number, name in enumerate(names)}
    values = ([YES] * 4 + [NO] * 8, [NO] + [YES] * 8 + [NO] * 3)
    return [
        str(
            a_side(
                Path("results"), run_id, {n: [v] for n, v in zip(names, each, strict=True)},
                categories=categories, agent_s=seconds, cost_usd=cost,
            )
        )
        for run_id, each, seconds, cost in (
            ("a", values[0], 1.0, 0.001), ("b", values[1], 1.5, 0.0005),
        )
    ]  # fmt: skip


def several(project: Path) -> list[str]:
    """Three runs, one of them with another k, holes and tasks of its own."""
    first = {f"t{number}": [number % 2 == 0, NO] for number in range(8)}
    second = {f"t{number}": [YES, number % 3 == 0] for number in range(8)}
    third = {f"t{number}": [YES, YES] for number in range(6)} | {"t6": [FATAL, FATAL], "t9": [NO]}
    sides = (("base", first), ("better", second), ("broken", third))
    return [str(a_side(Path("results"), name, each, tasks=8)) for name, each in sides]


@pytest.mark.parametrize("form", ["table", "markdown"])
def test_a_comparison_gives_the_golden_file(form: str, steelyard: Run, roots: list[str]) -> None:
    ran = steelyard("compare", *roots, "--format", form, "--limit", "3", "--gate", "accuracy=0.2")
    assert ran.status == 0
    assert ran.out == (GOLDEN / f"two.{form}").read_text()


def test_several_comparisons_give_the_golden_file(steelyard: Run, project: Path) -> None:
    ran = steelyard("compare", *several(project))
    assert ran.status == 0
    assert ran.out == (GOLDEN / "several.table").read_text()
    assert "not official: 13 of 16" in ran.err


def test_lower_is_better_is_said(steelyard: Run, project: Path) -> None:
    document = a_document(metrics=[scalar_metric()])
    roots = [
        str(a_side(Path("results"), name, {"x": [1.0], "y": [2.0], "z": [value]},
                   metric="latency", document=document))
        for name, value in (("a", 3.0), ("b", 2.0))
    ]  # fmt: skip
    out = steelyard("compare", *roots).out
    assert out.startswith("latency avg@1 (lower is better)\n")
    assert steelyard("compare", *roots, "--gate", "latency=0.3").status == 0
    assert steelyard("compare", *roots, "--gate", "latency=0.4").status == 3


def test_json_is_one_document(steelyard: Run, roots: list[str]) -> None:
    ran = steelyard("compare", *roots, "--json", "--gate", "accuracy", "--confident")
    document = ran.json
    assert document["schema"] == "compare/1"
    (found,) = document["comparisons"]
    assert found["difference"]["value"] == pytest.approx(4 / 12)
    assert (found["wins"], found["ties"], found["losses"]) == (5, 6, 1)
    assert found["test"]["name"] == "mcnemar"
    assert len(found["tasks"]) == 12
    (gate,) = document["gates"]
    assert (gate["is_met"], gate["is_confident"]) == (False, True)
    assert ran.status == 3


def test_a_missed_gate_is_exit_3_and_says_by_how_much(steelyard: Run, roots: list[str]) -> None:
    ran = steelyard("compare", *roots, "--gate", "accuracy=0.5")
    assert ran.status == 3
    assert "NOT MET  the gain in accuracy avg@1 is 0.3333, 0.1667 below 0.5" in ran.out
    assert steelyard("compare", *roots[::-1], "--gate", "accuracy").status == 3
    assert steelyard("compare", *roots[::-1], "--gate", "accuracy=-0.4").status == 0


def test_folders_of_runs_stand_for_their_newest(steelyard: Run, project: Path) -> None:
    clock = FixedClock()
    for folder, value in (("old", NO), ("new", YES)):
        for run_id in ("z", "a"):
            a_side(Path(folder), run_id, {"x": [value], "y": [NO]}, clock=clock)
    ran = steelyard("compare", "old/toy", "new/toy", "--json")
    assert ran.json["base"]["run"] == "old/toy/a"
    assert ran.json["comparisons"][0]["run"] == "new/toy/a"
    assert ran.err.count("the newest of 2 runs") == 2


def test_reports_are_written_beside(steelyard: Run, roots: list[str], project: Path) -> None:
    ran = steelyard("compare", *roots, "--junit", "c.xml", "--markdown", "c.md")
    assert ran.status == 0
    suite = ElementTree.parse(project / "c.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("failures")) == ("12", "1")
    assert (project / "c.md").read_text() == steelyard(
        "compare", *roots, "--format", "markdown"
    ).out
    assert steelyard("compare", *roots, "--format", "junit").out == (project / "c.xml").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--gate", "acuracy=1"], "did you mean 'accuracy'?"),
        (["--gate", "accuracy=much"], "METRIC=MIN_DIFFERENCE, with a number"),
        (["--metric", "acuracy"], "did you mean 'accuracy'?"),
        (["--confident"], "there is no gate to be confident about"),
        (["--junit", "nowhere/c.xml"], "its folder is not there"),
        (["--junit", "."], "is a folder"),
        (["--junit", "x", "--markdown", "x"], "is named twice"),
        (["--format", "html"], "--format"),
        (["results/toy/a"], "is the same run as"),
        (["results/none"], "no run 'results/none'"),
    ],
)
def test_what_cannot_be_meant_is_exit_2(
    arguments: list[str], said: str, steelyard: Run, roots: list[str]
) -> None:
    ran = steelyard("compare", *roots, *arguments)
    assert ran.status == 2
    assert said in ran.err
    assert "Traceback" not in ran.err
    as_json = steelyard("compare", *roots, *arguments, "--json")
    assert (as_json.status, as_json.json["error"]["exit_status"]) == (2, 2)


def test_one_run_alone_is_exit_2(steelyard: Run, roots: list[str]) -> None:
    assert steelyard("compare", roots[0]).status == 2


def test_other_tasks_are_exit_2_and_common_only_is_the_remedy(
    steelyard: Run, project: Path
) -> None:
    figures = {"x": [YES], "y": [NO], "z": [YES]}
    first = a_side(Path("results"), "a", figures)
    second = a_side(Path("results"), "b", figures, contents={"y": "f" * 32})
    ran = steelyard("compare", str(first), str(second))
    assert ran.status == 2
    assert "the content of 1 of 3 tasks differs ('y')" in ran.err
    assert "--common-only" in ran.err
    common = steelyard("compare", str(first), str(second), "--common-only")
    assert common.status == 0
    assert "not the same in both, left out: 1 task (y)" in common.out


def test_strangers_ids_paint_no_terminal(steelyard: Run, project: Path) -> None:
    hostile = "x\x1b[2J\u202e"
    roots = [
        str(a_side(Path("results"), name, {hostile: [value], "y": [YES], "z": [YES]}))
        for name, value in (("a", YES), ("b", NO))
    ]
    for form in ("table", "markdown", "junit"):
        out = steelyard("compare", *roots, "--format", form).out
        assert "\x1b" not in out
        assert "\u202e" not in out


def test_a_report_that_cannot_be_written_is_said(
    steelyard: Run, roots: list[str], project: Path
) -> None:
    ran = steelyard("compare", *roots, "--markdown", "/dev/full", "--json", "--gate", "accuracy=1")
    assert ran.status == 1
    assert "No space left" in ran.err
    assert ran.json["schema"] == "compare/1"  # still one document


def test_a_run_may_be_named_by_its_id(steelyard: Run, project: Path) -> None:
    figures = {"x": [YES], "y": [NO]}
    a_side(Path("results"), "first", figures)
    a_side(Path("results/group"), "second", figures)
    ran = steelyard("compare", "first", "second", "--json")
    assert ran.json["base"]["run"] == "results/toy/first"
    assert ran.json["comparisons"][0]["run"] == "results/group/toy/second"
    a_side(Path("results/group"), "first", figures)
    twice = steelyard("compare", "first", "second")
    assert (twice.status, "2 requests have a run 'first'" in twice.err) == (2, True)
    assert "no run 'third'" in steelyard("compare", "third", "second").err
    (project / "steelyard.yaml").write_text("runtime: {results_dir: results/group}\n")
    assert steelyard("compare", "first", "results/toy/first").status == 0


def test_gates_of_several_comparisons_name_their_run(steelyard: Run, project: Path) -> None:
    ran = steelyard("compare", *several(project), "--gate", "accuracy=0.5")
    assert ran.status == 3
    assert "--gate accuracy=0.5 better  NOT MET" in ran.out
    assert "--gate accuracy=0.5 broken  met" in ran.out
