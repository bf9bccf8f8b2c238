"""`evalset compare`: what is printed, what it exits with, what it refuses and names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from steelyard.evalset.comparison_text import MAX_COMMENT_CHARS
from steelyard.evalset.set_document import SetCell
from steelyard.results.records import AttemptRecord
from tests.evalset.sets import (
    CREATED_AT,
    LATENCY,
    PASSED,
    a_record,
    digest,
    fatal,
    verdicts,
    write_set,
)
from tests.results.test_junit import parsed

Run = Callable[..., Any]
GOLDEN = Path(__file__).parent / "golden" / "evalset"
OLD, NEW = "20261130-080000", "20261201-080000"
CASES = [f"case-{n:02}" for n in range(12)]


def steady(passing: int) -> dict[str, list[Any]]:
    """The first cases pass, in both repeats."""
    return {case: [number < passing] * 2 for number, case in enumerate(CASES)}


def two_sets(
    project: Path,
    was: Mapping[str, Mapping[str, Sequence[Any]]],
    now: Mapping[str, Mapping[str, Sequence[Any]]],
    **changes: Any,
) -> tuple[str, str]:
    write_set(project / "results", verdicts(was), agents=tuple(was), repeats=2, set_id=OLD)
    write_set(
        project / "results", verdicts(now), agents=tuple(now), repeats=2, set_id=NEW, **changes
    )
    return OLD, NEW


@pytest.fixture
def changed(project: Path) -> tuple[str, str]:
    """One agent lost eight cases, one won nine, one is as it was, one is gone, one is new."""
    was = {"worse": steady(11), "better": steady(2), "same": steady(6), "gone": steady(3)}
    now = {"worse": steady(3), "better": steady(11), "same": steady(6), "added": steady(3)}
    return two_sets(
        project, was, now, versions={"refunds": 2}, agent_digests={"better": digest("other")}
    )


def test_a_comparison_gives_the_golden_files(
    steelyard: Run, changed: tuple[str, str], project: Path
) -> None:
    ran = steelyard("evalset", "compare", *changed, "--gate", "--max-regression", "0.1",
                    "--markdown", "comment.md", "--limit", "6")  # fmt: skip
    assert ran.status == 3
    assert ran.out == (GOLDEN / "compare.table").read_text()
    assert (project / "comment.md").read_text() == (GOLDEN / "compare.markdown").read_text()
    assert "the pack refunds was version 1, is 2" in ran.err


def test_the_document_says_what_became_of_each_combination(
    steelyard: Run, changed: tuple[str, str]
) -> None:
    document = steelyard("evalset", "compare", *changed, "--json").json
    assert document["schema"] == "evalset-compare/1"
    verdicts_ = {one["agent"]: one["verdict"] for one in document["combinations"]}
    assert verdicts_ == {"worse": "regressed", "better": "improved", "same": "unchanged"}
    assert [one["agent"] for one in document["added"]] == ["added"]
    assert [one["agent"] for one in document["removed"]] == ["gone"]
    assert document["packs"] == [{"pack": "refunds", "was": 1, "now": 2}]
    assert document["deployments"] == ["better"]
    worse = next(one for one in document["combinations"] if one["agent"] == "worse")
    assert [each["case"] for each in worse["changes"]] == CASES[3:11]
    assert {each["gain"] for each in worse["changes"]} == {-1.0}


def test_without_a_gate_a_regression_is_only_told(steelyard: Run, changed: tuple[str, str]) -> None:
    assert steelyard("evalset", "compare", *changed).status == 0


def test_a_gate_holds_where_nothing_got_worse(steelyard: Run, project: Path) -> None:
    sets = two_sets(project, {"a": steady(3)}, {"a": steady(11)})
    ran = steelyard("evalset", "compare", *sets, "--gate", "--max-regression", "0")
    assert ran.status == 0
    assert "NOT MET" not in ran.out


def test_a_small_loss_is_no_regression_but_passes_no_limit(steelyard: Run, project: Path) -> None:
    sets = two_sets(project, {"a": steady(6)}, {"a": steady(5)})
    assert steelyard("evalset", "compare", *sets, "--gate").status == 0
    ran = steelyard("evalset", "compare", *sets, "--gate", "--max-regression", "0.05", "--json")
    assert ran.status == 3
    assert [gate["is_met"] for gate in ran.json["gates"]] == [True, True, False]
    assert ran.json["gates"][2]["found"] == pytest.approx(-1 / 12)
    allowed = ("evalset", "compare", *sets, "--gate", "--max-regression", "0.1")
    assert steelyard(*allowed).status == 0
    assert steelyard(*allowed, "--confident").status == 3  # the interval reaches below


def test_a_set_that_broke_off_passes_no_gate_unless_it_may_be_partial(
    steelyard: Run, project: Path
) -> None:
    whole = steady(6)
    half = {case: [*values[:1], None] for case, values in whole.items()}
    broken = {"outcome": "budget_exceeded", "cases": len(CASES)}
    sets = two_sets(project, {"a": whole}, {"a": half}, **broken)
    ran = steelyard("evalset", "compare", *sets, "--gate", "--json")
    assert ran.status == 3
    assert [(gate["gate"], gate["is_met"]) for gate in ran.json["gates"]] == [
        ("--gate", True), ("--gate coverage", False),
    ]  # fmt: skip
    assert ran.json["gates"][1]["said"].startswith("12 of 24 attempts count; `--allow-partial`")
    assert ran.json["counted"]["this"] == {"counted": 12, "planned": 24}
    allowed = steelyard("evalset", "compare", *sets, "--gate", "--allow-partial")
    assert allowed.status == 0
    assert "12 of 24 attempts count: allowed" in allowed.out


def test_a_base_that_broke_off_is_said_and_holds_nobody_up(steelyard: Run, project: Path) -> None:
    whole = steady(6)
    half = {case: [*values[:1], None] for case, values in whole.items()}
    write_set(project / "results", verdicts({"a": half}), agents=("a",), repeats=2, set_id=OLD,
              cases=len(CASES))  # fmt: skip
    write_set(project / "results", verdicts({"a": whole}), agents=("a",), repeats=2, set_id=NEW)
    ran = steelyard("evalset", "compare", OLD, NEW, "--gate", "--json")
    assert ran.status == 0
    assert ran.json["gates"][1]["said"] == "24 of 24 attempts count; 12 of 24 in the base"


def test_gates_of_a_set_with_missing_attempts_say_that_it_is_not_official(
    steelyard: Run, project: Path
) -> None:
    half = {case: [*values[:1], None] for case, values in steady(11).items()}
    two_sets(
        project, {"a": steady(11)}, {"a": half}, cases=len(CASES),
        manifest={"baseline": OLD, "gates": {"min_score": 0.5, "max_regression": 0.1}},
    )  # fmt: skip
    ran = steelyard("evalset", "report", NEW, "--json")
    assert ran.status == 0
    for gate in ran.json["gates"]:
        assert gate["said"].endswith("; NOT official: 12 of 24 attempts count")


def test_cases_of_another_content_are_named_and_left_out_unless_told(
    steelyard: Run, project: Path
) -> None:
    def records(content: str) -> Callable[[SetCell], Iterable[AttemptRecord]]:
        return lambda cell: [
            a_record(case, number > 1 or content == "old",
                     content=digest(content if number < 2 else "same", case))
            for number, case in enumerate(CASES)
        ]  # fmt: skip

    for content, set_id in (("old", OLD), ("new", NEW)):
        write_set(project / "results", records(content), agents=("a",), set_id=set_id)
    ran = steelyard("evalset", "compare", OLD, NEW, "--json")
    one = ran.json["combinations"][0]
    assert one["other_content"] == CASES[:2]
    assert (one["wins"], one["ties"], one["losses"]) == (0, 10, 0)
    assert any("other content, left out" in warning for warning in ran.json["warnings"])
    told = steelyard("evalset", "compare", OLD, NEW, "--json", "--other-content").json
    assert (told["combinations"][0]["losses"], told["combinations"][0]["ties"]) == (2, 10)


def test_scoring_that_changed_under_one_version_is_another_content(
    steelyard: Run, project: Path
) -> None:
    for scoring, set_id in (("old", OLD), ("new", NEW)):
        write_set(
            project / "results",
            lambda cell, how=scoring: [a_record("c", True, evaluation=digest(how))],  # type: ignore[misc]
            agents=("a",), set_id=set_id,
        )  # fmt: skip
    ran = steelyard("evalset", "compare", OLD, NEW, "--gate", "--json")
    assert ran.json["combinations"][0]["other_content"] == ["c"]
    assert ran.json["combinations"][0]["verdict"] == "untested"
    assert ran.status == 3  # what was not tested holds no gate


def test_holes_are_warned_of_and_pair_only_what_both_have(steelyard: Run, project: Path) -> None:
    was = {"a": {"x": [True, True], "y": [False, False], "z": [True, True]}}
    now: dict[str, Any] = {"a": {"x": ["fatal", True], "y": [True, None], "new": [True, True]}}
    sets = two_sets(project, was, now)
    ran = steelyard("evalset", "compare", *sets, "--json")
    one = ran.json["combinations"][0]
    assert (one["wins"], one["ties"], one["losses"]) == (1, 1, 0)
    assert (one["added_cases"], one["removed_cases"]) == (["new"], ["z"])
    text = " ".join(ran.json["warnings"])
    assert "the coverage differs: 6 of 6 attempts count in the base, 4 of 6 in this set" in text
    assert "cases only in this set: 1 (new)" in text


def test_other_repeats_are_named_and_left_out(steelyard: Run, project: Path) -> None:
    values = {"a": {case: [True, False, True] for case in CASES}}
    write_set(project / "results", verdicts(values), agents=("a",), repeats=2, set_id=OLD)
    write_set(project / "results", verdicts(values), agents=("a",), repeats=3, set_id=NEW)
    document = steelyard("evalset", "compare", OLD, NEW, "--json").json
    assert document["combinations"][0]["added_repeats"] == [3]
    assert any("repeats only in this set: 3" in warning for warning in document["warnings"])


def test_a_metric_of_another_kind_is_named_not_compared(steelyard: Run, project: Path) -> None:
    for metric, set_id in ((PASSED, OLD), (LATENCY, NEW)):
        write_set(
            project / "results",
            lambda cell, name=metric["name"]: [a_record("c", 1.0, metric=name)],  # type: ignore[misc]
            agents=("a",), metrics=(metric,), set_id=set_id,
        )  # fmt: skip
    one = steelyard("evalset", "compare", OLD, NEW, "--json").json["combinations"][0]
    assert one["note"] == "the metric was 'passed', is 'latency'"


def test_less_may_be_better(steelyard: Run, project: Path) -> None:
    for seconds, set_id in ((9.0, OLD), (4.0, NEW)):
        write_set(
            project / "results",
            lambda cell, each=seconds: [  # type: ignore[misc]
                a_record(case, each + n / 10, metric="latency") for n, case in enumerate(CASES)
            ],
            agents=("a",), metrics=(LATENCY,), set_id=set_id,
        )  # fmt: skip
    one = steelyard("evalset", "compare", OLD, NEW, "--json").json["combinations"][0]
    assert (one["verdict"], one["wins"]) == ("improved", 12)
    assert one["difference"]["value"] == pytest.approx(5.0)


def test_junit_has_a_failure_for_each_case_that_is_worse(
    steelyard: Run, changed: tuple[str, str], project: Path
) -> None:
    steelyard("evalset", "compare", *changed, "--gate", "--junit", "compare.xml")
    suites = parsed([(project / "compare.xml").read_text()])
    assert [(s.get("name"), s.get("failures")) for s in suites] == [
        ("refunds / worse", "8"), ("refunds / better", "0"), ("refunds / same", "0"),
        ("gates", "1"),
    ]  # fmt: skip
    assert {suite.get("timestamp") for suite in suites[:3]} == {CREATED_AT[:19]}


def test_a_worse_case_of_an_unchanged_combination_fails_no_suite(
    steelyard: Run, project: Path
) -> None:
    sets = two_sets(project, {"a": steady(6)}, {"a": steady(5)})
    steelyard("evalset", "compare", *sets, "--junit", "compare.xml")
    text = (project / "compare.xml").read_text()
    (suite,) = parsed([text])
    assert (suite.get("failures"), suite.get("skipped")) == ("0", "1")
    assert "was 1, is 0, and the combination is unchanged" in text


def test_a_comment_stays_short_however_much_changed(steelyard: Run, project: Path) -> None:
    agents = tuple(f"agent-{'x' * 60}-{n:03}" for n in range(80))
    was = {agent: {case: [True, True] for case in CASES} for agent in agents}
    now: dict[str, Any] = {agent: {c: [False, "fatal"] for c in CASES} for agent in agents}
    sets = two_sets(project, was, now)
    ran = steelyard("evalset", "compare", *sets, "--gate", "--markdown", "comment.md")
    assert ran.status == 3
    comment = (project / "comment.md").read_text()
    assert len(comment) <= MAX_COMMENT_CHARS
    assert "| regressed | 80 |" in comment
    assert "NOT MET" in comment


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((OLD, OLD), "cannot be its own baseline"),
        ((OLD, "nothing"), "no eval set 'nothing'"),
        ((OLD, NEW, "--max-regression", "0.1"), "a limit without a gate"),
        ((OLD, NEW, "--gate", "--confident"), "no limit to be confident about"),
        ((OLD, NEW, "--metric", "passd"), "did you mean 'passed'?"),
        ((OLD, NEW, "--markdown", "no/where.md"), "its folder is not there"),
    ],
)
def test_what_cannot_be_is_refused(
    arguments: tuple[str, ...], said: str, steelyard: Run, changed: tuple[str, str]
) -> None:
    ran = steelyard("evalset", "compare", *arguments)
    assert ran.status == 2
    assert said in ran.err


# -- baseline and gates --------------------------------------------------------------------------


def gated(project: Path, **gates: float) -> str:
    was, now = {"a": steady(11), "b": steady(2)}, {"a": steady(3), "b": steady(2)}
    two_sets(project, was, now, manifest={"baseline": OLD, "gates": gates})
    return NEW


def test_a_report_holds_a_set_against_its_baseline(steelyard: Run, project: Path) -> None:
    ran = steelyard("evalset", "report", gated(project, max_regression=0.2), "--json")
    assert ran.status == 3
    assert ran.json["baseline"]["base"]["set_id"] == OLD
    gate = ran.json["gates"][0]
    assert (gate["gate"], gate["request"], gate["is_met"]) == (
        "gates.max_regression", "refunds / a", False,
    )  # fmt: skip
    assert gate["found"] == pytest.approx(-8 / 12)


def test_a_chosen_metric_is_held_against_the_baselines_own(steelyard: Run, project: Path) -> None:
    for seconds, set_id in ((4.0, OLD), (9.0, NEW)):
        write_set(
            project / "results",
            lambda cell, each=seconds: [  # type: ignore[misc]
                a_record(case, True, metrics={"passed": True, "latency": each + n / 10})
                for n, case in enumerate(CASES)
            ],
            agents=("a",), metrics=(PASSED, LATENCY), set_id=set_id,
            manifest={"baseline": OLD, "gates": {"max_regression": 1}},
        )  # fmt: skip
    assert steelyard("evalset", "report", NEW).status == 0
    ran = steelyard("evalset", "report", NEW, "--metric", "latency", "--json")
    assert ran.status == 3
    assert ran.json["baseline"]["combinations"][0]["verdict"] == "regressed"
    assert ran.json["gates"][0]["found"] == pytest.approx(-5.0)


def test_gates_are_met_or_say_by_how_much_not(steelyard: Run, project: Path) -> None:
    name = gated(project, min_score=0.2, max_cost_usd=0.05)
    ran = steelyard("evalset", "report", name, "--json")
    assert [(gate["request"], gate["is_met"]) for gate in ran.json["gates"]] == [
        ("a", True), ("b", False), (None, True),
    ]  # fmt: skip
    assert ran.json["gates"][1]["said"] == "passed avg@2 is 0.1667, 0.03333 below 0.2"
    assert ran.json["gates"][2]["said"] == "$0.0480 of $0.05 spent"
    confident = steelyard("evalset", "report", name, "--json", "--confident").json["gates"]
    assert [gate["is_met"] for gate in confident] == [False, False, True]


def test_a_cost_that_is_not_known_passes_no_gate(steelyard: Run, project: Path) -> None:
    write_set(
        project / "results", lambda cell: [a_record("c", True, cost_usd=None)], agents=("a",),
        manifest={"gates": {"max_cost_usd": 5}},
    )  # fmt: skip
    ran = steelyard("evalset", "report", "latest", "--json")
    assert ran.status == 3
    assert "what a part cost is not known" in ran.json["gates"][0]["said"]


def test_a_regression_limit_without_a_baseline_is_not_met(steelyard: Run, project: Path) -> None:
    write_set(
        project / "results", lambda cell: [a_record("c", True)], agents=("a",),
        manifest={"gates": {"max_regression": 1}},
    )  # fmt: skip
    ran = steelyard("evalset", "report", "latest")
    assert ran.status == 3
    assert "there is no baseline to compare with" in ran.out


def test_a_pending_set_has_a_report(steelyard: Run, project: Path) -> None:
    write_set(project / "results", lambda cell: None, outcome=None)
    ran = steelyard("evalset", "report", "latest", "--json")
    assert ran.status == 0
    assert ran.json["state"] == "interrupted"
    assert ran.json["whole"]["note"] == "nothing has begun"
    assert ran.json["whole"]["attempts"]["planned"] is None
    for form in ("table", "html", "csv", "junit", "markdown"):
        assert steelyard("evalset", "report", "latest", "--format", form).status == 0


def test_a_fatal_only_cell_has_no_score_and_says_so(steelyard: Run, project: Path) -> None:
    write_set(project / "results", lambda cell: [fatal("c"), fatal("d")], agents=("a",))
    document = steelyard("evalset", "report", "latest", "--json").json
    score = document["whole"]["scores"][0]
    assert (score["estimate"]["value"], score["bounds"]) == (None, [0.0, 1.0])
    assert score["estimate"]["note"] == "nothing was scored"
