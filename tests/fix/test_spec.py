"""Specs: the seed's own parse unchanged; every bound, default and rule over fields."""

from __future__ import annotations

from typing import Any

import pytest

from steelyard.config.errors import BadInput
from steelyard.fix.schema.reading import InvalidFixFile
from steelyard.fix.schema.spec import Spec, checked_spec, read_spec
from tests.fix.documents import FIXTURES, GONE, node, spec, spec_document


def faults(**changes: Any) -> str:
    with pytest.raises(InvalidFixFile) as caught:
        checked_spec(node(spec_document(**changes), "spec.json"))
    return str(caught.value)


def test_the_seeds_spec_parses_unchanged() -> None:
    found, _ = read_spec(FIXTURES / "seed-spec.json")
    assert found.metrics["latency_ms"].direction == "min"
    assert [constraint.bound for constraint in found.constraints] == [0.95, 1.05]
    assert found.seeds == [11, 22, 33]
    assert found.benchmark.command is not None
    assert found.benchmark.command.argv == ["python3", "benchmark.py"]


def test_the_seeds_fragments_parse_unchanged() -> None:
    found = spec(task_metrics={"retrieval": {"direction": "max", "unit": "fraction"}})
    assert found.task_metrics["retrieval"].unit == "fraction"


def test_the_least_spec_has_the_seeds_defaults() -> None:
    found = checked_spec(
        node(
            {
                "editable_paths": ["app.py"],
                "evaluation_paths": ["benchmark.py"],
                "benchmark": {"argv": ["true"]},
                "metrics": {"m": {"direction": "min", "unit": "s"}},
                "constraints": [{"metric": "m", "op": "lte", "bound": 3}],
                "checks": [{"id": "one", "argv": ["true"]}],
                "overlays": [{"source": ".steelyard/new_test.py", "path": "tests/new_test.py"}],
            }
        )
    )
    assert found.goal is None
    assert found.issue_ids == []
    assert found.benchmark.command is not None
    assert found.benchmark.command.cwd == "."
    assert found.repetitions is None
    assert found.seeds is None
    assert found.constraints[0].reference == "absolute"
    assert found.checks[0].baseline_expected == "pass"
    assert found.overlays[0].deliver
    assert found.rigor == "standard"
    assert found.confirmation.repetitions == 10
    assert found.confirmation.alpha == 0.05
    assert found.confirmation.min_effect == {}


@pytest.mark.parametrize("field", ["editable_paths", "evaluation_paths", "benchmark", "metrics"])
def test_what_is_needed_is_asked_for_by_name(field: str) -> None:
    assert f"the required field {field} is missing" in faults(**{field: GONE})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("editable_paths", []),
        ("evaluation_paths", []),
        ("metrics", {}),
        ("metrics", {"m": {"direction": "up", "unit": "s"}}),
        ("metrics", {"m": {"direction": "min"}}),
        ("metrics", {"m": {"direction": "min", "unit": " "}}),
        ("metrics", {"": {"direction": "min", "unit": "s"}}),
        ("repetitions", 0),
        ("repetitions", 1001),
        ("repetitions", 3.0),
        ("repetitions", True),
        ("seeds", []),
        ("seeds", [1, 2, 2.5]),
        ("seeds", [1, 2, 2**63]),
        ("goal", ""),
        ("goal", "  "),
        ("issue_ids", [""]),
        ("benchmark", {"argv": []}),
        ("benchmark", {"argv": "python3 benchmark.py"}),
        ("benchmark", {"argv": ["x"], "cwd": "/tmp"}),
        ("benchmark", {"argv": ["x"], "evaluation": "benchmark.py"}),
        ("benchmark", {}),
        ("subject", {"argv": []}),
        ("constraints", [{"metric": "quality", "op": "gt", "bound": 1}]),
        ("constraints", [{"metric": "quality", "op": "gte", "bound": "much"}]),
        ("constraints", [{"metric": "quality", "op": "gte", "bound": 1, "reference": "mean"}]),
        ("checks", [{"id": "a b", "argv": ["x"]}]),
        ("checks", [{"id": "a", "argv": ["x"], "baseline_expected": "error"}]),
        ("overlays", [{"source": "a"}]),
        ("overlays", [{"source": "a", "path": "b", "deliver": "yes"}]),
        ("inputs", [{"source": "a", "path": "b", "deliver": True}]),
        ("rigor", "low"),
        ("confirmation", {"repetitions": 5}),
        ("confirmation", {"alpha": 0}),
        ("confirmation", {"alpha": 0.5}),
        ("confirmation", {"min_effect": {"quality": -1}}),
    ],
)
def test_what_is_out_of_bounds_is_refused_at_its_place(field: str, value: Any) -> None:
    said = faults(**{field: value})
    assert field in said
    assert "spec.json:" in said


def test_all_faults_come_at_once_with_line_column_and_the_nearest_name() -> None:
    document = spec_document(repetitions=0, reptitions=3, rigor="hihg")
    with pytest.raises(InvalidFixFile) as caught:
        checked_spec(node(document, "spec.json"))
    said = str(caught.value)
    assert len(caught.value.problems) == 3
    assert all(problem.where.line and problem.where.column for problem in caught.value.problems)
    assert all(problem.remedy for problem in caught.value.problems)
    assert "did you mean repetitions?" in said
    assert "did you mean high?" in said


def test_rules_over_fields_come_at_once_too() -> None:
    with pytest.raises(InvalidFixFile) as caught:
        checked_spec(
            node(
                spec_document(
                    seeds=[1, 1],
                    constraints=[{"metric": "latency", "op": "lte", "bound": 1}],
                    editable_paths=["app.py", "tests/test_app.py"],
                ),
                "spec.json",
            )
        )
    assert len(caught.value.problems) == 4
    said = str(caught.value)
    assert "2 seeds for 3 repetitions (from the spec)" in said
    assert "the seed 1 stands there twice" in said
    assert "there is no metric 'latency'" in said
    assert "did you mean latency_ms?" in said
    assert "'tests/test_app.py' meets the evaluation path 'tests'" in said
    assert all(problem.remedy for problem in caught.value.problems)


@pytest.mark.parametrize(
    ("editable", "evaluation"),
    [
        ("app", "app"),
        ("app", "app/bench.py"),
        ("app/core/x.py", "app"),
        ("App", "app"),
        ("app/", "./app"),
        (".", "tests"),
        ("caf\u00e9", "cafe\u0301"),
        ("ﬁle", "file"),
    ],
)
def test_editable_paths_meet_evaluation_paths_in_any_spelling(
    editable: str, evaluation: str
) -> None:
    said = faults(editable_paths=[editable], evaluation_paths=[evaluation])
    assert "meets the evaluation path" in said


def test_names_that_only_begin_alike_do_not_meet() -> None:
    found = spec(editable_paths=["app", "tests_of_app"], evaluation_paths=["tests", "app_bench"])
    assert found.editable_paths == ["app", "tests_of_app"]


@pytest.mark.parametrize("kind", ["overlays", "inputs"])
def test_editable_paths_meet_neither_overlays_nor_inputs(kind: str) -> None:
    said = faults(**{kind: [{"source": ".steelyard/x", "path": "APP.py"}]})
    assert "meets 'APP.py'" in said


@pytest.mark.parametrize(
    ("path", "word"),
    [
        ("/etc/passwd", "absolute"),
        ("C:/x", "absolute"),
        ("../x", "`..`"),
        ("a/../b", "`..`"),
        ("a\\b", "backslash"),
        (".git/config", "Git's own folder"),
        (".GIT", "Git's own folder"),
        ("a/.git/hooks", "Git's own folder"),
        (".steelyard/x", "no trial has"),
        ("x/.Agentagon/y", "no trial has"),
        ("a\x00b", "NUL"),
        ("", "blank"),
    ],
)
@pytest.mark.parametrize("field", ["editable_paths", "evaluation_paths"])
def test_paths_that_leave_the_tree_or_enter_ours_are_refused(
    field: str, path: str, word: str
) -> None:
    assert word in faults(**{field: [path]})


def test_a_destination_is_a_file() -> None:
    for path in (".", "data/"):
        said = faults(inputs=[{"source": "x", "path": path}])
        assert "is a folder" in said


def test_a_source_may_lie_in_our_folder_but_not_outside_the_checkout() -> None:
    found = spec(inputs=[{"source": ".agentagon/traces.json", "path": "inputs/traces.json"}])
    assert found.inputs[0].source == ".agentagon/traces.json"
    assert "`..`" in faults(inputs=[{"source": "../secret", "path": "inputs/x"}])


def test_two_files_cannot_have_one_place() -> None:
    said = faults(
        overlays=[{"source": "a", "path": "extra/x.py"}],
        inputs=[{"source": "b", "path": "Extra/X.py"}, {"source": "c", "path": "extra/x.py/y"}],
    )
    assert "goes to the same place" in said
    assert "one lies inside the other" in said


@pytest.mark.parametrize(
    "check_id",
    ["benchmark", "Benchmark", "setup", "setup-1", "subject", "steelyard-x", "Agentagon"],
)
def test_a_checks_id_that_shadows_ours_is_refused(check_id: str) -> None:
    assert "shadows" in faults(checks=[{"id": check_id, "argv": ["x"]}])


def test_a_metric_that_shadows_ours_is_refused() -> None:
    metric = {"direction": "min", "unit": "s"}
    assert "shadows" in faults(metrics={"steelyard.elapsed": metric})
    assert "shadows" in faults(task_metrics={"agentagon": metric})


def test_ids_that_are_there_twice_are_refused() -> None:
    assert "taken by another check" in faults(
        checks=[{"id": "one", "argv": ["x"]}, {"id": "ONE", "argv": ["x"]}]
    )
    assert "named twice" in faults(issue_ids=["i-1", "i-1"])
    assert "named twice" in faults(evaluation_paths=["tests", "./tests"])
    metric = {"direction": "min", "unit": "s"}
    said = faults(metrics={"m": metric, "M": metric}, constraints=[])
    assert "differs from another name only in case" in said


def test_bounds_that_no_value_meets_are_refused() -> None:
    said = faults(
        constraints=[
            {"metric": "quality", "op": "gte", "bound": 0.9},
            {"metric": "quality", "op": "lte", "bound": 0.8},
        ]
    )
    assert "no value of quality is at least 0.9 and at most 0.8" in said
    assert "a ratio to the baseline of 0" in faults(
        constraints=[{"metric": "quality", "op": "gte", "bound": 0, "reference": "baseline_ratio"}]
    )


def test_an_evaluation_must_be_protected_and_takes_the_engines_seeds() -> None:
    said = faults(benchmark={"evaluation": "eval.yaml"}, seeds=[-1, 2, 3])
    assert "is not among the evaluation paths" in said
    assert "an evaluation cannot run with the seed -1" in said
    found = spec(benchmark={"evaluation": "tests/eval.yaml"})
    assert found.benchmark.command is None


def test_min_effect_names_declared_metrics() -> None:
    said = faults(confirmation={"min_effect": {"latency": 2}})
    assert "did you mean latency_ms?" in said
    assert spec(confirmation={"min_effect": {"latency_ms": 2}}).confirmation.repetitions == 10


def test_a_spec_that_is_no_mapping_is_said_to_be_none() -> None:
    with pytest.raises(InvalidFixFile, match="the spec must be a mapping"):
        checked_spec(node([]))


def test_a_spec_may_be_yaml(tmp_path: Any) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(
        "editable_paths: [app.py]\nevaluation_paths: [bench.py]\n"
        "benchmark: {argv: [python3, bench.py]}\nmetrics: {m: {direction: min, unit: s}}\n"
    )
    found, _ = read_spec(path)
    assert isinstance(found, Spec)
    path.write_text("metrics: {m: 1}\nmetrics: {m: 2}\n")
    with pytest.raises(BadInput, match="written twice"):
        read_spec(path)


def test_what_a_check_demands_of_pytest_wants_pytest() -> None:
    check = {
        "id": "a",
        "argv": ["python3", "-B", "-m", "pytest", "tests"],
        "expected_count": 3,
        "expected_tests": ["tests/test_a.py::test_x"],
        "pytest_config": "tests/pytest.ini",
    }
    assert spec(checks=[check]).checks[0].expected_count == 3
    said = faults(checks=[{**check, "argv": ["make", "check"]}])
    assert said.count("holds for `python -m pytest`") == 3
    assert "expected_count" in faults(checks=[{**check, "expected_count": 0}])
    twice = {**check, "expected_tests": ["a", "a"]}
    assert "named twice" in faults(checks=[twice])
