"""The artifacts that a record names: compared with what was kept, copied into another run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from steelyard.config.errors import Fault
from steelyard.results.artifacts import (
    TreeDamaged,
    TreeDigest,
    collecting,
    copy_tree_verified,
    digest_tree,
    remove_kept,
)
from steelyard.results.files import NO_FAULTS, Faults, WritePoint


class ArtifactChanged(Fault):
    """A kept file is missing, or not what its record says; names it."""


def changed_artifact(root: Path, artifacts: Sequence[Mapping[str, Any]]) -> str | None:
    """Say which artifact of a record is not what was kept; None where all are. Blocking."""
    try:
        for path, wanted in _listed(root, artifacts):
            if digest_tree(root / path).sha256 != wanted.sha256:
                return f"its artifact {path!r} has changed since it was kept"
    except (ArtifactChanged, TreeDamaged) as error:
        return str(error)
    return None


def carry_artifacts(
    root: Path, artifacts: Sequence[Mapping[str, Any]], target: Path, faults: Faults = NO_FAULTS
) -> None:
    """Copy a record's artifacts into another run, at the same paths. Blocking.

    Raises:
        ArtifactChanged: one is not what was kept.
        StorageFailed: the other run cannot be written.
    """
    for path, wanted in _listed(root, artifacts):
        copied = target / path
        remove_kept(copied)
        try:
            with collecting(copied.parent, WritePoint.ARTIFACTS_COLLECTED, faults):
                copy_tree_verified(root / path, copied, wanted)
        except TreeDamaged as error:
            raise ArtifactChanged(str(error)) from error


def _listed(root: Path, artifacts: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, TreeDigest]]:
    """Give every file that the entries stand for: themselves, and what a list of them names."""
    for one in artifacts:
        path, digest = _entry(root, one)
        yield path, digest
        if "lists" in one:
            try:
                inner = orjson.loads((root / path).read_bytes())
                entries = [_entry(root, entry) for entry in inner]
            except (OSError, ValueError, TypeError, AttributeError) as error:
                raise ArtifactChanged(f"{path}: {error}") from error
            yield from entries


def _entry(root: Path, one: Mapping[str, Any]) -> tuple[str, TreeDigest]:
    path, digest = one.get("path"), one.get("sha256")
    if not isinstance(path, str) or not isinstance(digest, str) or "\0" in path:
        raise ArtifactChanged("an artifact has no path or no checksum")
    parts = Path(path)
    if parts.is_absolute() or ".." in parts.parts:
        raise ArtifactChanged(f"its artifact {path!r} leads out of the run directory")
    if not (root / parts.parent).resolve().is_relative_to(root.resolve()):
        raise ArtifactChanged(f"its artifact {path!r} leads out of the run directory")
    return path, TreeDigest(digest, 1, 0)
