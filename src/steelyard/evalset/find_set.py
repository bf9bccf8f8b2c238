"""Find the set that a command means: a folder, an id, a set's name, or `latest`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from steelyard.config.errors import BadInput
from steelyard.config.layers import project_file
from steelyard.config.names import normalise
from steelyard.config.validation import nearest
from steelyard.evalset.layout import SetFiles
from steelyard.evalset.set_reader import OpenedSet, SetUnreadable
from steelyard.results.newest import folders_below

LATEST: Final = "latest"
ITS_FORMS: Final = "a set's folder, its id, its name, or `latest`"
_MAX_DEPTH: Final = 3
"""`<results_dir>/[<run_name>/]<name>/<set_id>`: a set lies no deeper."""


class NoSuchSet(BadInput):
    """Nothing of that name is a set."""


def sets_below(folder: Path, depth: int = _MAX_DEPTH) -> Iterator[Path]:
    """Find the folders of sets in and below a folder; links are not followed."""
    return folders_below(folder, holds_set, depth)


def holds_set(folder: Path) -> bool:
    """True where a folder holds an `evalset.json`."""
    try:
        return SetFiles(folder).document.is_file()
    except OSError:
        return False


def find_set(text: str, results_dir: Path, *, other_than: Path | None = None) -> OpenedSet:
    """Open the set that a text means; of several of one name the newest.

    Args:
        text: a folder; below `results_dir` an id, a name, or `latest`.
        results_dir: where sets are looked for.
        other_than: a set that a name or `latest` does not mean.

    Raises:
        NoSuchSet: there is none, or several have that id.
        SetUnreadable: it is damaged.
    """
    folder = Path(text)
    if text and holds_set(folder):
        return OpenedSet(folder)
    found = list(sets_below(folder)) if text and folder.is_dir() else []
    if found:
        return _newest(found)
    own = None if other_than is None else other_than.resolve()
    roots = [root for root in sets_below(results_dir) if own is None or root.resolve() != own]
    if text == LATEST and roots:
        return _newest(roots)
    if text == LATEST:
        raise NoSuchSet(
            f"there is no eval set below {results_dir.absolute()}",
            remedy=_elsewhere(results_dir) or "`steelyard evalset submit FILE` makes one",
        )
    by_id = [root for root in roots if root.name == text]
    if len(by_id) > 1:
        shown = ", ".join(map(str, sorted(by_id)))
        raise NoSuchSet(f"{len(by_id)} sets have the id {text!r}", remedy=f"name one of {shown}")
    if by_id:
        return OpenedSet(by_id[0])
    named = [root for root in roots if text in {root.parent.name, _name(root)}]
    if not named and normalise(text):
        named = [root for root in roots if root.parent.name == normalise(text)]
    if named:
        return _newest(named)
    near = nearest(text, {name for root in roots for name in (root.name, root.parent.name)})
    raise NoSuchSet(
        f"no eval set {text!r}: no such folder, and nothing of that name below "
        f"{results_dir.absolute()}",
        remedy=f"did you mean {near!r}?"
        if near
        else _elsewhere(results_dir) or f"name {ITS_FORMS}",
    )


def _elsewhere(results_dir: Path) -> str | None:
    """Say where sets lie that were submitted in the project's folder, not in one below it."""
    cwd = Path.cwd()
    file = project_file(cwd)
    if results_dir.is_absolute() or file is None or file.parent == cwd:
        return None
    found = file.parent / results_dir
    if next(sets_below(found), None) is None:
        return None
    return (
        f"a relative results_dir starts from the working folder; there are sets in {found}: "
        f"run this in {file.parent}, or name the set's folder"
    )


def _name(root: Path) -> str | None:
    with suppress(SetUnreadable):
        return OpenedSet(root).name
    return None


def _newest(roots: list[Path]) -> OpenedSet:
    """Open the set that was made last.

    Raises:
        SetUnreadable: none of them can be read.
    """
    opened: list[OpenedSet] = []
    first: SetUnreadable | None = None
    for root in roots:
        try:
            opened.append(OpenedSet(root))
        except SetUnreadable as error:
            first = first or error
    if not opened:
        raise first or NoSuchSet("there is no eval set here", remedy=f"name {ITS_FORMS}")
    return max(opened, key=lambda one: (one.document.created_at, one.root.name))
