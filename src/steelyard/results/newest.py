"""The newest run of a request: what is meant where a folder of runs is named in place of a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from steelyard.results.documents import RunUnreadable, read_run_document
from steelyard.results.layout import RunFiles


@dataclass(frozen=True, slots=True)
class NewestRun:
    """A run directory, and how many runs it was chosen from."""

    root: Path
    among: int
    """0 where the path itself was taken."""


def newest_run(path: Path) -> NewestRun:
    """Give the run directory that a path names: itself, or the newest run right below it.

    A path that holds no run is given back: whoever reads it says what is wrong with it.
    """
    if RunFiles(path).document.exists() or not path.is_dir():
        return NewestRun(path, 0)
    found: list[tuple[str, int, Path]] = []
    for child in path.iterdir():
        if not RunFiles(child).document.exists():
            continue
        try:
            created = str(read_run_document(child).get("created_at", ""))
        except RunUnreadable:
            continue
        number = child.name.partition("-")[2]  # `-2`, `-3`: of one second
        found.append((created, int(number) if number.isdecimal() else 1, child))
    return NewestRun(max(found)[2], len(found)) if found else NewestRun(path, 0)
