"""What an attempt of one model call costs, and how close a slow model's limit is reached."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from benchmarks.measures import Figure
from benchmarks.processes import STEELYARD, Used, run
from benchmarks.work import (
    expect_attempts,
    mock_model,
    only_run,
    write_orchestration,
    write_pack,
)

CONCURRENCY = 64
REPEATS = 3


def launch(folder: Path, base_url: str, pack: Path, attempts: int, name: str) -> Used:
    """Launch `chat` on a pack against a mock model."""
    results = folder / f"results-{name}"
    file = write_orchestration(
        folder / f"{name}.yaml",
        pack=pack,
        harness="chat",
        concurrency=CONCURRENCY,
        results=results,
        model={
            "id": "mock",
            "base_url": base_url,
            "api_key": "EMPTY",
            "max_connections": CONCURRENCY,
        },
    )
    used = run([*STEELYARD, "launch", str(file)], cwd=folder)
    expect_attempts(only_run(results), attempts)
    return used


def measure(*, scale: float) -> Iterator[Figure]:
    """CPU of one-call attempts in our process; throughput at 1 s latency."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        one = write_pack(folder / "pack-1", 1)
        attempts = int(2_000 * scale)
        many = write_pack(folder / "pack-many", attempts)
        with mock_model(folder, "--echo") as base_url:
            starts = [launch(folder, base_url, one, 1, f"start-{i}") for i in range(REPEATS)]
            wholes = [
                launch(folder, base_url, many, attempts, f"calls-{i}") for i in range(REPEATS)
            ]
        cpu_s = median(u.cpu_s for u in wholes) - median(u.cpu_s for u in starts)
        title = f"chat, {attempts:,} attempts, {CONCURRENCY} at once: CPU an attempt"
        yield Figure(title, cpu_s / attempts * 1000, "ms", 3.5)

        rounds = attempts / CONCURRENCY
        with mock_model(folder, "--echo", "--latency", "1") as base_url:
            start = launch(folder, base_url, one, 1, "slow-start")
            whole = launch(folder, base_url, many, attempts, "slow")
        took_s = whole.wall_s - (start.wall_s - 1.0)
        title = f"chat at 1 s latency, {attempts:,} attempts: share of the ideal throughput"
        yield Figure(title, rounds / took_s, "×", 0.95, sense="at least", floor=1)
