from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.benchmarks.pack.bounded import json_text
from steelyard.benchmarks.pack.bounded.json_text import MAX_DEPTH, NotJson, found_json, read_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**300), 10**300)
    | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": 1, "b": {"c": 1, "c": 2}}', "'c' stands twice"),
        ("NaN", "NaN is not JSON"),
        ("[-Infinity]", "-Infinity is not JSON"),
        ("1e999", "too large for any float"),
        ("9" * 5000, "too many digits"),
        ("9" * 400, "too large for any float"),
        ("-" + "9" * 400, "too large for any float"),
        ("[" * 100_000, f"deeper than {MAX_DEPTH}"),
        ("[" * 300 + "]" * 300, f"deeper than {MAX_DEPTH}"),
        ('{"a":' * 100_000, f"deeper than {MAX_DEPTH}"),
        ("{'a': 1}", "line 1, column 2"),
        ("", "line 1, column 1"),
        ("1 2", "Extra data"),
        ("\ud800", "not JSON"),
    ],
)
def test_what_could_mean_two_things_or_has_no_end_is_refused(text: str, said: str) -> None:
    with pytest.raises(NotJson) as caught:
        read_json(text)
    assert said in str(caught.value)


def test_more_values_than_are_ever_compared_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_text, "MAX_VALUES", 10)
    assert read_json("[1,2,3,4,5,6,7,8,9]") == list(range(1, 10))
    with pytest.raises(NotJson, match="more than 10 values"):
        read_json("[1,2,3,4,5,6,7,8,9,10]")


def test_what_is_odd_but_allowed_is_read() -> None:
    assert read_json('\n "\\ud800" \u00a0') == "\ud800"
    assert read_json("[" * MAX_DEPTH + "]" * MAX_DEPTH) is not None
    assert read_json(str(10**300)) == 10**300


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('It is {"a": [1, {"b": 2}]}.', {"a": [1, {"b": 2}]}),
        ('First {"a": 1}, no: {"a": 2}', {"a": 2}),
        ('He said "look: {"a": 1}', {"a": 1}),
        ('[note: {"a": 1}]', {"a": 1}),
        ('{"a": "}{]["} and a lone { or ]', {"a": "}{]["}),
        ('see [1 and {"a": 1}', {"a": 1}),
        ("42", 42),
        ('```json\n{"a": 1}\n```\nDone :-]', {"a": 1}),
    ],
)
def test_the_last_value_of_prose_is_found(text: str, value: Any) -> None:
    assert found_json(text, "last") == value


@pytest.mark.parametrize("text", ["", "no value", "{", "}{", "[x]", '{"a": 1', "42 apples"])
def test_prose_without_a_value_says_so(text: str) -> None:
    with pytest.raises(NotJson):
        found_json(text, "last")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("x\n```json\n1\n```\ny\n```json\n2\n```\n", 2),
        ("```json\n1\n```\n```\n2\n```", 1),
        ("```python\nprint()\n```\n```\n2\n```", 2),
        ("~~~~ JSON\n[3,\n```\n]\n~~~~", NotJson),
        ("~~~json\n3\n~~~~", 3),
        ("```json\n1", NotJson),
        ("1", NotJson),
        ("```python\n1\n```", NotJson),
    ],
)
def test_a_block_is_the_last_one_marked_json_that_is_closed(text: str, value: Any) -> None:
    if value is NotJson:
        with pytest.raises(NotJson):
            found_json(text, "block")
    else:
        assert found_json(text, "block") == value


@pytest.mark.parametrize("find", ["last", "block", "whole"])
@pytest.mark.parametrize(
    "piece", ['{"', "[", "[]", '\\"', '"\\', "```\n", "`", "[1,", '{"a":1}x', "{[", "\n", '"', "]["]
)
def test_hostile_texts_are_looked_through_once(find: str, piece: str) -> None:
    """Any of these takes minutes where a place is looked at more than a few times."""
    text = piece * (600_000 // len(piece))
    try:
        found_json(text, find)
    except NotJson as error:
        assert len(str(error)) < 200  # noqa: PT017


@given(VALUES, st.sampled_from(["", "So: ", "a [b] {c} "]))
def test_what_was_written_is_found_in_every_way(value: Any, before: str) -> None:
    text = json.dumps(value)
    assert read_json(text) == value
    assert found_json(f"{before}\n```json\n{text}\n```\n", "block") == value
    if isinstance(value, dict | list):
        assert found_json(f"{before}\n{text}\nThat is all.", "last") == value


@given(st.text(alphabet='{}[]",:\\`1a \n'), st.sampled_from(["whole", "block", "last"]))
def test_any_text_gives_a_value_or_a_reason(text: str, find: str) -> None:
    try:
        value = found_json(text, find)
    except NotJson as error:
        assert str(error)  # noqa: PT017
    else:
        assert read_json(json.dumps(value)) == value
