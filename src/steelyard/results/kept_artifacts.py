"""The artifacts that a record names: compared with what was kept, copied into another run."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from steelyard.config.errors import Fault
from steelyard.results.artifacts import (
    MAX_DIGESTED_BYTES,
    TreeDamaged,
    TreeDigest,
    collecting,
    copy_tree_verified,
    digest_tree,
    remove_kept,
)
from steelyard.results.files import NO_FAULTS, Faults, WritePoint
from steelyard.results.json_values import artifact
from steelyard.results.kept_files import is_kept_of
from steelyard.results.layout import attempt_folder
from steelyard.results.plain_files import MAX_DOCUMENT_BYTES, read_plain
from steelyard.results.records import AttemptRecord


class ArtifactChanged(Fault):
    """A kept file is missing, or not what its record says; names it."""


def changed_artifact(root: Path, record: AttemptRecord) -> str | None:
    """Say which artifact of a record is not what was kept; None where all are. Blocking."""
    try:
        for path, wanted in _listed(root, record):
            if digest_tree(root / path, most_bytes=wanted.bytes).sha256 != wanted.sha256:
                return f"its artifact {path!r} has changed since it was kept"
    except (ArtifactChanged, TreeDamaged) as error:
        return str(error)
    return None


def artifact_paths(root: Path, record: AttemptRecord) -> dict[str, Path]:
    """Give what was collected of an attempt, by its path below the attempt's `artifacts/`.

    Files are not compared with their digests; those that are gone or have become links are left
    out. Blocking.

    Raises:
        ArtifactChanged: an entry names no path, or one that leads elsewhere.
    """
    folder = f"{attempt_folder(record.task_id, record.attempt)}/"
    found = {}
    for one in record.artifacts:
        path, _ = _entry(root, record, one)
        if stat.S_ISREG(_mode(root / path)):
            found[path.removeprefix(folder).removeprefix("artifacts/")] = root / path
    return found


def _mode(path: Path) -> int:
    try:
        return path.lstat().st_mode
    except OSError:
        return 0


def carry_artifacts(
    root: Path, record: AttemptRecord, target: Path, faults: Faults = NO_FAULTS
) -> None:
    """Copy a record's artifacts into another run, at the same paths. Blocking.

    Raises:
        ArtifactChanged: one is not what was kept.
        StorageFailed: the other run cannot be written.
    """
    for path, wanted in _listed(root, record):
        copied = target / path
        remove_kept(copied)
        try:
            with collecting(copied.parent, WritePoint.ARTIFACTS_COLLECTED, faults):
                copy_tree_verified(root / path, copied, wanted)
        except TreeDamaged as error:
            raise ArtifactChanged(str(error)) from error


def _listed(root: Path, record: AttemptRecord) -> Iterator[tuple[str, TreeDigest]]:
    """Give every file that the entries stand for: themselves, and what a list of them names."""
    for one in record.artifacts:
        path, digest = _entry(root, record, one)
        yield path, digest
        if "lists" in one:
            try:
                data = read_plain(root / path, MAX_DOCUMENT_BYTES, follow=False)
                if hashlib.sha256(data).hexdigest() != digest.sha256:
                    raise ArtifactChanged(f"its artifact {path!r} has changed since it was kept")
                entries = [_entry(root, record, entry) for entry in orjson.loads(data)]
            except (OSError, ValueError, TypeError, AttributeError) as error:
                raise ArtifactChanged(f"{path}: {error}") from error
            yield from entries


def _entry(root: Path, record: AttemptRecord, one: Any) -> tuple[str, TreeDigest]:
    try:
        found = artifact(one)
    except (TypeError, ValueError) as error:
        raise ArtifactChanged(f"an artifact has no path or no checksum: {error}") from error
    path = str(found["path"])
    if not is_kept_of(path, record.task_id, record.attempt):
        raise ArtifactChanged(f"its artifact {path[:200]!r} leads out of its attempt's folder")
    if not (root / path).parent.resolve().is_relative_to(root.resolve()):
        raise ArtifactChanged(f"its artifact {path!r} leads out of the run directory")
    return path, TreeDigest(str(found["sha256"]), 1, found.get("bytes", MAX_DIGESTED_BYTES))
