"""Records, events, documents and checkpoints with right checksums and anyone's content.

Whoever can write a file can write its checksum. Nothing of it may crash a reader, hold it up, or
reach a file outside of the attempt's own folder.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.analyzers.failures import Failures
from steelyard.config.errors import SteelyardError
from steelyard.engine.analysis import analyze
from steelyard.results import lines
from steelyard.results.checkpoints import (
    CheckpointDamaged,
    carry_checkpoint,
    checkpoint_bytes,
    checkpoint_path,
    read_checkpoint,
)
from steelyard.results.formats import formats_of
from steelyard.results.reader import RunReader
from steelyard.results.records_io import record_to_json
from steelyard.results.retention import Rule, find_runs, judge
from steelyard.results.reuse import PlanShape, Rescoring, ReuseSource, choose_source
from steelyard.results.summary import rebuild
from tests.results.workload import EVALUATION, TASKS, FixedClock, a_record, generation, keep_inputs
from tests.results.written import write_run

SHAPE = PlanShape("toy", 2, "avg", False)
DEEP: Any = json.loads("[" * 150 + "]" * 150)
HOSTILE: list[Any] = [
    None, True, False, 0, -1, 2**63 - 1, 1e300, -1e300, "", "x", "a\0b", "../../x", "/etc/passwd",
    ".", "attempts.jsonl", "lock", "x" * 5000, "9" * 300, "9" * 5000, [], [1], ["x"], {}, {"a": 1},
    DEEP, {"path": 5, "sha256": "x"}, {"path": "a\0b", "sha256": "x"}, "run/" + "9" * 5000,
    "attempt/" + "9" * 5000, "event/" + "9" * 5000, "2026-01-01", "9999-12-31T23:59:59Z",
]  # fmt: skip
CHANGES = st.lists(
    st.tuples(st.lists(st.integers(0, 40), min_size=1, max_size=5), st.sampled_from(HOSTILE)),
    min_size=1,
    max_size=3,
)


def changed(document: Any, changes: list[tuple[list[int], Any]]) -> Any:
    """Put hostile values at places of a document, which the numbers lead to."""
    document = json.loads(json.dumps(document))
    for way, value in changes:
        here, last = document, None
        for step in way:
            if not isinstance(here, dict | list) or not here:
                break
            key = list(here)[step % len(here)] if isinstance(here, dict) else step % len(here)
            last, here = (here, key), here[key]
        if last is not None:
            last[0][last[1]] = json.loads(json.dumps(value))
    return document


@cache
def made() -> tempfile.TemporaryDirectory[str]:
    """A run with one of everything that a record may name, made once."""
    folder = tempfile.TemporaryDirectory(prefix="hostile-made-")
    recorded = [
        a_record(
            task,
            attempt,
            artifacts=({"path": f"{place(task)}/artifacts/0", "sha256": "0", "bytes": 1},),
            trajectory={"path": f"{place(task)}/trajectory.json", "sha256": "0", "steps": 1},
            answer_file=f"{place(task)}/answer.txt" if attempt == 2 else None,
        )
        for task in TASKS[:2]
        for attempt in (1, 2)
    ]
    started = [(task, attempt) for task in TASKS for attempt in (1, 2)]
    root = write_run(
        Path(folder.name), recorded, run_id="first", started=started, clock=FixedClock()
    ).root
    path = root / checkpoint_path("plain", 1)
    path.parent.mkdir(parents=True)
    path.write_bytes(checkpoint_bytes(keep_inputs(root, "plain", 1)))
    return folder


@contextmanager
def a_source() -> Iterator[Path]:
    """A copy of that run."""
    with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
        shutil.copytree(made().name, folder, dirs_exist_ok=True)
        yield Path(folder) / "toy" / "first"


def place(task: str) -> str:
    return checkpoint_path(task, 1).rpartition("/")[0]


def objects(path: Path) -> list[Any]:
    return [lines.decode(line) for line in path.read_bytes().split(b"\n") if line]


def write_objects(path: Path, found: list[Any]) -> None:
    path.write_bytes(b"".join(lines.encode(one) for one in found if isinstance(one, dict)))


def use(root: Path) -> None:
    """Do with a run all that the product does, as far as it goes."""
    with suppress(SteelyardError):
        choose_source(root.parent, SHAPE)
    with suppress(SteelyardError):
        source = ReuseSource(root, limits={})
        for task in TASKS:
            for attempt in (1, 2):
                for evaluation in (EVALUATION, "other"):
                    take(source, task, attempt, evaluation)
    with suppress(SteelyardError):
        reader = RunReader(root)
        assert sum(reader.ledger.outcomes.values()) == reader.ledger.planned
        for flight in reader.in_flight:
            reader.spent_in_flight(flight)
        list(reader.records())
        reader.tail()
    with suppress(SteelyardError):
        rebuild(root)
    with suppress(SteelyardError):
        analyze(root, (Failures(Failures.Params()),))
    formats_of(root)
    judge(list(find_runs(root.parent)), Rule(keep_last=0), FixedClock().now())


def take(source: ReuseSource, task: str, attempt: int, evaluation: str) -> None:
    """Take an attempt into another run: only its own folder there may be written."""
    decision = source.decide(task, attempt, generation(task), evaluation, ("x",), Rescoring())
    if decision.record is None:
        return
    with tempfile.TemporaryDirectory(prefix="taken-") as folder:
        target = Path(folder)
        (target / "attempts.jsonl").write_text("ours")
        with suppress(OSError, CheckpointDamaged, SteelyardError):
            if decision.checkpoint is not None:
                carry_checkpoint(source.root, decision.checkpoint, target)
            record = replace(decision.record, checkpoint=None)
            lines.encode(record_to_json(source.carry_files(record, target)))
        assert (target / "attempts.jsonl").read_text() == "ours"
        own = target / checkpoint_path(task, attempt).rpartition("/")[0]
        for path in target.rglob("*"):
            assert path.name == "attempts.jsonl" or path.is_dir() or path.is_relative_to(own)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 3), CHANGES)
def test_a_hostile_record_is_read_or_left_out(which: int, changes: Any) -> None:
    with a_source() as root:
        found = objects(root / "attempts.jsonl")
        found[which] = changed(found[which], changes)
        write_objects(root / "attempts.jsonl", found)
        use(root)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 9), CHANGES)
def test_a_hostile_event_is_read_or_left_out(which: int, changes: Any) -> None:
    with a_source() as root:
        found = objects(root / "events.jsonl")
        usage = a_record().usage.as_json()
        waited = {"seq": 0, "kind": "retry", "task_id": "plain", "attempt": 9, "usage": usage}
        found.insert(5, {**waited, "execution": 1, "token": "t"})
        found[which] = changed(found[which], changes)
        write_objects(root / "events.jsonl", found)
        use(root)


@settings(max_examples=40, deadline=None)
@given(CHANGES)
def test_a_hostile_document_is_read_or_refused(changes: Any) -> None:
    with a_source() as root:
        document = changed(json.loads((root / "run.json").read_bytes()), changes)
        (root / "run.json").write_text(json.dumps(document))
        use(root)


@settings(max_examples=40, deadline=None)
@given(CHANGES)
def test_a_hostile_checkpoint_is_taken_or_named(changes: Any) -> None:
    with a_source() as root:
        write_objects(root / "attempts.jsonl", objects(root / "attempts.jsonl")[1:])
        path = root / checkpoint_path("plain", 1)
        sign(path, changed(json.loads(path.read_bytes()), changes))
        use(root)


def sign(path: Path, document: Any) -> None:
    """Write a checkpoint with the digest that belongs to it."""
    document = {**document} if isinstance(document, dict) else {}
    document.pop("sha256", None)
    body = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    digest = hashlib.sha256(body.encode("utf-8", "surrogatepass")).hexdigest()
    path.write_text(json.dumps({**document, "sha256": digest}))


def test_a_signed_checkpoint_is_read_as_one_of_ours() -> None:
    with a_source() as root:
        path = root / checkpoint_path("plain", 1)
        sign(path, json.loads(path.read_bytes()))
        assert read_checkpoint(root, "plain", 1) is not None


OTHERS = ["attempts.jsonl", ".", "lock", "tasks", "../first/attempts.jsonl", "/etc/hostname",
          "tasks/plain/attempt-2/answer.txt", "tasks/plain/attempt-1/../../../attempts.jsonl",
          "tasks/plain/attempt-1//etc/hostname", "tasks/plain/attempt-1"]  # fmt: skip


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("names", ["answer", "trajectory", "artifact", "input"])
def test_a_path_outside_of_the_attempts_folder_is_not_taken(names: str, other: str) -> None:
    with a_source() as root:
        digest = hashlib.sha256((root / "attempts.jsonl").read_bytes()).hexdigest()
        (root / "tasks/plain/attempt-2").mkdir(parents=True)
        (root / "tasks/plain/attempt-2/answer.txt").write_text("another's")
        fields: dict[str, dict[str, Any]] = {
            "answer": {"answer": None, "answer_file": other},
            "trajectory": {"trajectory": {"path": other, "sha256": None}},
            "artifact": {"artifacts": ({"path": other, "sha256": digest},)},
            "input": {},
        }
        named = fields[names]
        write_objects(root / "attempts.jsonl", [record_to_json(a_record("plain", 1, **named))])
        if names == "input":
            (root / "attempts.jsonl").write_bytes(b"")
            path = root / checkpoint_path("plain", 1)
            document = json.loads(path.read_bytes())
            document["inputs"][0]["kept"] = other
            sign(path, document)
        decision = ReuseSource(root).decide(
            "plain", 1, generation("plain"), EVALUATION, (), Rescoring()
        )
        assert decision.kind == "execute"
        assert "leads out" in str(decision.warning)


def as_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def as_holes(path: Path) -> None:
    path.write_bytes(b"")
    os.truncate(path, 2**42)


def as_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def as_endless(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def as_circle(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


@pytest.mark.parametrize("made", [as_fifo, as_holes, as_folder, as_endless, as_circle])
@pytest.mark.parametrize("name", ["run.json", "attempts.jsonl", "events.jsonl", "lock"])
def test_what_is_no_plain_file_holds_nobody_up(name: str, made: Any) -> None:
    with a_source() as root:
        made(root / name)
        use(root)


@pytest.mark.parametrize("link", ["/etc", "../../../..", "sub/../../x"])
def test_a_planted_link_is_no_scoring_input(link: str) -> None:
    with a_source() as root:
        (root / "attempts.jsonl").write_bytes(b"")
        folder = root / "tasks/plain/attempt-1/inputs-1/0"
        folder.unlink()
        folder.mkdir()
        (folder / "planted").symlink_to(link)
        path = root / checkpoint_path("plain", 1)
        document = json.loads(path.read_bytes())
        # Its digest is right: of a link it covers where it leads, not what is there.
        status = (folder / "planted").lstat()
        said = f"link {status.st_mode & 0o777:o} {link.encode().hex()} {b'/planted'.hex()}\n"
        document["inputs"][0] |= {"sha256": hashlib.sha256(said.encode()).hexdigest(), "files": 0}
        sign(path, document)
        decision = ReuseSource(root).decide(
            "plain", 1, generation("plain"), EVALUATION, (), Rescoring()
        )
        assert decision.kind == "execute"
        assert "leads out" in str(decision.warning)


def test_an_attempts_folder_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    with a_source() as root:
        (root / "attempts.jsonl").write_bytes(b"")
        folder = root / "tasks/plain/attempt-1"
        shutil.copytree(folder, tmp_path / "elsewhere")
        shutil.rmtree(folder)
        folder.symlink_to(tmp_path / "elsewhere")
        decision = ReuseSource(root).decide(
            "plain", 1, generation("plain"), EVALUATION, (), Rescoring()
        )
        assert decision.kind == "execute"
        assert "leads out" in str(decision.warning)


def test_a_key_that_stands_twice_changes_nothing_that_was_written() -> None:
    """JSON's last one wins: the digest is over what is then used."""
    with a_source() as root:
        path = root / checkpoint_path("plain", 1)
        text, whole = path.read_text(), read_checkpoint(root, "plain", 1)
        path.write_text('{"answer": "forged", ' + text[1:])
        assert read_checkpoint(root, "plain", 1) == whole
        path.write_text(text.rstrip()[:-1] + ', "answer": "forged"}')
        with pytest.raises(CheckpointDamaged, match="content is not what was written"):
            read_checkpoint(root, "plain", 1)
