"""The packs that can be named here: the project's, those in the working folder, those that ship."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from steelyard.benchmarks.pack.listing import listed_packs
from steelyard.components.catalog import CATALOG, catalog_pack
from steelyard.config.errors import BadInput
from steelyard.evalset.own_packs import OwnPacks, PackEntry, head_of
from steelyard.evalset.pack_refs import Packs
from steelyard.evalset.project import Project


class Shelf(StrEnum):
    """Where a pack is found."""

    PROJECT = "project"
    """`packs:` of steelyard.yaml names it."""
    FOLDER = "folder"
    """It lies in the working folder, and the project does not name it."""
    CATALOG = "catalog"
    """It ships."""


@dataclass(frozen=True, slots=True)
class ShelvedPack:
    """One pack of a listing; a malformed one is listed with what is wrong."""

    shelf: Shelf
    ref: str
    """How an eval set names it."""
    slug: str
    version: int | None
    digest: str | None
    uuid: str | None
    path: str
    summary: str
    is_valid: bool

    def as_json(self) -> dict[str, Any]:
        """Give the form that `--json` prints."""
        return {
            "from": self.shelf.value,
            "ref": self.ref,
            "slug": self.slug,
            "version": self.version,
            "digest": self.digest,
            "id": self.uuid,
            "path": self.path,
            "summary": self.summary,
            "valid": self.is_valid,
        }


def shelved_packs(folder: Path | None, project: Project | None) -> list[ShelvedPack]:
    """List packs; what is wrong with one stands in its place.

    Args:
        folder: those in and below it alone; None: the project's, those here, those that ship.
        project: whose packs are meant.

    Raises:
        BadInput: there is no such folder.
    """
    own = project.packs if project is not None else OwnPacks(())
    shelf = Packs(own)
    named = {entry.path for entry in own.entries}
    here = Path() if folder is None else folder
    found = [_own(entry, shelf) for entry in own.entries] if folder is None else []
    found += [
        _made(Shelf.FOLDER, _path_ref(one.path), Path(one.path), shelf)
        for one in listed_packs(here)
        if folder is not None or Path(one.path).resolve() not in named
    ]
    if folder is None:
        found += [
            _made(Shelf.CATALOG, f"catalog/{name}", path, shelf)
            for name in CATALOG
            if (path := catalog_pack(name)) is not None
        ]
    return found


def pack_at(text: str, project: Project) -> Path | None:
    """Give the folder of the project's pack that a ref names; None where nothing answers to it.

    Raises:
        BadInput: several do, or one that it may be cannot be read.
    """
    if not project.packs.entries and not text.startswith("catalog/"):
        return None
    return Path(Packs(project.packs).resolve(text, project.cwd).pinned.path)


def _own(entry: PackEntry, shelf: Packs) -> ShelvedPack:
    head = head_of(entry)
    if entry.fault is not None:
        return _malformed(Shelf.PROJECT, str(entry.path), entry.path, entry.fault.message)
    ref = str(entry.path)
    if head.slug is not None and head.version is not None:
        ref = f"{head.slug}@{head.version}"
    return _made(Shelf.PROJECT, ref, entry.path, shelf)


def _path_ref(path: str) -> str:
    return path if path.startswith(("/", "../", "./")) else f"./{path}"


def _made(shelf: Shelf, ref: str, path: Path, packs: Packs) -> ShelvedPack:
    try:
        opened = packs.opened(path)
    except (BadInput, OSError) as error:
        first = error.problems[0].message if isinstance(error, BadInput) else str(error)
        return _malformed(shelf, ref, path, first)
    pinned, file = opened.pinned, opened.benchmark.pack.file
    summary = file.name or (file.description or "").strip().split("\n")[0]
    return ShelvedPack(
        shelf,
        ref,
        pinned.slug,
        pinned.version,
        pinned.digest,
        pinned.uuid,
        _shown(path),
        summary,
        is_valid=True,
    )


def _malformed(shelf: Shelf, ref: str, path: Path, why: str) -> ShelvedPack:
    return ShelvedPack(shelf, ref, "?", None, None, None, _shown(path), why, is_valid=False)


def _shown(path: Path) -> str:
    try:
        return str(path.absolute().relative_to(Path.cwd()))
    except ValueError:
        return str(path)
