"""Where everything of an eval set lies; names only, nothing is made here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from steelyard.config.names import MAX_CHARACTERS, MAX_NAME_BYTES, normalise


@dataclass(frozen=True, slots=True)
class SetFiles:
    """The files of a set, for those who have its folder."""

    root: Path

    @property
    def document(self) -> Path:
        """`evalset.json`: manifest, expansion, digests."""
        return self.root / "evalset.json"

    @property
    def submissions(self) -> Path:
        """A file for each thing that was asked of the set: what was to run, how it ended."""
        return self.root / "submissions"

    @property
    def lock(self) -> Path:
        """Held by the process that runs the set."""
        return self.root / "lock"

    @property
    def cells(self) -> Path:
        """The `results_dir` of the set's orchestration: a folder of runs for each cell."""
        return self.root / "cells"

    @property
    def findings(self) -> Path:
        """What scanners found, and what people said of it."""
        return self.root / "findings.jsonl"

    @property
    def scans(self) -> Path:
        """Which scanner, of which version, has read which attempt."""
        return self.root / "scans.jsonl"

    @property
    def findings_lock(self) -> Path:
        """Held for the moment in which findings or scans are appended."""
        return self.root / "findings.lock"

    @property
    def scan_lock(self) -> Path:
        """Held by the process whose scanners read the set."""
        return self.root / "scan.lock"

    def cell(self, folder: str) -> Path:
        """The folder of a cell's runs."""
        return self.cells / folder


def set_namespace(results_dir: Path, run_name: str | None, name: str) -> Path:
    """Give the folder of all sets of a name."""
    base = results_dir / normalise(run_name) if run_name else results_dir
    return base / normalise(name)


def cell_folder(index: int, matrix_key: str) -> str:
    """Give a cell's folder, which is also its request's name: its number tells cells apart.

    A long key is cut without a hash: the name must stay as it is when it is normalised again.
    """
    folder = f"{index:04d}-{normalise(matrix_key)}"[:MAX_CHARACTERS]
    while len(folder.encode()) > MAX_NAME_BYTES:
        folder = folder[:-1]
    return normalise(folder.rstrip(".-"))
