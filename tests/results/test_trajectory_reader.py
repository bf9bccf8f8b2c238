"""Trajectories are read back whole or not at all: damaged, huge and hostile ones, too."""

from __future__ import annotations

import hashlib
import os
import tempfile
import tracemalloc
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.components.analyzer import TrajectoryUnreadable
from steelyard.components.model import ToolCall
from steelyard.components.steps import Step, ToolResult
from steelyard.components.values import NO_USAGE
from steelyard.results import trajectory_reader
from steelyard.results.trajectory import atif_document, write_trajectory
from steelyard.results.trajectory_reader import read_steps, read_text

STEPS = [
    Step("user", "find it", {"given": True}),
    Step(
        "agent",
        'I look: {"steps": ["no"]} \\" ]}',
        {"stop_reason": "tool_calls"},
        (ToolCall("c1", "search", '{"q":"x"}'), ToolCall("c2", "search", "q=[{")),
        (ToolResult("c1", "3 hits"), ToolResult(None, "Error: no")),
        reasoning="hm",
        model="other",
    ),
    Step("agent", "42 \u2028 \U0001f980"),
]


def written(root: Path, steps: list[Step] = STEPS) -> dict[str, Any]:
    document = atif_document(
        steps, session_id="steps", harness="h", version="1", model="m", usage=NO_USAGE
    )
    return write_trajectory(root, "tasks/t/attempt-1", document)


@pytest.mark.parametrize("whole", [10**6, 0], ids=["at once", "step by step"])
def test_steps_come_back_as_they_were(
    whole: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trajectory_reader, "WHOLE_BYTES", whole)
    assert list(read_steps(tmp_path, written(tmp_path))) == STEPS
    assert list(read_steps(tmp_path, None)) == []


def _damaged(root: Path, data: bytes, *, checked: bool) -> dict[str, Any]:
    (root / "t.json").write_bytes(data)
    digest = hashlib.sha256(data).hexdigest() if checked else None
    return {"path": "t.json", "sha256": digest, "steps": 3}


def _read(root: Path, found: dict[str, Any]) -> list[Step] | None:
    try:
        return list(read_steps(root, found))
    except TrajectoryUnreadable:
        return None


@settings(deadline=None, max_examples=150)
@given(
    at=st.integers(0, 900), bit=st.integers(0, 7), end=st.integers(0, 900), is_large=st.booleans()
)
def test_a_flipped_bit_or_a_missing_end_is_never_used(
    at: int, bit: int, end: int, is_large: bool
) -> None:
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(trajectory_reader, "WHOLE_BYTES", 0 if is_large else 10**6)
        root = Path(name)
        record = written(root)
        path = root / record["path"]
        data = bytearray(path.read_bytes())
        data[at % len(data)] ^= 1 << bit
        for damaged in (bytes(data), bytes(data[: end % len(data)])):
            path.write_bytes(damaged)
            assert _read(root, record) is None
            # Without a checksum it may be read, and never does more than that.
            _read(root, _damaged(root, damaged, checked=False))


@settings(deadline=None, max_examples=150)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["steps", "source", "message", "tool_calls", "arguments", "observation", "results",
                 "content", "extra", "raw", "text"]
            ),
            inner,
            max_size=4,
        ),
        max_leaves=25,
    )
)  # fmt: skip
def test_any_json_is_read_alike_both_ways_or_refused(document: Any) -> None:
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        root = Path(name)
        found = _damaged(root, orjson.dumps(document), checked=True)
        small = _read(root, found)
        patch.setattr(trajectory_reader, "WHOLE_BYTES", 0)
        large = _read(root, found)
        if small is not None:
            assert large == small


def test_what_is_no_file_of_the_run_is_not_read(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (tmp_path / "secret.json").write_text('{"steps": []}')
    (run / "link.json").symlink_to(tmp_path / "secret.json")
    os.mkfifo(run / "pipe")
    (run / "folder").mkdir()
    for path in ("../secret.json", "/etc/hostname", "link.json", "gone.json", "a\0b", "", None, 3,
                 "folder", "pipe"):  # fmt: skip
        with pytest.raises(TrajectoryUnreadable):
            list(read_steps(run, {"path": path}))
    assert read_text(run, "../secret.json", max_bytes=9) is None
    assert read_text(run, "link.json", max_bytes=9) is None


def test_a_large_trajectory_is_read_whole_in_little_memory(tmp_path: Path) -> None:
    steps = [Step("agent", f"{n} " + "x" * 100_000) for n in range(300)]
    record = written(tmp_path, steps)
    assert (tmp_path / record["path"]).stat().st_size > 30_000_000
    del steps
    tracemalloc.start()
    try:
        count = sum(1 for _ in read_steps(tmp_path, record))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count == 300
    assert peak < 4_000_000


def test_a_step_that_is_too_large_stands_for_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trajectory_reader, "WHOLE_BYTES", 0)
    monkeypatch.setattr(trajectory_reader, "MAX_STEP_BYTES", 1000)
    record = written(tmp_path, [Step("agent", "x" * 2000), Step("agent", "y")])
    first, second = read_steps(tmp_path, record)
    assert first.source == "system"
    assert first.message.endswith("bytes is not read]")
    assert second == Step("agent", "y")


def test_a_trajectory_beyond_all_bounds_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trajectory_reader, "MAX_BYTES", 100)
    with pytest.raises(TrajectoryUnreadable, match="too many"):
        list(read_steps(tmp_path, written(tmp_path)))


def test_the_beginning_of_a_large_answer_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("é" * 100)
    assert read_text(tmp_path, "a.txt", max_bytes=10) == "é" * 5
