from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest

from steelyard.benchmarks.pack import timebox
from steelyard.benchmarks.pack.bounded.faults import PackFault
from steelyard.benchmarks.pack.bounded.json_checks import FORMATS, check_schema, is_plain_path
from steelyard.components.issues import IssueCode
from tests.benchmarks.pack.scored import fault_of, scored
from tests.benchmarks.scoring import opened, write_pack

EQUALS = '[{type: json_equals, expected: "{{ answer }}"}]'
TEN_MB = 10 * 1024 * 1024


@pytest.mark.parametrize(
    ("validators", "answer", "case", "value"),
    [
        (EQUALS, '{"a": 1}', {"answer": {"a": 1.0}}, 1),
        (EQUALS, '{"a": 1}', {"answer": '{"a": 1}'}, 1),
        (EQUALS, '"x"', {"answer": '"x"'}, 1),
        (EQUALS, "x", {"answer": '"x"'}, 0),
        (EQUALS, None, {"answer": 1}, 0),
        ('[{type: json_equals, expected: {n: "{{ n }}", t: "is {{ n }}"}}]',
         '{"n": 2, "t": "is 2"}', {"n": 2}, 1),
        ('[{type: json_equals, expected: null}]', "null", {}, 1),
        ('[{type: json_equals, expected: "[1, 2]", ignore_order: true}]', "[2, 1]", {}, 1),
        ('[{type: json_equals, expected: {a: 1}, find: last}]', 'It is {"a": 1}.', {}, 1),
        ('[{type: json_equals, expected: {a: 1}, find: block}]', '```json\n{"a": 1}\n```', {}, 1),
        ('[{type: json_equals, expected: {a: 1}}]', '```json\n{"a": 1}\n```', {}, 0),
        ('[{type: json_equals, expected: {a: 1, b: 2}, partial: true}]', '{"a": 1}', {}, 0.5),
        ('[{type: json_schema, schema: {type: object, required: [a]}}]', '{"a": 1}', {}, 1),
        ('[{type: json_schema, schema: {type: object, required: [a]}}]', "{}", {}, 0),
        ('[{type: json_schema, schema: "{{ s }}"}]', "3", {"s": {"type": "string"}}, 0),
        ('[{type: json_schema, schema: {pattern: "^[a-z]+$"}}]', '"abc"', {}, 1),
        ('[{type: json_schema, schema: {format: ipv4}}]', '"no"', {}, 1),
        ('[{type: json_schema, schema: {format: ipv4}, formats: true}]', '"no"', {}, 0),
        ('[{type: json_schema, schema: true}]', "3", {}, 1),
        ('[{type: json_schema, schema: false}]', "3", {}, 0),
        ('[{type: json_path, path: "$.a[*].b", equals: 1}]', '{"a": [{"b": 1}]}', {}, 1),
        ('[{type: json_path, path: "$.a[*].b", equals: 1}]', '{"a": [{"b": 1}, {"b": 2}]}', {}, 0),
        ('[{type: json_path, path: "$.a[*].b", equals: 1, match: any}]',
         '{"a": [{"b": 1}, {"b": 2}]}', {}, 1),
        ('[{type: json_path, path: "$.a", equals: null}]', '{"a": null}', {}, 1),
        ('[{type: json_path, path: "$.a", equals: null}]', "{}", {}, 0),
        ('[{type: json_path, path: "$.a", equals: "{{ n }}", tolerance: 0.1}]', '{"a": 2.05}',
         {"n": 2}, 1),
        ('[{type: json_path, path: "$.a", contains: x}]', '{"a": "axb"}', {}, 1),
        ('[{type: json_path, path: "$.a", contains: {b: 1}}]', '{"a": [{"b": 1.0}]}', {}, 1),
        ('[{type: json_path, path: "$.a", contains: 1}]', '{"a": 1}', {}, 0),
        ('[{type: json_path, path: "$..b", count: {min: 1, max: 2}}]', '{"b": {"b": 1}}', {}, 1),
        ('[{type: json_path, path: "$..b", count: {equals: 1}}]', '{"b": {"b": 1}}', {}, 0),
        ('[{type: json_path, path: "$.b[*]", count: {equals: "{{ n }}"}}]', '{"b": [1, 2]}',
         {"n": 2}, 1),
        ('[{type: json_path, path: "$.b[*]", count: {max: "{{ ns | length }}"}}]', '{"b": [1, 2]}',
         {"ns": [1]}, 0),
        ('[{type: json_path, path: "$.{{ k }}", exists: false}]', '{"b": 1}', {"k": "a"}, 1),
        ('[{type: json_path, path: "$.a", exists: true}]', '{"b": 1}', {}, 0),
        ('''[{type: json_path, path: "$[?@.n == 'x'].v", equals: 1}]''',
         '[{"n": "y", "v": 0}, {"n": "x", "v": 1}]', {}, 1),
    ],
)  # fmt: skip
def test_values(
    tmp_path: Path, validators: str, answer: str | None, case: dict[str, Any], value: float
) -> None:
    found, reason = scored(tmp_path, validators, answer, case=case)
    assert found == value
    assert bool(reason) == (value < 1)


def test_expected_values_and_schemas_may_lie_in_files(tmp_path: Path) -> None:
    (tmp_path / "pack/hidden").mkdir(parents=True)
    (tmp_path / "pack/hidden/a.json").write_text('{"a": [1]}')
    (tmp_path / "pack/hidden/schema.json").write_text('{"type": "object"}')
    both = (
        '[{type: json_equals, expected_file: "hidden/{{ id }}.json"},'
        " {type: json_schema, schema_file: hidden/schema.json}]"
    )
    assert scored(tmp_path, both, '{"a": [1]}') == (1, "")
    assert scored(tmp_path, both, "{}")[0] == 0.5


def test_a_file_that_changes_is_read_again_by_the_next_pack(tmp_path: Path) -> None:
    (tmp_path / "pack/hidden").mkdir(parents=True)
    file = tmp_path / "pack/hidden/e.json"
    for number in ("1", "2"):
        file.write_text(number)
        assert scored(tmp_path, "[{type: json_equals, expected_file: hidden/e.json}]", number)[0]


@pytest.mark.integration
@pytest.mark.parametrize(
    "validators",
    [
        "[{type: json_equals, expected: {a: 1}, find: %s}]",
        "[{type: json_schema, schema: {type: object, patternProperties: {a+: true}}, find: %s}]",
        '[{type: json_path, path: "$..a[?@.b]", exists: true, find: %s}]',
    ],
)
@pytest.mark.parametrize(
    ("find", "piece"), [("whole", "[],"), ("whole", '{"a":'), ("last", "["), ("last", '\\"')]
)
def test_ten_megabytes_are_a_zero_with_a_reason(
    tmp_path: Path, validators: str, find: str, piece: str
) -> None:
    answer = piece * (TEN_MB // len(piece))
    value, reason = scored(tmp_path, validators % find, answer)
    assert value == 0
    assert 0 < len(reason) < 500


@pytest.mark.integration
def test_more_values_than_a_schema_is_applied_to_are_a_zero_not_a_timeout(tmp_path: Path) -> None:
    both = (
        "[{type: json_schema, schema: {items: {minimum: 0}}},"
        " {type: json_path, path: '$[?@>0]', exists: true}]"
    )
    assert scored(tmp_path, both, "[" + "1," * 90_000 + "1]") == (1, "")
    value, reason = scored(tmp_path, both, "[" + "1," * 100_000 + "1]")
    assert (value, reason.count("more than 100000 values")) == (0, 2)


@pytest.mark.integration
def test_more_than_ten_megabytes_are_not_even_read(tmp_path: Path) -> None:
    value, reason = scored(tmp_path, EQUALS, " " * (TEN_MB + 1), case={"answer": 1})
    assert value == 0
    assert "too long" in reason


@pytest.mark.integration
@pytest.mark.parametrize(
    "validators",
    [
        '[{type: json_schema, schema: {pattern: "^(a+)+$"}}]',
        '[{type: json_schema, schema: {patternProperties: {"^(a+)+$": false}}}]',
    ],
)
def test_a_pattern_of_a_schema_that_never_ends_is_a_fault(
    tmp_path: Path, validators: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timebox, "CPU_S", 1)
    text = "a" * 60 + "b"
    answer = json.dumps({text: 1} if "Properties" in validators else text)
    fault = fault_of(tmp_path, validators, answer)
    assert fault.code is IssueCode.SCORER_TIMED_OUT
    assert "json_schema" in fault.message


@pytest.mark.integration
def test_a_pattern_in_a_filter_ends_in_bounded_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timebox, "CPU_S", 1)
    path = "$[?search(@, '(a|aa)+c')]"
    answer = json.dumps(["a" * 3000 + "b"])
    assert not is_plain_path(path)
    fault = fault_of(tmp_path, f'[{{type: json_path, path: "{path}", exists: true}}]', answer)
    assert fault.code is IssueCode.SCORER_TIMED_OUT


@pytest.mark.integration
def test_a_path_that_selects_without_end_is_a_zero(tmp_path: Path) -> None:
    answer = json.dumps([[[1] * 100] * 30] * 30)
    validators = '[{type: json_path, path: "$..*..*", count: {min: 1}}]'
    value, reason = scored(tmp_path, validators, answer)
    assert value == 0
    assert "more than 100000" in reason


@pytest.mark.parametrize(
    ("schema", "answer"),
    [
        ("{multipleOf: 0.01}", "1" + "0" * 307),
        ("{multipleOf: 1.0e-300}", "1" + "0" * 300),
        ("{multipleOf: 1.0e-300}", "1e300"),
        ("{minimum: 0.5, maximum: 1}", "1" + "0" * 307),
    ],
)
def test_numbers_at_the_bounds_of_floats_do_not_stop_the_scorer(
    tmp_path: Path, schema: str, answer: str
) -> None:
    value, reason = scored(tmp_path, f"[{{type: json_schema, schema: {schema}}}]", answer)
    assert (value < 1) == bool(reason)


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_that_is_offered_is_checked(tmp_path: Path, name: str) -> None:
    validators = f"[{{type: json_schema, schema: {{format: {name}}}, formats: true}}]"
    assert scored(tmp_path, validators, '"nothing of the kind"')[0] == 0


@pytest.mark.integration
def test_a_schema_that_only_refers_to_itself_is_a_fault(tmp_path: Path) -> None:
    fault = fault_of(tmp_path, '[{type: json_schema, schema: {$ref: "#"}}]', "1")
    assert "nests too deep" in fault.message


@pytest.mark.integration
def test_recursion_as_deep_as_values_may_be_is_checked(tmp_path: Path) -> None:
    schema = '{$defs: {n: {type: array, items: {$ref: "#/$defs/n"}}}, $ref: "#/$defs/n"}'
    validators = f"[{{type: json_schema, schema: {schema}}}]"
    assert scored(tmp_path, validators, "[" * 200 + "]" * 200) == (1, "")
    assert scored(tmp_path, validators, "[" * 199 + "1" + "]" * 199)[0] == 0
    deep = '[{type: json_equals, expected: "{{ e }}", ignore_order: true, subset: true}]'
    nested = "[" * 190 + "1" + "]" * 190
    assert scored(tmp_path, deep, nested, case={"e": nested}) == (1, "")


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "strin"}, "$.type"),
        ({"pattern": "("}, "$.pattern"),
        ({"patternProperties": {"(": True}}, "'('"),
        ({"$ref": "https://example.com/schema"}, "leads out of the schema"),
        ({"$ref": "file:///etc/passwd"}, "leads out of the schema"),
        ({"$ref": "other.json#/a"}, "leads out of the schema"),
        ({"$id": "https://a.example/", "$ref": "https://b.example/"}, "there is no"),
        ({"$ref": "#/$defs/none"}, "there is no '#/$defs/none'"),
        ({"properties": {"a": {"$dynamicRef": "#none"}}}, "there is no '#none'"),
        ({"$schema": "https://example.com/mine"}, "no draft"),
        ({"$schema": 7}, "$schema"),
        ([], "an array of 0"),
        ({"format": "nix"}, "not checked here"),
    ],
)
def test_malformed_schemas_are_named(schema: Any, said: str) -> None:
    with pytest.raises(PackFault) as caught:
        check_schema(schema, formats=True)
    assert said in str(caught.value)


def test_checking_a_schema_opens_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a connection was tried")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    with pytest.raises(PackFault):
        check_schema({"allOf": [{"$ref": "http://127.0.0.1:9/x"}]}, formats=False)
    check_schema({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}, False)
    check_schema({"const": {"$ref": "http://127.0.0.1:9/x"}}, formats=False)


def test_only_partial_credit_is_a_scalar(tmp_path: Path) -> None:
    validators = (
        "[{name: a, type: json_equals, expected: 1}, "
        "{name: b, type: json_equals, expected: 1, partial: true}]"
    )
    info = opened(write_pack(tmp_path, validators)).info()
    kinds = {spec.name: (spec.kind, spec.bounds, spec.on_failure) for spec in info.metrics}
    assert kinds["validator.a"] == ("binary", (0, 1), 0)
    assert kinds["validator.b"] == ("scalar", (0, 1), 0)


def test_any_change_of_a_validator_changes_the_evaluation(tmp_path: Path) -> None:
    contents = []
    for number, text in enumerate(
        ("expected: 1", "expected: 2", "expected: 1, tolerance: 0.1", "expected: 1, find: last")
    ):
        pack = write_pack(tmp_path / str(number), f"[{{type: json_equals, {text}}}]")
        benchmark = opened(pack)
        (task,) = benchmark.load_tasks()
        contents.append(json.dumps(benchmark.evaluation_content(task)))
        assert benchmark.generation_content(task) == opened(pack).generation_content(task)
    assert len(set(contents)) == 4
