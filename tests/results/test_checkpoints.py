"""A checkpoint is whole, or it is not used; what lies beside it too."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.components.issues import Issue, IssueCode, Outcome, Phase
from steelyard.components.model import ToolCall
from steelyard.components.steps import Step, ToolResult
from steelyard.components.values import Trust, Usage
from steelyard.results.artifacts import (
    TreeDamaged,
    copy_tree_verified,
    digest_tree,
    list_artifacts,
)
from steelyard.results.checkpoints import (
    Checkpoint,
    CheckpointDamaged,
    carry_checkpoint,
    checkpoint_bytes,
    checkpoint_from_bytes,
    checkpoint_path,
    drop_inputs,
    read_checkpoint,
    write_checkpoint,
)
from steelyard.results.records import AttemptRecord, Timing
from steelyard.results.reuse import DecisionKind, Rescoring, ReuseSource
from tests.results.workload import EVALUATION, a_record, generation, keep_inputs
from tests.results.written import write_run

WHOLE = Checkpoint(
    task_id="plain",
    attempt=1,
    execution=2,
    token="tok",
    generation="g",
    mode="fresh",
    answer="42\u2028",
    steps=(
        Step("agent", "m", {"k": 1}, (ToolCall("c", "f", "{}"),), (ToolResult("c", "r"),), "why"),
    ),
    issues=(Issue.of(IssueCode.OUTPUT_TRUNCATED, Phase.COLLECT, "cut"),),
    usage=Usage(1, 2, 3, 4, 5, 0.1),
    timing=Timing(setup_s=0.1, agent_s=1 / 3),
    trust=Trust.HOST,
    environment={"provider": "host_process"},
    artifacts=({"path": "a", "sha256": "b", "bytes": 1},),
)
BYTES = checkpoint_bytes(WHOLE)
PENDING = Rescoring()


def test_a_checkpoint_comes_back_as_it_was() -> None:
    assert checkpoint_from_bytes(BYTES) == WHOLE


def test_a_lone_surrogate_does_not_lose_the_answer() -> None:
    data = checkpoint_bytes(replace(WHOLE, answer="a\ud800b"))
    assert checkpoint_from_bytes(data).answer == "a\ufffdb"


@settings(max_examples=300)
@given(st.integers(0, len(BYTES) - 1), st.integers(0, 7))
def test_a_flipped_bit_is_found_or_changes_nothing(at: int, bit: int) -> None:
    data = bytearray(BYTES)
    data[at] ^= 1 << bit
    try:
        found = checkpoint_from_bytes(bytes(data))
    except CheckpointDamaged:
        return
    assert found == WHOLE


@settings(max_examples=200)
@given(st.integers(0, len(BYTES) - 2))
def test_a_torn_checkpoint_is_never_used(length: int) -> None:
    with pytest.raises(CheckpointDamaged):
        checkpoint_from_bytes(BYTES[:length])


@settings(max_examples=200)
@given(st.recursive(st.none() | st.integers() | st.text(), lambda x: st.dictionaries(st.text(), x)))
def test_what_is_no_checkpoint_is_refused_not_a_crash(data: Any) -> None:
    with pytest.raises(CheckpointDamaged):
        checkpoint_from_bytes(json.dumps(data).encode())


def a_dead_run(tmp_path: Path, *records: AttemptRecord) -> Path:
    """A run with these records, and what was kept of `plain`, attempt 1."""
    root = write_run(tmp_path, records, run_id="first", outcome=None).root
    write_checkpoint(root, keep_inputs(root, "plain", 1))
    return root


def a_pending_run(tmp_path: Path) -> Path:
    """A run that died: `plain`, attempt 1 has a checkpoint and no record."""
    return a_dead_run(tmp_path, a_record("with/slash", 1))


def test_a_pending_attempt_is_scored_and_keeps_its_cost(tmp_path: Path) -> None:
    root = a_pending_run(tmp_path)
    found = ReuseSource(root).decide("plain", 1, generation("plain"), "new", (), PENDING)
    assert found.kind is DecisionKind.RESCORE
    assert found.record is not None
    assert found.record.reused_from is not None
    assert found.record.reused_from["cost_usd"] == 0.001
    assert found.checkpoint is not None


@pytest.mark.parametrize(
    ("rescoring", "wanted"),
    [
        (Rescoring(resumes=False), "no record of it"),
        (Rescoring(from_checkpoint=False), "no record of it"),
        (Rescoring(), "has changed"),
    ],
)
def test_a_pending_attempt_is_executed_where_its_checkpoint_may_not_be_used(
    rescoring: Rescoring, wanted: str, tmp_path: Path
) -> None:
    root = a_pending_run(tmp_path)
    asked = "other" if rescoring == PENDING else generation("plain")
    found = ReuseSource(root).decide("plain", 1, asked, EVALUATION, (), rescoring)
    assert found.kind is DecisionKind.EXECUTE
    assert wanted in found.reason


@pytest.mark.parametrize("records", [(), (Outcome.CANCELLED,)], ids=["killed", "stopped"])
@pytest.mark.parametrize("pattern", ["agent_timed_out", "elsewhere"])
def test_an_execution_that_a_retry_was_replacing_is_not_taken_for_pending(
    records: tuple[Outcome, ...], pattern: str, tmp_path: Path
) -> None:
    """The checkpoint is that of the execution before, whose score did not count."""
    cut = [a_record("plain", 1, outcome=outcome, metrics={}) for outcome in records]
    root = a_dead_run(tmp_path, *cut)
    issue = Issue.of(IssueCode.AGENT_TIMED_OUT, Phase.RUN, "its time ran out")
    write_checkpoint(root, replace(keep_inputs(root, "plain", 1), issues=(issue,)))
    source = ReuseSource(root)
    found = source.decide("plain", 1, generation("plain"), EVALUATION, (pattern,), PENDING)
    if pattern == "elsewhere":
        assert found.kind is DecisionKind.RESCORE
    else:
        assert found.reason == "its ERROR matches a retry pattern: agent_timed_out"
        assert found.kind is DecisionKind.EXECUTE


def test_a_cut_off_attempt_whose_agent_was_done_is_pending_too(tmp_path: Path) -> None:
    root = a_dead_run(tmp_path, a_record("plain", 1, outcome=Outcome.CANCELLED, metrics={}))
    found = ReuseSource(root).decide("plain", 1, generation("plain"), "e", (), PENDING)
    assert found.kind is DecisionKind.RESCORE


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


DAMAGE: dict[str, Callable[[Path, str], None]] = {
    "flipped checkpoint": lambda root, at: _flip(root / at / "checkpoint.json"),
    "torn checkpoint": lambda root, at: os.truncate(root / at / "checkpoint.json", 100),
    "empty checkpoint": lambda root, at: os.truncate(root / at / "checkpoint.json", 0),
    "flipped input": lambda root, at: _flip(root / at / "inputs-1" / "0"),
    "missing input": lambda root, at: (root / at / "inputs-1" / "0").unlink(),
    "input that is a link": lambda root, at: _as_link(root / at / "inputs-1" / "0"),
    "input that is a FIFO": lambda root, at: _as_fifo(root / at / "inputs-1" / "0"),
    "folder that leads out": lambda root, at: _moved(root / at / "inputs-1", root.parent / "x"),
}


def _as_link(path: Path) -> None:
    other = path.with_name("other")
    path.rename(other)
    path.symlink_to(other.name)


def _as_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _moved(path: Path, target: Path) -> None:
    path.rename(target)
    path.symlink_to(target)


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_executed_with_a_warning_that_names_the_file(damage: str, tmp_path: Path) -> None:
    root = a_pending_run(tmp_path)
    DAMAGE[damage](root, "tasks/plain/attempt-1")
    found = ReuseSource(root).decide("plain", 1, generation("plain"), "e", (), PENDING)
    assert found.kind is DecisionKind.EXECUTE
    assert found.warning is not None
    assert ("checkpoint.json" if "checkpoint" in damage else "inputs-1") in found.warning


def test_a_changed_score_takes_the_checkpoint_that_its_record_names(tmp_path: Path) -> None:
    root = a_pending_run(tmp_path / "x")
    path = checkpoint_path("plain", 1)
    digest = hashlib.sha256((root / path).read_bytes()).hexdigest()
    named = a_record("plain", 1, checkpoint={"path": path, "sha256": digest})
    root = a_dead_run(tmp_path, named, a_record("plain", 2))

    def kind_of(attempt: int) -> DecisionKind:
        source = ReuseSource(root)
        return source.decide("plain", attempt, generation("plain"), "x", (), PENDING).kind

    assert kind_of(1) is DecisionKind.RESCORE
    assert kind_of(2) is DecisionKind.EXECUTE
    other = replace(keep_inputs(root, "plain", 1), answer="another execution's")
    write_checkpoint(root, other)
    assert kind_of(1) is DecisionKind.EXECUTE


def test_a_carried_checkpoint_is_the_same_and_its_source_stays(tmp_path: Path) -> None:
    root = a_pending_run(tmp_path)
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    found = read_checkpoint(root, "plain", 1)
    assert found is not None
    target = tmp_path / "second"
    reference = carry_checkpoint(root, found, target)
    assert read_checkpoint(target, "plain", 1, sha256=reference["sha256"]) == found
    copied = target / found.inputs[0].kept
    assert copied.read_bytes() == (root / found.inputs[0].kept).read_bytes()
    copied.write_text("changed")
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before


def test_inputs_that_change_while_they_are_taken_leave_nothing_behind(tmp_path: Path) -> None:
    root = a_pending_run(tmp_path)
    found = read_checkpoint(root, "plain", 1)
    assert found is not None
    _flip(root / found.inputs[0].kept)
    with pytest.raises(CheckpointDamaged, match="inputs-1"):
        carry_checkpoint(root, found, tmp_path / "second")
    assert [path for path in (tmp_path / "second").rglob("*") if path.is_file()] == []


def test_dropped_inputs_are_no_longer_offered(tmp_path: Path) -> None:
    root = a_pending_run(tmp_path)
    found = read_checkpoint(root, "plain", 1)
    assert found is not None
    drop_inputs(root, found)
    decision = ReuseSource(root).decide("plain", 1, generation("plain"), "e", (), PENDING)
    assert (decision.kind, decision.warning) == (DecisionKind.EXECUTE, None)
    assert not (root / found.inputs[0].kept).exists()


def a_tree(folder: Path) -> Path:
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "deep" / "a").write_bytes(b"a" * 70_000)
    (folder / "deep" / "er" / os.fsdecode(b"\xff")).write_bytes(b"")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "link").symlink_to("run.sh")
    return folder


def test_a_copied_tree_has_the_digest_of_the_tree(tmp_path: Path) -> None:
    tree = a_tree(tmp_path / "tree")
    digest = digest_tree(tree)
    assert (digest.files, digest.bytes) == (3, 70_010)
    copy_tree_verified(tree, tmp_path / "copy", digest)
    assert digest_tree(tmp_path / "copy") == digest


@pytest.mark.parametrize(
    "change",
    [
        lambda tree: (tree / "run.sh").chmod(0o644),
        lambda tree: (tree / "deep" / "a").rename(tree / "deep" / "b"),
        lambda tree: (tree / "more").mkdir(),
        lambda tree: _as_link(tree / "deep" / "a"),
        lambda tree: _flip(tree / "deep" / "a"),
    ],
)
def test_whatever_changes_a_tree_changes_its_digest(change: Any, tmp_path: Path) -> None:
    tree = a_tree(tmp_path / "tree")
    before = digest_tree(tree)
    change(tree)
    assert digest_tree(tree).sha256 != before.sha256
    with pytest.raises(TreeDamaged):
        copy_tree_verified(tree, tmp_path / "copy", before)
    assert not (tmp_path / "copy").exists()


def test_a_secret_across_the_border_of_two_pieces_is_seen(tmp_path: Path) -> None:
    (tmp_path / "artifacts").mkdir()
    (tmp_path / "artifacts" / "a").write_bytes(b"x" * (1024 * 1024 - 4) + b"sk-canary")
    (tmp_path / "artifacts" / "b").write_bytes(b"nothing")
    found = list_artifacts(tmp_path, "artifacts", lambda data: b"sk-canary" in data)
    assert [(one["path"], one.get("flagged", False)) for one in found] == [
        ("artifacts/a", True),
        ("artifacts/b", False),
    ]


def test_a_changed_artifact_makes_its_attempt_run_again(tmp_path: Path) -> None:
    path = "tasks/plain/attempt-1/artifacts/out"
    (tmp_path / "made" / path).parent.mkdir(parents=True)
    (tmp_path / "made" / path).write_text("kept")
    artifacts = tuple(list_artifacts(tmp_path / "made", "tasks/plain/attempt-1/artifacts"))
    out = ({"path": "../x", "sha256": "0", "bytes": 1},)
    records = (a_record("plain", 1, artifacts=artifacts), a_record("plain", 2, artifacts=out))
    root = write_run(tmp_path, records, run_id="first").root
    shutil.copytree(tmp_path / "made" / "tasks", root / "tasks")
    source = ReuseSource(root)
    whole = source.decide("plain", 1, generation("plain"), EVALUATION)
    assert whole.kind is DecisionKind.REUSE
    assert whole.record is not None
    source.carry_files(whole.record, tmp_path / "second")
    assert (tmp_path / "second" / path).read_text() == "kept"
    leads_out = source.decide("plain", 2, generation("plain"), EVALUATION)
    assert leads_out.kind is DecisionKind.EXECUTE
    (root / path).write_text("kepT")
    changed = source.decide("plain", 1, generation("plain"), EVALUATION)
    assert changed.kind is DecisionKind.EXECUTE
    assert changed.warning is not None
    assert path in changed.warning
