"""The newest run of a folder: what is meant where a folder of runs is named in place of a run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from steelyard.results.documents import RunUnreadable, began_order, holds_run, read_run_document

MAX_DEPTH: Final = 4
"""`<results_dir>/[<run_name>/]<namespace>/<run_id>`: a run lies no deeper."""


@dataclass(frozen=True, slots=True)
class NewestRun:
    """A run directory, and how many runs it was chosen from."""

    root: Path
    among: int
    """0 where the path itself was taken."""


def newest_run(path: Path) -> NewestRun:
    """Give the run directory that a path names: itself, or the newest run below it.

    A path that holds no run is given back: whoever reads it says what is wrong with it.
    """
    if holds_run(path) or not path.is_dir():
        return NewestRun(path, 0)
    return newest_of(runs_below(path)) or NewestRun(path, 0)


def newest_of(roots: Iterable[Path]) -> NewestRun | None:
    """Choose the run that began last; None where none can be read."""
    found: list[tuple[tuple[str, int, str], Path]] = []
    for root in roots:
        try:
            found.append((began_order(read_run_document(root), root.name), root))
        except RunUnreadable:
            continue
    return NewestRun(max(found)[1], len(found)) if found else None


def runs_below(folder: Path, depth: int = MAX_DEPTH) -> Iterator[Path]:
    """Find the run directories in and below a folder; links are not followed."""
    return folders_below(folder, holds_run, depth)


def folders_below(folder: Path, holds: Callable[[Path], bool], depth: int) -> Iterator[Path]:
    """Find the outermost folders that hold something, in and below one; links are not followed."""
    if holds(folder):
        yield folder
        return
    if depth <= 0:
        return
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False) and not entry.name.startswith("."):
                yield from folders_below(Path(entry.path), holds, depth - 1)
