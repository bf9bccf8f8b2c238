"""What it costs to expand a manifest to its cells and to print them."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from benchmarks.measures import Figure
from benchmarks.processes import STEELYARD, run

CELLS = 2000
BOUND_S = 0.050


def write_set(path: Path, cells: int) -> Path:
    """Write a manifest of ten packs, ten agents and as many repeats as make that many cells."""
    sides = 10 if cells >= 100 else 1
    manifest = {
        "schema": "evalset/v1",
        "name": "expansion",
        "packs": [f"team/pack-{number}@3" for number in range(sides)],
        "agents": [{"deployment": f"agent-{number}"} for number in range(sides)],
        "repeats": cells // sides**2,
    }
    path.write_text(json.dumps(manifest), "utf-8")
    return path


def beyond_start_s(folder: Path, cells: int, options: list[str], rounds: int) -> float:
    """CPU of expanding so many cells less that of expanding one, the median of rounds."""
    one, many = write_set(folder / "one.json", 1), write_set(folder / "many.json", cells)
    command = [*STEELYARD, "evalset", "expand"]
    found = []
    for _ in range(rounds + 1):
        small = run([*command, str(one), *options]).cpu_s
        found.append(run([*command, str(many), *options]).cpu_s - small)
    return median(found[1:])


def measure(*, scale: float) -> Iterator[Figure]:
    """Expanding 2,000 cells, printed as a table and as JSON, beyond start-up."""
    cells = max(100, int(CELLS * scale) // 100 * 100)
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        for what, options in (("table", []), ("JSON", ["--json"])):
            cpu_s = beyond_start_s(Path(name), cells, options, max(3, int(15 * scale)))
            label = f"evalset expand of {cells:,} cells, {what}: CPU beyond one cell's"
            yield Figure(label, cpu_s, "s", BOUND_S)
