"""Reporting on a large set: time and peak memory, and what only reading its lines takes."""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measures import Figure
from benchmarks.processes import STEELYARD, CommandFailed, run

if TYPE_CHECKING:
    from steelyard.evalset.set_document import SetCell
    from steelyard.results.records import AttemptRecord

_FLOOR = """
import sys, time
from pathlib import Path
import orjson
began = time.perf_counter()
count = 0
for path in sorted(Path(sys.argv[1]).glob("cells/*/*/attempts.jsonl")):
    for line in path.read_bytes().split(b"\\n")[:-1]:
        count += "task_id" in orjson.loads(line[:-9])
print(count, time.perf_counter() - began)
"""
CELLS = 2_000
CASES = 100


def write(folder: Path, cases: int, *, graded: bool) -> Path:
    """Write 2,000 cells: 20 packs, 5 agents, 2 models, 10 repeats; some attempts fail.

    Args:
        folder: where to.
        cases: of each pack.
        graded: whether a score is a number, not yes or no.
    """
    from tests.evalset.sets import GRADE, PASSED, a_record, failed, fatal, write_set

    chance = random.Random(0)
    answer = "The refund is due: the order came within thirty days. " * 10

    def records(cell: SetCell) -> Iterator[AttemptRecord]:
        for number in range(cases):
            case, drawn = f"case-{number:03}", chance.random()
            if drawn < 0.02:
                yield fatal(case)
            elif drawn < 0.07:
                yield failed(case)
            else:
                value = round(chance.random(), 3) if graded else chance.random() < 0.6
                yield a_record(
                    case, value, metric="grade" if graded else "passed", answer=answer,
                    agent_s=chance.random() * 60, cost_usd=chance.random() / 100,
                )  # fmt: skip

    return write_set(
        folder, records, packs=[f"pack-{n}" for n in range(20)],
        agents=[f"agent-{n}" for n in range(5)], models=["small", "large"], repeats=10,
        metrics=(GRADE if graded else PASSED,),
    )  # fmt: skip


def measure(*, scale: float) -> Iterator[Figure]:
    """Report on 200,000 rows of 2,000 cells, as JSON; once yes or no, once grades."""
    cases = max(1, int(CASES * scale))
    for graded in (False, True):
        with tempfile.TemporaryDirectory(prefix="bench-") as name:
            root = write(Path(name), cases, graded=graded)
            alone = run([sys.executable, "-c", _FLOOR, str(root)], cwd=Path(name))
            count, floor_s = alone.stdout.split()
            argv = [*STEELYARD, "evalset", "report", str(root), "--json", "-o", "report.json"]
            used = run(argv, cwd=Path(name))
            found = json.loads((Path(name) / "report.json").read_bytes())
            planned = found["whole"]["attempts"]["planned"]
            if not int(count) == planned == CELLS * cases or len(found["cells"]) != CELLS:
                raise CommandFailed(f"{count} lines read, {planned} attempts reported")
        kind = "graded" if graded else "yes or no"
        title = f"report on {CELLS * cases:,} rows of {CELLS:,} cells, {kind}"
        note = "floor: reading the lines with orjson alone"
        yield Figure(title, used.wall_s, "s", 3, floor=float(floor_s), note=note)
        both = "of the larger of two processes; the one that helps to read has about half of it"
        yield Figure(f"{title}: peak memory", used.max_rss_mib, "MiB", 500, note=both)
