"""What an attempt costs that does nothing: `nop` on a generated pack, every record on disk."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import truediv
from pathlib import Path
from statistics import median

from benchmarks.measures import Figure
from benchmarks.processes import STEELYARD, CommandFailed, Used, clean_environment, run
from benchmarks.work import RunFiles, expect_attempts, only_run, write_orchestration, write_pack

CONCURRENCY = 32
REPEATS = 3
ROUNDS = 9
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
    return float(run([*replay, str(folder / f"floor-{name}"), *counts], cwd=HERE).stdout)


@dataclass(slots=True)
class Sized:
    """What one size of run needed, a figure a round."""

    pack: Path
    watched: Launched
    ms: list[float] = field(default_factory=list)
    """CPU an attempt beyond start-up."""
    floor_ms: list[float] = field(default_factory=list)


def measure(*, scale: float) -> Iterator[Figure]:
    """CPU, disk and throughput of attempts that do nothing.

    Round by round: start-up, both sizes and their floors one after the other, each figure the
    median over rounds. A machine that grows slower meanwhile then meets all of them alike.
    """
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        one = write_pack(folder / "pack-1", 1)
        sizes: dict[int, Sized] = {}
        for size in (int(1_000 * scale), int(10_000 * scale)):
            pack = write_pack(folder / f"pack-{size}", size)
            watched = launch(folder, pack, size, f"watched-{size}", fsync_delay_ms=0)
            sizes[size] = Sized(pack, watched)
        for number in range(ROUNDS):
            for size, sized in sizes.items():
                start = launch(folder, one, 1, f"start-{size}-{number}").used
                whole = launch(folder, sized.pack, size, f"n{size}-{number}").used
                floor_s = floor_cpu_s(folder, sized.watched, f"{size}-{number}")
                sized.ms.append((whole.cpu_s - start.cpu_s) / size * 1000)
                sized.floor_ms.append(floor_s / size * 1000)
        for size, sized in sizes.items():
            title = f"nop, {size:,} attempts"
            ms, floor_ms = median(sized.ms), median(sized.floor_ms)
            if ms <= 0:
                raise CommandFailed(f"{size} attempts cost less than start-up varies by")
            yield Figure(f"{title}: CPU an attempt", ms, "ms", 0.5, floor=floor_ms)
            times = median(map(truediv, sized.ms, sized.floor_ms))
            yield Figure(f"{title}: CPU against the bare loop", times, "×", 8, floor=1)
            kib = sized.watched.run.disk_bytes / size / 1024
            made = sized.watched.run
            wrote = sum(map(len, made.lines("events.jsonl") + made.lines("attempts.jsonl")))
            yield Figure(f"{title}: disk an attempt", kib, "KiB", 2, floor=wrote / size / 1024)
        small, large = (sized.ms for sized in sizes.values())
        growth = median(map(truediv, large, small))
        difference = max(growth, 1 / growth) - 1
        yield Figure("nop: difference between the two sizes", difference * 100, "%", 20)
        (size, last) = list(sizes.items())[-1]
        yield slow_disk(folder, one, last.pack, size)


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
