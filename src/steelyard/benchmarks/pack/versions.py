"""Versions of a pack: what is there is kept in `<folder>@<version>`, and the next one begins.

A kept version is an ordinary pack whose digest is that of the pack it was copied from.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from steelyard.benchmarks.pack.digest import file_digests, folder_digest
from steelyard.benchmarks.pack.load import load_pack
from steelyard.benchmarks.pack.paths import SKIPPED_NAMES, PathProblem
from steelyard.benchmarks.pack.schema import PACK_FILE
from steelyard.config.errors import BadInput, Fault, Where
from steelyard.config.source import read_file

_KEPT = re.compile(r"(?P<name>.+)@(?P<version>0|[1-9][0-9]{0,8})")
_NUMBER = re.compile(r"\d+")
_KEEP_EACH: Final = "keep each version's content as it was: take the folder away, or count on"


class NothingChanged(BadInput):
    """A version would hold what an earlier one holds."""


@dataclass(frozen=True, slots=True)
class NewVersion:
    """What `new_version` did."""

    slug: str
    folder: Path
    was: int
    version: int
    kept: Path | None
    """Where the version that was is now; None where it was not to be kept."""
    digest: str
    """Of the new version's files, hex."""


def kept_version(folder: Path) -> int | None:
    """Give the version that a folder's name says it keeps; None for any other folder."""
    found = _KEPT.fullmatch(folder.name)
    return int(found["version"]) if found else None


def kept_folders(folder: Path) -> list[Path]:
    """List the kept versions of a pack that lie beside it, the oldest first.

    Args:
        folder: the pack's own.
    """
    found = []
    try:
        with os.scandir(folder.parent) as entries:
            names = [entry.name for entry in entries]
    except OSError:
        return []
    for name in names:
        match = _KEPT.fullmatch(name)
        if match and match["name"] == folder.name and (folder.parent / name / PACK_FILE).is_file():
            found.append((int(match["version"]), folder.parent / name))
    return [path for _, path in sorted(found)]


def new_version(path: Path, *, keeps: bool = True) -> NewVersion:
    """Keep a pack as it is beside itself, and count its `version` up by one, comments kept.

    Args:
        path: the pack's folder.
        keeps: False: only count; for a pack that was changed before anybody thought of it.

    Raises:
        NothingChanged: it holds only what its latest kept version holds.
        BadInput: it is malformed, or another content is kept as this version already.
        Fault: the disk refused.
    """
    pack = load_pack(path)
    folder, was = pack.root, pack.file.version
    if kept_version(folder) is not None:
        raise BadInput(
            f"{folder.name} is a version that was kept, and stays as it is",
            where=Where(str(path)),
            remedy=f"name the pack itself: {folder.name.rpartition('@')[0]}",
        )
    kept = folder.with_name(f"{folder.name}@{was}")
    others = [one for one in kept_folders(folder) if one != kept]
    latest = others[-1] if others else None
    if latest is not None and _holds_the_same(folder, latest):
        raise NothingChanged(
            f"version {was} holds what version {kept_version(latest)} holds",
            where=Where(str(path)),
            remedy="change it first: a new version stands for a change",
        )
    text = _counted_up(folder / PACK_FILE, was)
    try:
        if keeps:
            _keep(folder, kept, pack.digest)
        _replace(folder / PACK_FILE, text)
        digest = folder_digest(folder)
    except (OSError, PathProblem, shutil.Error) as error:
        said = getattr(error, "strerror", None) or error
        raise Fault(f"{folder}: the new version could not be written: {said}") from error
    return NewVersion(pack.file.slug, folder, was, was + 1, kept if keeps else None, digest)


def _keep(folder: Path, kept: Path, digest: str) -> None:
    """Copy a pack, whole or not at all."""
    if os.path.lexists(kept):
        if kept.is_dir() and folder_digest(kept) == digest:
            return  # an earlier call got so far
        raise BadInput("is there already, with other content", where=Where(str(kept)),
                       remedy=_KEEP_EACH)  # fmt: skip
    partial = kept.with_name(f".{kept.name}.{secrets.token_hex(4)}")
    try:
        shutil.copytree(
            folder, partial, symlinks=True, ignore=shutil.ignore_patterns(*SKIPPED_NAMES)
        )
        partial.rename(kept)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _replace(file: Path, text: str) -> None:
    partial = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    try:
        partial.write_text(text, "utf-8", newline="")
        shutil.copymode(file, partial)
        partial.replace(file)
    finally:
        partial.unlink(missing_ok=True)


def _counted_up(file: Path, was: int) -> str:
    """Give the text of a `pack.yaml` with its version one higher, nothing else touched."""
    before, number, after, where = _around_version(file)
    if number != str(was):
        raise BadInput("the version cannot be counted up where it stands", where=where,
                       remedy=f"write it as a plain number: version: {was}")  # fmt: skip
    return f"{before}{was + 1}{after}"


def _around_version(file: Path) -> tuple[str, str, str, Where]:
    """Split a `pack.yaml` at its version's digits; none where the number is written otherwise."""
    where = read_file(file).nearest(("version",)).origin.where
    with file.open(encoding="utf-8", newline="") as source:  # line ends stay as they are
        text = source.read()
    lines = text.split("\n")
    line, column = (where.line or 1) - 1, (where.column or 1) - 1
    start = sum(len(one) + 1 for one in lines[:line]) + column
    found = _NUMBER.match(text, start)
    end = found.end() if found else start
    return text[:start], text[start:end], text[end:], where


def _holds_the_same(folder: Path, earlier: Path) -> bool:
    """True where two packs differ by nothing but their version's number."""
    try:
        return _content(folder) == _content(earlier)
    except (BadInput, OSError, PathProblem):
        return False  # what cannot be read holds something else


def _content(folder: Path) -> tuple[str, str, list[str]]:
    before, _, after, _ = _around_version(folder / PACK_FILE)
    own = (f"file {PACK_FILE}\0", f"program {PACK_FILE}\0")
    return before, after, [one for one in file_digests(folder) if not one.startswith(own)]
