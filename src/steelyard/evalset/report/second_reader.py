"""A second process that reads the last cells of a large set, while the first are read here.

It reads files and answers; what it says is what would have been read here, to the bit. Where it
dies, hangs or says anything else, its cells are read here after all.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Final, Self

from steelyard.evalset.report.cell_json import cells_from_json
from steelyard.evalset.report.cell_tally import CellTally, PackCases
from steelyard.evalset.set_document import SetCell
from steelyard.evalset.set_reader import OpenedSet
from steelyard.results.layout import RunFiles

LARGE_BYTES: Final = 96 * 1024 * 1024
"""Of records, some 70,000: below, the process would be ready when nearly all is read."""
_SAMPLES: Final = 16
_FIRST_SHARE: Final = 0.58
"""Of the cells, read here: the other process has to start first."""
_LEAST_WAIT_S: Final = 10.0
_PATIENCE: Final = 3.0
"""It is waited for so many times as long as the cells here took."""
COMMAND: Final = (sys.executable, "-P", "-m", "steelyard.evalset.report.second_reading")


class SecondReader:
    """A process that reads the cells from the `first`-th on; ended when the block is left."""

    def __init__(
        self,
        opened: OpenedSet,
        first: int,
        metric: str | None,
        *,
        command: Sequence[str] = COMMAND,
        least_wait_s: float = _LEAST_WAIT_S,
    ) -> None:
        """Start it.

        Args:
            opened: the set.
            first: the number of its first cell, from 0.
            metric: what is reported.
            command: what is started.
            least_wait_s: how long it is waited for at least, once its answer is needed.

        Raises:
            OSError: it cannot be started.
        """
        self.first = first
        self._root = opened.root
        self._cells = opened.cells[first:]
        self._least_wait_s = least_wait_s
        self._began = monotonic()
        named = () if metric is None else (metric,)
        self._process = subprocess.Popen(  # noqa: S603 — our words, no shell
            [*command, str(opened.root), str(first), *named],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._process:
            self._process.kill()

    def cells(self, cases: Sequence[PackCases]) -> list[CellTally] | None:
        """Give what it has read; None where that cannot be used.

        Args:
            cases: of each of its cells, the pack's.
        """
        wait_s = max(self._least_wait_s, _PATIENCE * (monotonic() - self._began))
        try:
            data, _ = self._process.communicate(timeout=wait_s)
            if self._process.returncode == 0:
                return cells_from_json(data, self._root, self._cells, cases)
        except (subprocess.TimeoutExpired, OSError, KeyError, TypeError, ValueError, IndexError):
            return None
        return None


def second_reader(opened: OpenedSet, metric: str | None) -> SecondReader | None:
    """Start a second reader; None for a small set, and where there is no core for one."""
    if _cores() < 2 or not is_large(opened):
        return None
    with suppress(OSError):
        return SecondReader(opened, round(len(opened.cells) * _FIRST_SHARE), metric)
    return None


def is_large(opened: OpenedSet, least_bytes: int = LARGE_BYTES) -> bool:
    """True where a set's records are so many that two processes read them sooner than one."""
    step = max(1, len(opened.cells) // _SAMPLES)
    some = opened.cells[::step]
    return sum(_record_bytes(opened, cell) for cell in some) * step >= least_bytes


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _record_bytes(opened: OpenedSet, cell: SetCell) -> int:
    return sum(_size(RunFiles(run).attempts) for run in opened.run_dirs(cell)[:1])


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
