"""Analyzing a large run: time and peak memory, and what only reading its records takes."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measures import Figure
from benchmarks.processes import STEELYARD, CommandFailed, run

_FLOOR = """
import sys, time
from pathlib import Path
from steelyard.results.reader import RunReader
began = time.perf_counter()
count = sum(1 for _ in RunReader(Path(sys.argv[1])).records())
print(count, time.perf_counter() - began)
"""
STEPS = 8
"""Of each trajectory: tool calls, what they gave back, an answer."""


def write_run(folder: Path, attempts: int) -> Path:
    """Write a run of failed attempts, each with a trajectory; every tenth one's is in a loop."""
    from steelyard.components.clock import SystemClock
    from steelyard.components.issues import Outcome
    from steelyard.components.model import ToolCall
    from steelyard.components.steps import Step, ToolResult
    from steelyard.components.values import NO_USAGE, Trust, Usage
    from steelyard.results.journal import EventKind, Journal
    from steelyard.results.layout import RunPaths, attempt_folder
    from steelyard.results.records import AttemptRecord
    from steelyard.results.run_folder import create_run
    from steelyard.results.syncer import Syncer
    from steelyard.results.trajectory import atif_document, write_trajectory

    metric = {"name": "passed", "kind": "binary", "higher_is_better": True}
    document = {
        "benchmark_info": {"id": "b", "version": "1", "primary": "passed", "metrics": [metric]},
        "plan": {"k": 1, "strategy": "avg", "early_stop": False},
        "request": {"name": "large"},
    }
    clock = SystemClock()

    def steps(number: int) -> list[Step]:
        made = [Step("user", "Find the value. " * 20)]
        for turn in range(STEPS - 2):
            word = "same" if number % 10 == 0 else f"{number} {turn}"
            call = ToolCall(f"c{turn}", "search", json.dumps({"query": word}))
            result = ToolResult(f"c{turn}", f"what was found of {word}. " * 30)
            made.append(Step("agent", "", {}, (call,), (result,)))
        return [*made, Step("agent", "It is 41, by all that was found.", {"stop_reason": "stop"})]

    async def write() -> Path:
        made = create_run(RunPaths(folder, None, "large", "run"), document, clock=clock)
        syncer = Syncer()
        journal = Journal(made, clock=clock, syncer=syncer)
        journal.event(EventKind.PLANNED, tasks=attempts, k=1)
        for number in range(attempts):
            task_id = f"task-{number}"
            atif = atif_document(
                steps(number), session_id="s", harness="h", version="1", model="m", usage=NO_USAGE
            )
            record = AttemptRecord(
                task_id,
                1,
                Outcome.SCORED,
                {"passed": False},
                "It is 41, by all that was found.",
                executions=1,
                usage=Usage(1000, 100, requests=STEPS),
                trust=Trust.CONTAINED,
                trajectory=write_trajectory(made.root, attempt_folder(task_id, 1), atif),
                details={"reasons": {"exact": "expected '42'"}},
                category=f"category {number % 7}",
            )
            journal.record(record)
            if number % 500 == 0:
                journal.flush()
        journal.flush()
        await journal.finish("completed", {"scored": attempts}, None)
        journal.close()
        await syncer.close()
        made.lock.release()
        return made.root

    return asyncio.run(write())


def measure(*, scale: float) -> Iterator[Figure]:
    """Analyze 10,000 failed attempts with the command, their trajectories read whole."""
    attempts = int(10_000 * scale)
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        root = write_run(Path(name), attempts)
        alone = run([sys.executable, "-c", _FLOOR, str(root)], cwd=Path(name))
        count, floor_s = alone.stdout.split()
        used = run([*STEELYARD, "analysis", str(root), "--json"], cwd=Path(name))
        found = json.loads((root / "analysis.json").read_bytes())["analyses"][0]["data"]
        classes = {one["class"]: one["count"] for one in found["classes"]}
        if int(count) != attempts or classes != {
            "wrong_answer": attempts - attempts // 10,
            "loop": attempts // 10,
        }:
            raise CommandFailed(f"of {attempts} attempts: {count} read, {classes}")
    title = f"analysis of {attempts:,} failed attempts"
    note = "floor: reading the records alone"
    yield Figure(title, used.wall_s, "s", 10, floor=float(floor_s), note=note)
    yield Figure(f"{title}: peak memory", used.max_rss_mib, "MiB", 150)
