"""Large plans and bursts: peak memory, time to the first attempt, how late the event loop runs."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from benchmarks.measures import Figure
from benchmarks.processes import STEELYARD, CommandFailed, clean_environment, run
from benchmarks.work import RunFiles, expect_attempts, only_run, write_orchestration, write_pack

HERE = Path(__file__).resolve().parent.parent


def first_started_at(made: RunFiles) -> float:
    """Unix time of a run's first `started` event."""
    for event in made.events():
        if event["kind"] == "started":
            return datetime.fromisoformat(event["at"]).timestamp()
    raise CommandFailed("the run has no `started` event")


def large_plan(folder: Path, attempts: int) -> Iterator[Figure]:
    """Run a plan of very many tasks to its end."""
    file = write_orchestration(
        folder / "large.yaml",
        pack=write_pack(folder / "pack", attempts),
        harness="nop",
        concurrency=32,
        results=folder / "results",
    )
    used = run([*STEELYARD, "launch", str(file)], cwd=folder)
    made = only_run(folder / "results")
    expect_attempts(made, attempts)
    title = f"{attempts:,} planned attempts"
    yield Figure(f"{title}: peak memory", used.max_rss_mib, "MiB", 200)
    waited_s = first_started_at(made) - used.started_at
    yield Figure(f"{title}: first attempt started after", waited_s, "s", 3)


def burst_of_sandboxes(folder: Path) -> Iterator[Figure]:
    """Start 64 sandboxes at once, and see how late the event loop runs meanwhile."""
    file = write_orchestration(
        folder / "burst.yaml",
        pack="humaneval",
        harness="oracle",
        environment="sandbox",
        concurrency=64,
        results=folder / "results",
    )
    report = folder / "burst.report"
    extra = {"BENCH_LOOP_LAG": "1", "BENCH_REPORT": str(report), "PYTHONPATH": str(HERE)}
    command = [sys.executable, "-m", "benchmarks.instrumented", "launch", str(file)]
    run(command, cwd=folder, env=clean_environment(**extra))
    lags_s = sorted(json.loads(report.read_text())["lags_s"])
    if len(lags_s) < 100:
        raise CommandFailed(f"only {len(lags_s)} samples of the event loop's lag were taken")
    p99_ms = lags_s[int(len(lags_s) * 0.99)] * 1000
    yield Figure("64 sandboxes at once: loop lag p99", p99_ms, "ms", 50, floor=0)


def measure(*, scale: float) -> Iterator[Figure]:
    """Memory, time to the first attempt, loop lag."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        yield from large_plan(Path(name), int(100_000 * scale))
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        yield from burst_of_sandboxes(Path(name))
