"""Values of TOML know their lines."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.benchmarks.harbor.toml_source import MAX_BYTES, read_toml
from steelyard.config.errors import BadInput
from steelyard.config.source import Malformed, Unreadable, plain, walk

DOCUMENT = '''schema = "1"  # a comment = 1
a.b."c d" = 'x'
text = """
[not.a.table]
key = "no"""""
[table]
list = [
  1, # [one]
  { source = "x", "quoted key" = ["y", 'z # z'] },
]
"e\\u00e9" = true
[[many]]
name = "first"
[many.below]
n = 1
[[many]]
name = "second"
[[many.more]]
deep = 2
[many.below]
n = 2
'''


def read(tmp_path: Path, text: str) -> object:
    path = tmp_path / "x.toml"
    path.write_text(text, "utf-8")
    return read_toml(path, shown="x.toml")


def test_every_key_is_found_where_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text(DOCUMENT)
    root = read_toml(path, shown="x.toml")
    assert plain(root) == tomllib.loads(DOCUMENT)
    lines = {
        path: node.origin.key_where.line
        for path, node in walk(root)
        if path and isinstance(path[-1], str)
    }
    assert lines == {
        ("schema",): 1,
        ("a",): 2,
        ("a", "b"): 2,
        ("a", "b", "c d"): 2,
        ("text",): 3,
        ("table",): 6,
        ("table", "list"): 7,
        ("table", "list", 1, "source"): 9,
        ("table", "list", 1, "quoted key"): 9,
        ("table", "eé"): 11,
        ("many",): 12,
        ("many", 0, "name"): 13,
        ("many", 0, "below"): 14,
        ("many", 0, "below", "n"): 15,
        ("many", 1, "name"): 17,
        ("many", 1, "more"): 18,
        ("many", 1, "more", 0, "deep"): 19,
        ("many", 1, "below"): 20,
        ("many", 1, "below", "n"): 21,
    }


def test_a_fault_of_the_syntax_names_its_line_and_column(tmp_path: Path) -> None:
    with pytest.raises(Malformed) as caught:
        read(tmp_path, "a = 1\nb = \n")
    (problem,) = caught.value.problems
    assert (problem.where.file, problem.where.line, problem.where.column) == ("x.toml", 2, 5)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"a = '\xff'\n", "not UTF-8"),
        (b"#" * (MAX_BYTES + 1), "larger than"),
        (b"a = " + b"[" * 5000 + b"]" * 5000, "nested too deep"),
        (b"a = " + b"[" * 80 + b"]" * 80, "nested too deep"),
    ],
)
def test_what_is_no_small_text_is_refused(tmp_path: Path, content: bytes, what: str) -> None:
    path = tmp_path / "x.toml"
    path.write_bytes(content)
    with pytest.raises(BadInput, match=what):
        read_toml(path, shown="x.toml")


def test_a_file_that_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="cannot be read: No such file"):
        read_toml(tmp_path / "none.toml", shown="none.toml")


SCALARS = st.one_of(
    st.integers(-9, 9).map(str),
    st.sampled_from(["true", "1.5", "1979-05-27T07:32:00Z", '"a#b"', "'c]d'", '"\\""', '""', "''"]),
    st.sampled_from(['"""x\n"y" """', "'''\n'z''''", '"""\\\n  q"""']),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
        st.lists(inner, max_size=3).map(lambda items: "[\n # c ]\n" + ",\n".join(items) + "\n]"),
        st.lists(inner.filter(lambda v: "\n" not in v), max_size=3).map(
            lambda items: "{" + ", ".join(f"k{n} = {v}" for n, v in enumerate(items)) + "}"
        ),
    ),
    max_leaves=8,
)


@settings(deadline=None)
@given(values=st.lists(VALUES, min_size=1, max_size=6))
def test_whatever_the_values_are_each_key_is_found_at_its_line(
    tmp_path_factory: pytest.TempPathFactory, values: list[str]
) -> None:
    lines, expected = [], {}
    for number, value in enumerate(values):
        expected[f"key{number}"] = len("\n".join(lines).split("\n")) + (1 if lines else 0)
        lines.append(f"key{number} = {value} # end")
    text = "\n".join(lines) + "\n"
    path = tmp_path_factory.mktemp("toml") / "x.toml"
    path.write_text(text)
    root = read_toml(path, shown="x.toml")
    assert plain(root) == tomllib.loads(text)
    assert {name: root.value[name].origin.key_where.line for name in expected} == expected
