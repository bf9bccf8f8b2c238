"""A manifest says all that is wrong with it, each at its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from steelyard.config.errors import BadInput, Problem
from steelyard.config.source import FieldPath, path_text
from steelyard.evalset.manifest import Manifest, read_manifest
from tests.config.test_schema_fields import walk, wrong_for, yaml_with

GOOD = """
schema: evalset/v1
name: n
packs: [p]
agents: [{deployment: a}]
"""
FIELDS = [
    (tuple("schema" if step == "schema_" else step for step in path), wrong_for(annotation))
    for path, annotation in walk(Manifest)
]


def problems(tmp_path: Path, text: str, name: str = "set.yaml") -> list[Problem]:
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(BadInput) as caught:
        read_manifest(file, shown=name)
    assert caught.value.exit_status == 2
    return list(caught.value.problems)


def the_problem(tmp_path: Path, text: str) -> Problem:
    (problem,) = problems(tmp_path, text)
    return problem


@pytest.mark.parametrize(("path", "wrong"), FIELDS, ids=lambda item: str(item))
def test_a_wrong_type_is_refused_with_place_and_path(
    tmp_path: Path, path: FieldPath, wrong: str
) -> None:
    text, line, column = yaml_with(path, wrong)
    found = problems(tmp_path, text)
    (problem,) = [one for one in found if (one.where.line, one.where.column) == (line, column)]
    assert problem.where.file == "set.yaml"
    assert problem.where.field == path_text(path)
    assert problem.message in ("found 7", "found a list")
    assert problem.remedy is not None


@pytest.mark.parametrize(
    "path", [(), ("agents", 0), ("seeds",), ("limits",), ("gates",), ("execution",),
             ("execution", "attempts"), ("runtime",), ("output",)],
)  # fmt: skip
def test_an_unknown_key_is_refused_with_place_and_what_is_allowed(
    tmp_path: Path, path: FieldPath
) -> None:
    text, line, _ = yaml_with((*path, "zzz_unknown"), "1")
    (problem,) = [
        one
        for one in problems(tmp_path, text)
        if one.where.line == line and "unknown" in one.message
    ]
    assert problem.where.field == path_text((*path, "zzz_unknown"))
    assert problem.where.column == text.splitlines()[-1].index("zzz") + 1
    assert problem.remedy is not None
    assert problem.remedy.startswith("allowed: ")


@pytest.mark.parametrize(
    ("more", "field", "said"),
    [
        ("repeats: 2.9", "repeats", "found 2.9"),
        ('repeats: "3"', "repeats", "found the text '3'"),
        ("repeats: true", "repeats", "found true"),
        ("repeats: 0", "repeats", "found 0"),
        ("repeats: -1", "repeats", "found -1"),
        ("repeats: .nan", "repeats", "found nan"),
        ("repeats: .inf", "repeats", "found inf"),
        ("limits: {budget_usd: .nan}", "limits.budget_usd", "found nan"),
        ("limits: {budget_usd: -.inf}", "limits.budget_usd", "found -inf"),
        ("limits: {budget_usd: -1}", "limits.budget_usd", "found -1"),
        ("limits: {budget_usd: true}", "limits.budget_usd", "found true"),
        ("limits: {max_concurrent_runs: 0}", "limits.max_concurrent_runs", "found 0"),
        ("gates: {min_score: .nan}", "gates.min_score", "found nan"),
        ("case_fanout: yes", "case_fanout", "found the text 'yes'"),
        ("case_fanout: 1", "case_fanout", "found 1"),
        ("models: [m, ' ']", "models[1]", "blank text"),
        ("models: ['']", "models[0]", "blank text"),
        ("models: [null]", "models[0]", "found nothing"),
        ("baseline: '\t'", "baseline", "blank text"),
        ("include: ['']", "include[0]", "blank text"),
        ("scanners: [reward-hackin]", "scanners[0]", "unknown scanner 'reward-hackin'"),
        ("scanners: [tool-misuse, tool-misuse]", "scanners", "named twice"),
        ("seeds: {seeds: [1]}", "seeds.seeds", "seeds.strategy is auto"),
        ("seeds: {strategy: explicit}", "seeds", "seeds.seeds is missing"),
        ("seeds: {strategy: explicit, seeds: []}", "seeds.seeds", "seeds.seeds is missing"),
        ("seeds: {strategy: explicit, seeds: [0]}", "seeds.seeds[0]", "found 0"),
        ("seeds: {strategy: explicit, seeds: [1, 2]}", "seeds.seeds", "2 seeds for 1 repeats"),
        (f"seeds: {{strategy: explicit, seeds: [{2**63}]}}", "seeds.seeds[0]", f"found {2**63}"),
        ("repeats: 2\nseeds: {strategy: explicit, seeds: [4, 4]}", "seeds.seeds", "2 times"),
        ("seeds: {strategy: random}", "seeds.strategy", "found the text 'random'"),
    ],
)  # fmt: skip
def test_a_value_that_is_not_meant_is_refused(
    tmp_path: Path, more: str, field: str, said: str
) -> None:
    problem = the_problem(tmp_path, GOOD + more)
    assert said in problem.message
    assert (problem.where.field or "").startswith(field.partition("[")[0].partition(".")[0])
    if "missing" not in said:
        assert problem.where.field == field
    assert problem.where.line is not None
    assert problem.remedy


def test_a_misspelt_scanner_is_offered_the_nearest(tmp_path: Path) -> None:
    problem = the_problem(tmp_path, GOOD + "scanners: [reward-hackin]")
    assert "did you mean reward-hacking?" in str(problem.remedy)


@pytest.mark.parametrize("schema", ["evalset/v2", "evalset", "EVALSET/V1", "evalset/v1 ", "1"])
def test_the_schema_must_be_exactly_the_one(tmp_path: Path, schema: str) -> None:
    text = GOOD.replace("schema: evalset/v1", f'schema: "{schema}"')
    problem = the_problem(tmp_path, text)
    assert problem.where.field == "schema"
    assert "evalset/v1" in str(problem.remedy)


@pytest.mark.parametrize("missing", ["schema", "name", "packs", "agents"])
def test_a_required_field_that_is_missing_is_named(tmp_path: Path, missing: str) -> None:
    lines = [line for line in GOOD.splitlines() if not line.startswith(missing)]
    problem = the_problem(tmp_path, "\n".join(lines))
    assert problem.message == f"the required field {missing} is missing"


@pytest.mark.parametrize("field", ["packs", "agents"])
def test_nothing_to_run_is_refused(tmp_path: Path, field: str) -> None:
    lines = [f"{field}: []" if line.startswith(field) else line for line in GOOD.splitlines()]
    problem = the_problem(tmp_path, "\n".join(lines))
    assert problem.where.field == field
    assert problem.remedy == "expected a list of at least 1"


def test_a_key_that_is_written_twice_is_refused(tmp_path: Path) -> None:
    problem = the_problem(tmp_path, GOOD + "name: other")
    assert "'name' is written twice (first on line 3)" in problem.message
    assert problem.where.line == 6


def test_a_key_of_json_that_is_written_twice_is_refused(tmp_path: Path) -> None:
    text = '{"schema": "evalset/v1", "name": "n", "packs": ["p"],\n "agents": [], "name": "m"}'
    found = problems(tmp_path, text, "set.json")
    assert "'name' is written twice" in found[0].message


def test_several_documents_are_refused(tmp_path: Path) -> None:
    problem = the_problem(tmp_path, GOOD + "---\nname: second\n")
    assert "document" in problem.message


@pytest.mark.parametrize("text", ["", "# nothing\n", "null", "[]", "evalset/v1", "7"])
def test_what_is_no_mapping_is_refused(tmp_path: Path, text: str) -> None:
    assert the_problem(tmp_path, text).message == "the manifest must be a mapping"


def test_a_file_that_is_not_there_or_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="there is no such file"):
        read_manifest(tmp_path / "absent.yaml")
    (tmp_path / "raw.yaml").write_bytes(b"name: \xff\xfe")
    with pytest.raises(BadInput, match="not UTF-8"):
        read_manifest(tmp_path / "raw.yaml")


def test_everything_that_is_wrong_is_said_at_once_in_order(tmp_path: Path) -> None:
    text = "schema: evalset/v2\nname: ' '\npacks: [1]\nagents: [{deploymnt: a}]\nrepeats: 0\nx: 1"
    found = problems(tmp_path, text)
    assert [problem.where.line for problem in found] == sorted(
        problem.where.line or 0 for problem in found
    )
    fields = {problem.where.field for problem in found}
    assert {"schema", "name", "packs[0]", "agents[0].deploymnt", "repeats", "x"} <= fields


@pytest.mark.parametrize("value", [None, "absent"])
def test_repeats_and_models_may_be_null_or_absent(tmp_path: Path, value: Any) -> None:
    document: dict[str, Any] = {
        "schema": "evalset/v1", "name": "n", "packs": ["p"], "agents": [{"deployment": "a"}],
    }  # fmt: skip
    if value is None:
        document |= {"repeats": None, "models": None}
    file = tmp_path / "set.json"
    file.write_text(json.dumps(document))
    manifest = read_manifest(file).manifest
    assert (manifest.repeat_count, manifest.models) == (1, None)


@pytest.mark.parametrize("name", ["../../etc", "/etc", "a/b", "a\\b", "..", "?!"])
def test_a_name_that_is_no_folder_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "set.json"
    document = {"schema": "evalset/v1", "packs": ["p"], "agents": [{"deployment": "a"}]}
    path.write_text(json.dumps({**document, "name": name}))
    with pytest.raises(BadInput, match="cannot be a folder's name"):
        read_manifest(path)
    path.write_text(json.dumps({**document, "name": "nightly (v1.2): größer"}))
    assert read_manifest(path).manifest.name == "nightly (v1.2): größer"
