"""The checkpoint of an attempt: all that scoring needs, on the disk before scoring begins.

Written once an agent's phase is over, atomically; it proves itself by a digest of its content, and
its inputs by theirs. One that is damaged is never used: the attempt is executed again.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import orjson

from steelyard.components.issues import Issue
from steelyard.components.steps import Step
from steelyard.components.values import NO_USAGE, Trust, Usage
from steelyard.results.artifacts import (
    TreeDamaged,
    TreeDigest,
    collecting,
    copy_tree_verified,
    digest_tree,
    remove_kept,
    sync_tree,
)
from steelyard.results.files import (
    NO_FAULTS,
    Faults,
    WritePoint,
    make_folders,
    replace_atomically,
)
from steelyard.results.json_values import (
    artifact,
    count,
    items,
    mapping,
    optional_mapping,
    optional_text,
    text,
    truth,
)
from steelyard.results.kept_files import is_kept_of
from steelyard.results.layout import attempt_folder
from steelyard.results.lines import json_bytes
from steelyard.results.plain_files import read_plain
from steelyard.results.records import Timing
from steelyard.results.records_io import timing_from_json

CHECKPOINT_SCHEMA: Final = "checkpoint/1"
NAME: Final = "checkpoint.json"
MAX_CHECKPOINT_BYTES: Final = 256 * 1024 * 1024
MAX_KEPT_BYTES: Final = 1024 * 1024 * 1024
"""Inputs above this go once the attempt is scored: a changed score then needs the agent."""


DROPPED: Final = "dropped"
"""The mode of a checkpoint whose inputs were removed: nothing can be scored from it."""


class CheckpointDamaged(Exception):
    """A checkpoint, or one of its inputs, is not what was written; says which and why."""


@dataclass(frozen=True, slots=True)
class ScoringInput:
    """A file or folder that scoring needs, kept in the attempt's folder."""

    path: str
    """Where it lay in the agent's working folder."""
    kept: str
    """Where it lies, relative to the run directory."""
    digest: TreeDigest

    def as_json(self) -> dict[str, Any]:
        """Give the serialisable form."""
        data: dict[str, Any] = {
            "path": self.path,
            "kept": self.kept,
            "sha256": self.digest.sha256,
            "files": self.digest.files,
            "bytes": self.digest.bytes,
        }
        if self.digest.has_secret:
            data["flagged"] = True
        return data


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """An attempt whose agent is done and whose score is pending."""

    task_id: str
    attempt: int
    execution: int
    token: str
    generation: str | None
    mode: str
    answer: str | None
    steps: tuple[Step, ...] = ()
    issues: tuple[Issue, ...] = ()
    usage: Usage = NO_USAGE
    timing: Timing = Timing()
    trust: Trust | None = None
    environment: Mapping[str, Any] | None = None
    artifacts: tuple[Mapping[str, Any], ...] = ()
    inputs: tuple[ScoringInput, ...] = ()
    flagged: bool = False
    """True where a secret stands in it: nothing is rewritten, and it is not for others."""

    def as_json(self) -> dict[str, Any]:
        """Give the serialisable form, all but the digest."""
        timing = self.timing
        return {
            "schema": CHECKPOINT_SCHEMA,
            "task_id": self.task_id,
            "attempt": self.attempt,
            "execution": self.execution,
            "token": self.token,
            "generation": self.generation,
            "mode": self.mode,
            "answer": self.answer,
            "steps": [step.as_json() for step in self.steps],
            "issues": [issue.as_json() for issue in self.issues],
            "usage": self.usage.as_json(),
            "timing": {name: getattr(timing, name) for name in Timing.__dataclass_fields__},
            "trust": None if self.trust is None else self.trust.value,
            "environment": None if self.environment is None else dict(self.environment),
            "artifacts": [dict(artifact) for artifact in self.artifacts],
            "inputs": [one.as_json() for one in self.inputs],
            "flagged": self.flagged,
        }


def checkpoint_path(task_id: str, attempt: int) -> str:
    """Where an attempt's checkpoint lies, relative to the run directory."""
    return f"{attempt_folder(task_id, attempt)}/{NAME}"


def write_checkpoint(root: Path, checkpoint: Checkpoint, faults: Faults = NO_FAULTS) -> str:
    """Write a checkpoint; it and its inputs are durable when this returns. Blocking.

    Returns:
        Its path, relative to the run directory.

    Raises:
        StorageFailed: it could not be written; one that stood there before still stands.
    """
    relative = checkpoint_path(checkpoint.task_id, checkpoint.attempt)
    # First: a checkpoint that outlives a loss of power must find what it names.
    for one in checkpoint.inputs:
        sync_tree(root / one.kept, one.digest.files)
    _put(root, relative, checkpoint_bytes(checkpoint), faults)
    return relative


def _put(root: Path, relative: str, data: bytes, faults: Faults) -> None:
    path = root / relative
    make_folders(path.parent, faults)
    replace_atomically(
        path,
        data,
        WritePoint.CHECKPOINT_WRITTEN,
        WritePoint.CHECKPOINT_RENAMED,
        faults,
        synced=WritePoint.CHECKPOINT_SYNCED,
    )


def checkpoint_bytes(checkpoint: Checkpoint) -> bytes:
    """Serialise a checkpoint with the digest of its content.

    What JSON cannot hold (lone surrogates) is replaced, as in a record.
    """
    body = orjson.loads(json_bytes(checkpoint.as_json()))
    return orjson.dumps({**body, "sha256": _digest(body)}) + b"\n"


def read_checkpoint(
    root: Path, task_id: str, attempt: int, *, sha256: str | None = None
) -> Checkpoint | None:
    """Read the checkpoint of an attempt; None where there is none. Its inputs are not looked at.

    Args:
        root: the run directory.
        task_id: the task.
        attempt: counted from 1.
        sha256: that of the file, where a record names it.

    Raises:
        CheckpointDamaged: there is one that cannot be used.
    """
    relative = checkpoint_path(task_id, attempt)
    path = root / relative
    try:
        data = read_plain(path, MAX_CHECKPOINT_BYTES, follow=False)
        if not path.resolve().is_relative_to(root.resolve()):
            raise CheckpointDamaged(f"{relative}: leads out of the run directory")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, RuntimeError) as error:  # RuntimeError: links that lead in a circle
        why = getattr(error, "strerror", None) or str(error)
        raise CheckpointDamaged(f"{relative}: {why}") from error
    if sha256 is not None and hashlib.sha256(data).hexdigest() != sha256:
        raise CheckpointDamaged(f"{relative}: it is not the one that its record names")
    try:
        found = checkpoint_from_bytes(data)
    except CheckpointDamaged as error:
        raise CheckpointDamaged(f"{relative}: {error}") from error
    if (found.task_id, found.attempt) != (task_id, attempt):
        raise CheckpointDamaged(f"{relative}: it is of another attempt")
    return found


def has_checkpoint(root: Path) -> bool:
    """True where a run holds any checkpoint; stops at the first."""
    return next(root.glob(f"tasks/*/attempt-*/{NAME}"), None) is not None


def checkpoint_from_bytes(data: bytes) -> Checkpoint:
    """Read a checkpoint.

    Raises:
        CheckpointDamaged: it is torn, changed, or of another version.
    """
    try:
        document = orjson.loads(data)
        if not isinstance(document, dict):
            raise CheckpointDamaged("it is no object")
        schema = document.get("schema")
        if schema != CHECKPOINT_SCHEMA:
            raise CheckpointDamaged(f"its schema is {schema!r}, not {CHECKPOINT_SCHEMA!r}")
        digest = document.pop("sha256", None)
        if digest != _digest(document):
            raise CheckpointDamaged("its content is not what was written")
        return _from_json(document)
    except orjson.JSONDecodeError as error:
        raise CheckpointDamaged(f"it is not whole: {error}") from error
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise CheckpointDamaged(f"it is malformed: {error}") from error


def _digest(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(orjson.dumps(body, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _from_json(data: Mapping[str, Any]) -> Checkpoint:
    return Checkpoint(
        task_id=text(data["task_id"]),
        attempt=count(data["attempt"], 1),
        execution=count(data["execution"]),
        token=text(data["token"]),
        generation=optional_text(data["generation"]),
        mode=text(data["mode"]),
        answer=optional_text(data["answer"]),
        steps=tuple(map(_step, items(data["steps"]))),
        issues=tuple(map(Issue.from_json, items(data["issues"]))),
        usage=Usage.from_json(data["usage"]),
        timing=timing_from_json(data["timing"]),
        trust=None if data["trust"] is None else Trust(data["trust"]),
        environment=optional_mapping(data["environment"]),
        artifacts=tuple(map(artifact, items(data["artifacts"]))),
        inputs=tuple(map(_input, items(data["inputs"]))),
        flagged=truth(data["flagged"]),
    )


def _input(data: Any) -> ScoringInput:
    return ScoringInput(
        text(data["path"]),
        text(data["kept"]),
        TreeDigest(
            text(data["sha256"]),
            count(data["files"]),
            count(data["bytes"]),
            truth(data.get("flagged", False)),
        ),
    )


def _step(data: Any) -> Step:
    """Read a step whose every text is one: a scorer takes them as they are."""
    found = Step.from_json(data)
    for value in (found.source, found.message):
        text(value)
    for call in found.tool_calls:
        text(call.id), text(call.name), text(call.arguments)
    for result in found.results:
        optional_text(result.call_id), text(result.content)
    optional_text(found.reasoning), optional_text(found.model), mapping(found.extra)
    return found


def missing_input(root: Path, checkpoint: Checkpoint) -> str | None:
    """Say which input is not there; None where all are. Their content is not looked at."""
    for one in checkpoint.inputs:
        try:
            if not os.path.lexists(_kept(root, checkpoint, one)):
                return f"{one.kept} is missing"
        except CheckpointDamaged as error:
            return str(error)
    return None


def verify_inputs(root: Path, checkpoint: Checkpoint) -> None:
    """Read every input and compare. Blocking.

    Raises:
        CheckpointDamaged: one is not what was kept.
    """
    for one in checkpoint.inputs:
        try:
            found = digest_tree(_kept(root, checkpoint, one), most_bytes=one.digest.bytes)
        except TreeDamaged as error:
            raise CheckpointDamaged(str(error)) from error
        if (found.sha256, found.files) != (one.digest.sha256, one.digest.files):
            raise CheckpointDamaged(f"{one.kept}: its content is not what was kept")


def carry_checkpoint(
    source: Path, checkpoint: Checkpoint, target: Path, faults: Faults = NO_FAULTS
) -> dict[str, Any]:
    """Copy a checkpoint and its inputs into another run, each verified as it is read. Blocking.

    Returns:
        `{path, sha256}` of the copy.

    Raises:
        CheckpointDamaged: an input is not what was kept; the other run then has none of it.
        StorageFailed: the other run cannot be written.
    """
    done: list[Path] = []
    try:
        for one in checkpoint.inputs:
            path, copied = _kept(source, checkpoint, one), _kept(target, checkpoint, one)
            remove_kept(copied)
            with collecting(copied.parent, WritePoint.INPUTS_COLLECTED, faults):
                copy_tree_verified(path, copied, one.digest)
            done.append(copied)
            sync_tree(copied, one.digest.files)
    except TreeDamaged as error:
        for path in done:
            remove_kept(path)
        raise CheckpointDamaged(str(error)) from error
    relative = checkpoint_path(checkpoint.task_id, checkpoint.attempt)
    try:
        data = read_plain(source / relative, MAX_CHECKPOINT_BYTES, follow=False)
        if checkpoint_from_bytes(data) != checkpoint:
            raise CheckpointDamaged(f"{relative}: it has changed while it was taken")
    except OSError as error:
        raise CheckpointDamaged(f"{relative}: {error.strerror or error}") from error
    _put(target, relative, data, faults)
    return {"path": relative, "sha256": hashlib.sha256(data).hexdigest()}


def drop_inputs(root: Path, checkpoint: Checkpoint, faults: Faults = NO_FAULTS) -> None:
    """Remove inputs that are too large to be kept; the checkpoint then says it has none. Blocking.

    Raises:
        StorageFailed: the checkpoint cannot be written.
    """
    write_checkpoint(root, replace(checkpoint, inputs=(), mode=DROPPED), faults)
    for one in checkpoint.inputs:
        remove_kept(_kept(root, checkpoint, one))


def _kept(root: Path, checkpoint: Checkpoint, one: ScoringInput) -> Path:
    """Give where an input lies: in its attempt's own folder, whatever a checkpoint says."""
    path = Path(one.kept)
    if not is_kept_of(one.kept, checkpoint.task_id, checkpoint.attempt):
        raise CheckpointDamaged(f"{one.kept[:200]!r} leads out of its attempt's folder")
    try:
        is_inside = (root / path.parent).resolve().is_relative_to(root.resolve())
    except (OSError, RuntimeError) as error:  # RuntimeError: links that lead in a circle
        raise CheckpointDamaged(f"{one.kept[:200]!r} cannot be looked at: {error}") from error
    if not is_inside:
        raise CheckpointDamaged(f"{one.kept!r} leads out of the run directory")
    return root / path
