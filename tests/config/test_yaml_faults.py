"""Broken YAML is shown with a caret, the likely cause is named, and no secret is quoted."""

from __future__ import annotations

import pytest

from steelyard.config.source import Malformed, read_yaml


def fault(text: str) -> str:
    with pytest.raises(Malformed) as caught:
        read_yaml(text, "f.yaml")
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "place", "hint"),
    [
        ("a:\n  b: 1\n   c: 2\n", "3:5", "the line above is indented differently"),
        ("a: 1\n  b: 2\n", "2:4", "0 spaces there, 2 spaces here"),
        ("a:\n  b: 1\n c: 1\n", "3:2", "2 spaces there, 1 space here"),
        ("a:\n\tb: 1\n", "2:1", "use spaces"),
        ("a: [1, 2\nb: 3\n", "1:4", "close what opens there: [ … ]"),
        ("a: {b: 1\n", "1:4", "close what opens there: { … }"),
        ('a: "x\nb: 2\n', "1:4", "close the quote"),
        ("a: 'x\n", "1:4", "close the quote"),
        ("a:1\nb: 2\n", "2:2", "a space after the colon on line 1: `a: …`"),
        ("a: b: c\n", "1:5", "put the value in quotes"),
        ("a: @x\n", "1:4", "put the value in quotes"),
        ("a: *x\n", "1:4", "put the value in quotes"),
        ('a: "\\q"\n', "1:6", "use single quotes"),
        ("foo\nbar: 1\n", "2:4", "line 1 has no colon"),
        ("a: b\nfoo\nc: d\n", "2:1", "write `key: value`"),
    ],
)
def test_the_line_is_shown_with_a_caret_and_the_likely_cause(
    text: str, place: str, hint: str
) -> None:
    said = fault(text)
    head, quoted, caret, remedy = said.split("\n")
    assert head.startswith(f"f.yaml:{place}: not well-formed YAML: ")
    line, column = (int(part) for part in place.split(":"))
    source = text.split("\n")[line - 1].replace("\t", " ")
    assert quoted == f"  {line} | {source}"
    assert caret == f"    | {' ' * (column - 1)}^"
    assert hint in remedy


@pytest.mark.parametrize(
    "text",
    [
        "api_key: hunter2x: y\n",
        "model: {api_key: hunter2x, b\nc: d\n",
        "extra_headers:\n  X-Org: hunter2x: y\n",
        "extra_headers:\n\n  X-Org: a\n  X-Other: hunter2x: y\n",
        "url: https://me:hunter2x@host/: x: y\n",
        'api_key: "abc\n  hunter2x \\q"\n',
        'api_key: "hunter2x\nb: 1\n',
        "password:\n  hunter2x: a: b\n",
        "id: Bearer hunter2x: y\n",
        "id: sk-hunter2x: y\n",
        "id: aK3jd92kslhunter2x: y\n",
        "api_key: hunter2x\n  b: c\n",
    ],
)
def test_what_may_be_a_secret_is_not_quoted(text: str) -> None:
    assert "hunter2x" not in fault(text)


def test_a_long_line_is_cut() -> None:
    assert len(fault(f"a: b: {'x ' * 5000}\n")) < 400
