"""What is wrong with a validator is said at its place, before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.benchmarks.pack.schema import PackFile
from steelyard.benchmarks.pack.schema_validators import VALIDATOR_MODELS
from steelyard.benchmarks.pack.validators.build import MAKERS
from tests.benchmarks.scoring import problems_of, write_pack

OF_THE_CONTRACT = {
    "exact", "one_of", "contains", "regex", "number", "choice", "json_equals", "json_schema",
    "json_path", "fuzzy", "token_f1", "file_exists", "file_content", "file_tree", "command",
    "code", "python", "tool_calls", "judge",
}  # fmt: skip
MINE = {
    "json_equals": "expected: 1",
    "json_schema": "schema: {}",
    "json_path": "path: $.a, exists: true",
    "fuzzy": "expected: a",
    "token_f1": "expected: a",
    "file_exists": "path: a",
    "file_content": "path: a, equals: b",
    "file_tree": "listing: [a]",
    "python": "run: 'a.py:f'",
}


def test_every_type_of_the_contract_has_a_schema_and_a_maker() -> None:
    assert set(VALIDATOR_MODELS) == set(MAKERS) == OF_THE_CONTRACT
    text = str(PackFile.model_json_schema())
    for model in VALIDATOR_MODELS.values():
        assert model.__name__ in text


@pytest.mark.parametrize("kind", MINE)
def test_unknown_fields_and_wrong_types_are_named(tmp_path: Path, kind: str) -> None:
    problems = problems_of(
        write_pack(tmp_path, f"[{{type: {kind}, {MINE[kind]}, wieght: 1, gate: perhaps}}]")
    )
    assert any("wieght" in problem and "weight" in problem for problem in problems)
    assert any("gate" in problem for problem in problems)
    assert all("pack.yaml:7:" in problem or "a.py" in problem for problem in problems)


@pytest.mark.parametrize("kind", MINE)
def test_a_misspelt_type_has_its_nearest_name(tmp_path: Path, kind: str) -> None:
    (problem,) = problems_of(write_pack(tmp_path, f"[{{type: {kind}s, {MINE[kind]}}}]"))
    assert f"did you mean {kind}?" in problem


@pytest.mark.parametrize(
    ("validator", "said"),
    [
        ("json_equals, find: last", "give one of expected and expected_file"),
        ("json_equals, expected: 1, expected_file: a.json", "give one of expected and"),
        ("json_equals, expected: '{oops'", "not JSON"),
        ("json_equals, expected: {a: '{{ b'}", "malformed template"),
        ("json_equals, expected: {a: '{{ none }}'}", "'none', which no case has"),
        ("json_equals, expected: 1, find: first", "find"),
        ("json_equals, expected: 1, tolerance: -1", "tolerance"),
        ("json_equals, expected: [1], partial: true, ignore_order: true", "leave out"),
        ("json_equals, expected_file: none.json", "there is no 'none.json'"),
        ("json_equals, expected_file: ../a.json", "leads out"),
        ("json_equals, expected: .nan", "too large for any float"),
        ("json_schema", "give one of schema and schema_file"),
        ("json_schema, schema: {type: strin}", "$.type"),
        ("json_schema, schema: {$ref: 'http://x.example/'}", "leads out of the schema"),
        ("json_schema, schema: text", "not JSON"),
        ("json_schema, schema_file: none.json", "there is no"),
        ("json_schema, schema: '{{ none }}'", "'none', which no case has"),
        ("json_path, path: $.a", "give at least one of equals, contains, count and exists"),
        ("json_path, path: 'a.b', exists: true", "malformed path"),
        ("json_path, path: '$[?nope(@)]', exists: true", "malformed path"),
        ("json_path, path: $.a, count: {}", "at least one of min, max and equals"),
        ("json_path, path: $.a, count: {min: 2, max: 1}", "min is more than max"),
        ("json_path, path: $.a, count: {min: -1}", "min"),
        ("json_path, path: $.a, count: {min: many}", "'many' is no whole number"),
        ("json_path, path: $.a, count: {min: '{{ q }}'}", "'one?' is no whole number"),
        ("fuzzy", "expected"),
        ("fuzzy, expected: []", "expected"),
        ("fuzzy, expected: a, algorithm: jaro", "algorithm"),
        ("fuzzy, expected: a, threshold: 90", "threshold"),
        ("token_f1, expected: a, threshold: 0", "threshold"),
        ("token_f1, expected: a, words: english", "words"),
        ("file_exists", "give one of path and glob"),
        ("file_exists, path: a, glob: b", "give one of path and glob"),
        ("file_exists, path: /etc/passwd", "leads out"),
        ("file_exists, glob: '../*'", "leads out"),
        ("file_exists, path: a, kind: folder, min_bytes: 1", "a folder has no size"),
        ("file_content, path: a", "give one of equals"),
        ("file_content, path: a, equals: b, contains: c", "give one of equals"),
        ("file_content, path: a, regex: '('", "malformed regular expression"),
        ("file_content, path: a, sha256: abc", "64 hexadecimal digits"),
        ("file_content, path: a, contains: ''", "contains the empty text"),
        ("file_content, path: a, json: '{'", "not JSON"),
        ("file_content, path: a, same_as: none", "there is no 'none'"),
        ("file_content, path: ../a, equals: b", "leads out"),
        ("file_content, path: a, equals: b, max_bytes: 99999999999", "max_bytes"),
        ("file_tree", "give one of expected and listing"),
        ("file_tree, expected: none", "there is no 'none'"),
        ("file_tree, listing: [/a]", "leads out"),
        ("file_tree, listing: [a], modes: true", "a listing has no modes"),
        ("file_tree, path: ../x, listing: [a]", "leads out"),
        ("python", "run"),
        ("python, run: 'a.py:f', timeout_seconds: 0", "timeout_seconds"),
        ("python, run: 'a.py:f', files: [../x]", "leads out"),
    ],
)
def test_what_cannot_work_is_refused(tmp_path: Path, validator: str, said: str) -> None:
    problems = problems_of(write_pack(tmp_path, f"[{{type: {validator}}}]"))
    assert any(said in problem for problem in problems), problems
    assert all("pack.yaml:7:" in problem or "cases.jsonl:1" in problem for problem in problems)
    assert len(problems) <= 2


def test_a_problem_of_one_case_is_said_at_that_case(tmp_path: Path) -> None:
    cases = [
        {"id": "a", "q": "?", "e": "[1]", "p": "$.a", "s": {"type": "object"}},
        {"id": "b", "q": "?", "e": "[1", "p": "$.", "s": {"type": "objekt"}},
    ]
    validators = (
        '[{type: json_equals, expected: "{{ e }}"}, {type: json_schema, schema: "{{ s }}"},'
        ' {type: json_path, path: "{{ p }}", exists: true}]'
    )
    problems = problems_of(write_pack(tmp_path, validators, cases))
    assert len(problems) == 3
    assert all("cases.jsonl:2" in problem and "case 'b'" in problem for problem in problems)
