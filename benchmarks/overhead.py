"""What an attempt costs that does nothing: `nop` on a generated pack, every record on disk."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measures import Figure
from benchmarks.processes import STEELYARD, CommandFailed, Used, clean_environment, run
from benchmarks.work import RunFiles, expect_attempts, only_run, write_orchestration, write_pack

CONCURRENCY = 32
REPEATS = 3
SMALL_REPEATS = 9
"""Of what is over in a second: start-up and the small size differ by little more than noise."""
INSTRUMENTED = (sys.executable, "-m", "benchmarks.instrumented")
HERE = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class Launched:
    """One launch: what it used, what it left, what the instruments saw."""

    used: Used
    run: RunFiles
    fsyncs: int = 0


def launch(
    folder: Path, pack: Path, attempts: int, name: str, *, fsync_delay_ms: float | None = None
) -> Launched:
    """Launch `nop` on a pack; instrumented where a delay (0 too) is given."""
    results = folder / f"results-{name}"
    file = write_orchestration(
        folder / f"{name}.yaml",
        pack=pack,
        harness="nop",
        concurrency=CONCURRENCY,
        results=results,
    )
    arguments = ["launch", str(file)]
    if fsync_delay_ms is None:
        used, seen = run([*STEELYARD, *arguments], cwd=folder), {}
    else:
        report = folder / f"{name}.report"
        extra = {
            "BENCH_FSYNC_DELAY_MS": str(fsync_delay_ms),
            "BENCH_REPORT": str(report),
            "PYTHONPATH": str(HERE),
        }
        used = run([*INSTRUMENTED, *arguments], cwd=folder, env=clean_environment(**extra))
        seen = json.loads(report.read_text())
    made = only_run(results)
    expect_attempts(made, attempts)
    return Launched(used, made, seen.get("fsyncs", 0))


def floor_cpu_s(folder: Path, launched: Launched, name: str) -> float:
    """CPU seconds of the bare loop that writes the same bytes with as many syncs."""
    replay = [sys.executable, "-m", "benchmarks.floor", str(launched.run.folder)]
    counts = [str(CONCURRENCY), str(launched.fsyncs)]
    samples = []
    for number in range(SMALL_REPEATS):
        command = [*replay, str(folder / f"floor-{name}-{number}"), *counts]
        said = run(command, cwd=HERE).stdout
        samples.append(float(said))
    return min(samples)


def measure(*, scale: float) -> Iterator[Figure]:
    """CPU, disk and throughput of attempts that do nothing."""
    per_attempt_ms: dict[int, float] = {}
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        one = write_pack(folder / "pack-1", 1)
        # The least of several: what else the machine does only ever adds to CPU seconds.
        starts = [launch(folder, one, 1, f"start-{i}").used for i in range(SMALL_REPEATS)]
        start_cpu_s = min(used.cpu_s for used in starts)
        sizes = ((int(1_000 * scale), SMALL_REPEATS), (int(10_000 * scale), REPEATS))
        for size, repeats in sizes:
            pack = write_pack(folder / f"pack-{size}", size)
            runs = [launch(folder, pack, size, f"n{size}-{i}") for i in range(repeats)]
            cpu_s = min(one.used.cpu_s for one in runs) - start_cpu_s
            if cpu_s <= 0:
                raise CommandFailed(f"{size} attempts cost less than start-up varies by")
            watched = launch(folder, pack, size, f"watched-{size}", fsync_delay_ms=0)
            floor_ms = floor_cpu_s(folder, watched, str(size)) / size * 1000
            per_attempt_ms[size] = ms = cpu_s / size * 1000
            title = f"nop, {size:,} attempts"
            yield Figure(f"{title}: CPU an attempt", ms, "ms", 0.5, floor=floor_ms)
            yield Figure(f"{title}: CPU against the bare loop", ms / floor_ms, "×", 8, floor=1)
            kib = runs[0].run.disk_bytes / size / 1024
            journals = runs[0].run.lines("events.jsonl") + runs[0].run.lines("attempts.jsonl")
            wrote = sum(map(len, journals)) / size / 1024
            yield Figure(f"{title}: disk an attempt", kib, "KiB", 2, floor=wrote)
        small, large = per_attempt_ms.values()
        growth = max(small, large) / min(small, large) - 1
        yield Figure("nop: difference between the two sizes", growth * 100, "%", 20)
        yield slow_disk(folder, one, pack, size)


def slow_disk(folder: Path, one: Path, pack: Path, size: int) -> Figure:
    """Throughput with 20 ms added to every sync, against that without."""
    starts: dict[float, list[float]] = {0.0: [], 20.0: []}
    wholes: dict[float, list[float]] = {0.0: [], 20.0: []}
    for number in range(2 * REPEATS):
        for delay_ms in starts:  # in turn, so that a drift meets both alike
            label = f"{delay_ms:.0f}-{number}"
            start = launch(folder, one, 1, f"disk-start-{label}", fsync_delay_ms=delay_ms)
            whole = launch(folder, pack, size, f"disk-{label}", fsync_delay_ms=delay_ms)
            starts[delay_ms].append(start.used.wall_s)
            wholes[delay_ms].append(whole.used.wall_s)
    wall_s = {delay_ms: min(wholes[delay_ms]) - min(starts[delay_ms]) for delay_ms in starts}
    ratio = wall_s[0.0] / wall_s[20.0]
    title = "nop: throughput with 20 ms more a sync"
    return Figure(title, ratio, "×", 0.9, sense="at least", floor=1)
