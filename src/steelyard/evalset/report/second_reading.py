"""`python -m steelyard.evalset.report.second_reading`: reads the last cells of a set for a report.

It writes nothing to the disk; its answer, one JSON document, goes to standard output.
"""

from __future__ import annotations

import gc
import signal
import sys
from pathlib import Path

from steelyard.evalset.report.cell_json import cells_json
from steelyard.evalset.report.reading import PacksOfCells, read_each
from steelyard.evalset.set_reader import OpenedSet


def told_cells(root: Path, first: int, metric: str | None) -> bytes:
    """Read the cells of a set from the `first`-th on, for `SecondReader.cells`."""
    opened = OpenedSet(root)
    return cells_json(root, read_each(opened, opened.cells[first:], PacksOfCells(), metric))


def main() -> int:
    """Answer the process that started this one: its set, the first cell, perhaps a metric."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ctrl-c is for the parent, which ends us
    gc.disable()  # as the report does: records have no cycles
    root, first, *metric = sys.argv[1:]
    sys.stdout.buffer.write(told_cells(Path(root), int(first), metric[0] if metric else None))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
