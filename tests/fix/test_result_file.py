"""Row 16: what a result may say. A plain reader believes much of it; ours says why not."""

from __future__ import annotations

import contextlib
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.fix.result_file import MAX_BYTES, ResultRefused, parse_result


def whole(value: str) -> bytes:
    return b'{"metrics": {"answer": ' + value.encode() + b"}}"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (whole("NaN"), "holds NaN"),
        (whole("-Infinity"), "holds -Infinity"),
        (whole("1e999"), "not finite"),
        (whole("true"), "a boolean, not a finite number"),
        (b'{"metrics": {"answer": 1, "answer": 999}}', "'answer' twice"),
        (b'{"metrics": {}, "metrics": {"answer": 999}}', "'metrics' twice"),
        (b'{"metrics": {"answer": 1}, "tasks": {"a": 1, "a": 2}}', "'a' twice"),
    ],
    ids=["NaN", "infinity", "1e999", "true", "twice", "metrics twice", "a task twice"],
)
def test_what_a_plain_reader_believes_is_refused(content: bytes, said: str) -> None:
    json.loads(content)  # believes it
    with pytest.raises(ResultRefused, match=said):
        parse_result(content, metrics=["answer"])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (whole("9" * 400), "an integer of 400 digits"),
        (whole("9" * 309), "too large for a number"),
        (b"[" * 100 + b"]" * 100, "more than 16 levels"),
        (b'{"metrics": ' + b'{"a":' * 5000, "more than 16 levels"),
        (b"[" * 1_000_000, "more than 16 levels"),
        (whole('"1"'), "a text, not a finite number"),
        (whole("null"), "null, not a finite number"),
        (whole("[1]"), "a list, not a finite number"),
        (b'{"metrics": {}}', "lacks declared metrics: answer"),
        (b'{"answer": 1}', "no `metrics`"),
        (b"[1]", "a list, not an object"),
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff\xfe{}", "not UTF-8"),
        (b'{"metrics": {"answer": 1}, "tasks": [1]}', "`tasks` is a list"),
        (b'{"metrics": {"answer": 1}, "tasks": {"a": true}}', "tasks.a is a boolean"),
        (b'{"metrics": {"answer": 1}} trailing', "not JSON"),
    ],
)
def test_what_is_no_result_is_refused_with_the_reason(content: bytes, said: str) -> None:
    with pytest.raises(ResultRefused, match=said):
        parse_result(content, metrics=["answer"])


def test_a_large_file_is_refused_before_it_is_read(tmp_path: object) -> None:
    from pathlib import Path

    from steelyard.fix.result_file import read_result

    folder = Path(str(tmp_path))
    with (folder / "result.json").open("wb") as file:
        file.truncate(50 * MAX_BYTES)
    with pytest.raises(ResultRefused, match="larger than"):
        read_result(folder, "result.json", metrics=["answer"])


def test_brackets_in_texts_are_not_depth() -> None:
    deep = "[" * 200
    content = json.dumps({"metrics": {"answer": 1}, "note": deep + '\\"' + deep}).encode()
    assert parse_result(content, metrics=["answer"]).metrics == {"answer": 1.0}


def test_undeclared_metrics_are_named_and_not_kept() -> None:
    content = b'{"metrics": {"answer": 1.5, "extra": 2}, "tasks": {"a": 0.5}, "note": "x"}'
    result = parse_result(content, metrics=["answer"])
    assert (result.metrics, result.undeclared, result.tasks) == (
        {"answer": 1.5},
        ("extra",),
        {"a": 0.5},
    )


@given(st.floats() | st.integers())
def test_every_finite_number_is_kept_as_it_is_and_no_other(value: float) -> None:
    content = json.dumps({"metrics": {"answer": value}}).encode()
    try:
        is_finite = math.isfinite(float(value))
    except OverflowError:
        is_finite = False
    if is_finite:
        assert parse_result(content, metrics=["answer"]).metrics == {"answer": float(value)}
    else:
        with pytest.raises(ResultRefused):
            parse_result(content, metrics=["answer"])


@given(st.binary(max_size=300))
def test_no_bytes_raise_anything_but_a_refusal(content: bytes) -> None:
    with contextlib.suppress(ResultRefused):
        assert "answer" in parse_result(content, metrics=["answer"]).metrics
