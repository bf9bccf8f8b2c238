"""YAML and JSON are read into values that know their places."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.config.json_source import read_json
from steelyard.config.source import Malformed, Unreadable, path_text, plain, read_file, read_yaml

TEXT = """\
# a comment
task_concurrency: 16
defaults:
  model: {id: m, params: {stop: ["a", 'b']}}
requests:
  - name: one
"""


def test_every_value_and_key_has_its_line_and_column() -> None:
    root = read_yaml(TEXT, "f.yaml")
    stop = root.at(("defaults", "model", "params", "stop", 1))
    assert stop is not None
    assert (stop.origin.where.line, stop.origin.where.column) == (4, 39)
    assert stop.origin.where.field == "defaults.model.params.stop[1]"
    name = root.at(("requests", 0, "name"))
    assert name is not None
    assert name.origin.key == (6, 5)
    assert str(name.origin.where) == "f.yaml:6:11 requests[0].name"


def test_scalars_follow_the_core_schema_of_yaml_1_2() -> None:
    text = "[yes, on, 0o17, 0x1f, 010, 1e3, .5, 1_000, 2020-01-01, ~, '5', !!str 7, True, .inf]"
    assert plain(read_yaml(text, "f")) == [
        "yes", "on", 15, 31, 10, 1000.0, 0.5, "1_000", "2020-01-01", None, "5", "7", True,
        float("inf"),
    ]  # fmt: skip


def test_every_duplicate_key_is_reported_with_both_places() -> None:
    with pytest.raises(Malformed) as caught:
        read_yaml("a: 1\nb: {c: 1, c: 2}\na: 3\n", "f.yaml")
    assert [str(problem.where) for problem in caught.value.problems] == [
        "f.yaml:2:11 b.c",
        "f.yaml:3:1 a",
    ]
    assert "first on line 1" in caught.value.problems[1].message


def test_aliases_and_merges_are_expanded() -> None:
    root = read_yaml("a: &x {k: 1, j: 2}\nb: *x\nc:\n  <<: *x\n  k: 3\n", "f")
    assert plain(root) == {
        "a": {"k": 1, "j": 2},
        "b": {"k": 1, "j": 2},
        "c": {"k": 3, "j": 2},
    }


def test_an_alias_bomb_is_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    with pytest.raises(Malformed, match="aliases add more than"):
        read_yaml("\n".join(lines), "f")


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("a: [", "f:1:5", "not well-formed YAML"),
        ("a: b: c", "f:1:5", "not well-formed YAML"),
        ("---\na: 1\n---\nb: 2", "f:3:1", "single document"),
        ("a: &a [*a]", "f:1:4 a[0]", "contains itself"),
        ("a: !!python/object:os.system x", "f:1:4 a", "not allowed"),
        ("a: *b", "f:1:4", "not well-formed YAML"),
        ("? [a]\n: 1", "f:1:3", "a key must be text"),
        ("- " * 300 + "x", "f", "nested more than"),
        ("[" * 100_000, "f", "nested more than"),  # minutes, were all of it read ahead
        ("a: " + "[{" * 50_000, "f", "nested more than"),
        ("a: \x07", "f", "not well-formed YAML"),
    ],
)
def test_malformed_yaml_is_refused_with_its_place(text: str, place: str, said: str) -> None:
    with pytest.raises(Malformed) as caught:
        read_yaml(text, "f")
    (problem,) = caught.value.problems
    assert str(problem.where).startswith(place)
    assert said in problem.message


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ('{"a": 1,\n "a": 2}', "f:2:2 a", "written twice"),
        ("{a: 1}", "f:1:2", "double quotes"),
        ('{"a": 1', "f:1:8", "expected `,` or `}`"),
        ("[1,]", "f:1:4", "expected a value"),
        ('{"a" 1}', "f:1:6", "expected `:`"),
        ("NaN", "f:1:1", "expected a value"),
        ("", "f:1:1", "ends early"),
        ("[1] 2", "f:1:5", "more text"),
        ('["\n"]', "f:1:3", "control character"),
        ("[" * 500, "f:1:102", "nested more than"),
    ],
)
def test_malformed_json_is_refused_with_its_place(text: str, place: str, said: str) -> None:
    with pytest.raises(Malformed) as caught:
        read_json(text, "f")
    (problem,) = caught.value.problems
    assert str(problem.where).startswith(place)
    assert said in problem.message


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False, width=32)
    .filter(lambda x: abs(x) != float("inf")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)  # fmt: skip


@given(_JSON)
def test_json_is_read_as_the_standard_library_reads_it(value) -> None:
    import json

    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False, indent=1)):
        assert plain(read_json(text, "f")) == value


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused_and_nothing_else(text: str) -> None:
    for read in (read_yaml, read_json):
        with suppress(Malformed):
            read(text, "f")


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes(b"a: 1\nb: \xe9\n")
    for name, said in [("none.yaml", "no such file"), ("latin.yaml", "not UTF-8"), (".", "folder")]:
        with pytest.raises(Unreadable, match=said):
            read_file(tmp_path / name)


def test_a_json_file_is_read_by_its_suffix(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    path.write_text('\ufeff{"a": [1]}', encoding="utf-8")
    assert plain(read_file(path)) == {"a": [1]}


def test_paths_are_written_as_people_do() -> None:
    assert path_text(("requests", 0, "model", "id")) == "requests[0].model.id"
    assert path_text(("prices", "a.b c")) == 'prices["a.b c"]'
