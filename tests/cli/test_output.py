"""Tables are whole, aligned, and cannot paint the terminal."""

from __future__ import annotations

import pytest

from steelyard.cli.output import pairs_lines, table_lines, uses_colour


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    lines = table_lines(("name", "n"), [("a", 1), ("long name", 1000), ("x", None)])
    assert lines == [
        "name          n",
        "a             1",
        "long name  1000",
        "x             –",
    ]


def test_wide_content_is_never_cut() -> None:
    text = "x" * 500
    assert text in table_lines(("a", "b"), [(text, "end")])[1]


def test_wide_characters_keep_columns_aligned() -> None:
    lines = table_lines(("a", "b"), [("模型", "x"), ("m", "y")])
    assert lines[1:] == ["模型  x", "m     y"]


def test_control_characters_are_shown_not_obeyed() -> None:
    (_, line) = table_lines(("a",), [("red\x1b[31m\nnext\u202e",)])
    assert line == "red\\x1b[31m\\nnext\\u202e"


def test_pairs_line_up() -> None:
    assert pairs_lines({"a": 1, "long": "x"}) == ["  a     1", "  long  x"]


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_colour_is_not_used_where_it_is_not_wanted(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert uses_colour()
    monkeypatch.setenv(name, value)
    assert not uses_colour()
