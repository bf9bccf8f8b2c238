"""Fair limits in the whole product: who shares a pool with a limited provider, and with retries.

Calls of a mock model take a known time, so that what admission, driver and records cost would show
as idle slots. The rules themselves are tested on a simulated clock, in `tests/engine`:
`test_fair_limits.py` and `test_retry_schedule.py`.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.measures import Figure
from benchmarks.processes import STEELYARD, CommandFailed, clean_environment, run
from benchmarks.work import RunFiles, mock_model, write_pack

HERE = Path(__file__).resolve().parent.parent
SLOTS = 16
LIMIT = 2
"""Of the limited provider; the others are compared at the slots that it leaves."""
ROUNDS = 3
LATENCY_S = 0.5
FAILING = 0.3
RETRIES = 3
SHRUNK = 0.2
"""Calls of a second and the waits before retries are shrunk alike: a schedule of two minutes is
played in half a minute, with all that the product does for each attempt in its real size."""


def launch(
    folder: Path,
    name: str,
    requests: Mapping[str, Mapping[str, Any]],
    concurrency: int,
    runtime: Mapping[str, Any] | None = None,
    *,
    may_fail: bool = False,
    backoff_factor: float | None = None,
) -> dict[str, RunFiles]:
    """Launch requests; give the run of each by its name."""
    results = folder / f"results-{name}"
    document = {
        "name": "bench",
        "task_concurrency": concurrency,
        "runtime": {"results_dir": str(results), "progress": "none", **(runtime or {})},
        "requests": [{"name": key, **request} for key, request in requests.items()],
    }
    file = folder / f"{name}.json"
    file.write_text(json.dumps(document))
    command, env = [*STEELYARD, "launch", str(file)], None
    if backoff_factor is not None:
        command = [sys.executable, "-m", "benchmarks.instrumented", *command[1:]]
        env = clean_environment(
            BENCH_BACKOFF_FACTOR=str(backoff_factor),
            BENCH_REPORT=str(folder / f"{name}.report"),
            PYTHONPATH=str(HERE),
        )
    try:
        run(command, cwd=folder, env=env)
    except CommandFailed:
        if not may_fail:  # else whoever asked counts what was recorded
            raise
    return {
        key: RunFiles(next((results / key).glob("*/attempts.jsonl")).parent) for key in requests
    }


def chat(pack: Path, base_url: str, environment: str, **rest: Any) -> dict[str, Any]:
    """A request of one call an attempt; `chat` opens no environment, but takes its slot."""
    model = {"id": "mock", "base_url": base_url, "api_key": "EMPTY", "max_connections": 64}
    return {
        "benchmark": {"id": str(pack)},
        "harness": {"id": "chat"},
        "environment": {"id": environment},
        "model": model,
        **rest,
    }


def took_s(made: RunFiles, attempts: int) -> float:
    """Seconds from the first attempt's start to the last one's end."""
    timings = [json.loads(line.rpartition(b"\t")[0]) for line in made.lines("attempts.jsonl")]
    if len(timings) != attempts:
        raise CommandFailed(f"{attempts} attempts planned, {len(timings)} recorded")
    began = min(event["at"] for event in made.events() if event["kind"] == "started")
    ended = max(each["timing"]["finished_at"] for each in timings)
    return (datetime.fromisoformat(ended) - datetime.fromisoformat(began)).total_seconds()


def beside_a_limited_provider(folder: Path, scale: float) -> Iterator[Figure]:
    """Throughput of a request beside one whose provider is full, against alone."""
    attempts = max(SLOTS, int(256 * scale))
    # Enough that it waits for its provider from the first attempt of the others to their last.
    crowd = int(attempts / SLOTS * LIMIT * 1.5) + LIMIT
    pack, crowded = write_pack(folder / "pack", attempts), write_pack(folder / "crowd", crowd)
    shares = []
    with mock_model(folder, "--echo", "--latency", str(LATENCY_S)) as base_url:
        others = chat(pack, base_url, "host_process")
        limited = chat(crowded, base_url, "sandbox")
        for number in range(ROUNDS):
            alone = launch(folder, f"alone-{number}", {"others": others}, SLOTS)
            both = launch(
                folder,
                f"both-{number}",
                {"limited": limited, "others": others},
                SLOTS + LIMIT,
                {"provider_limits": {"sandbox": LIMIT}},
            )
            alone_s, both_s = (took_s(made["others"], attempts) for made in (alone, both))
            if took_s(both["limited"], crowd) < both_s:
                raise CommandFailed("the limited request ended before the others")
            shares.append(alone_s / both_s)
    title = f"beside a full provider, {attempts} attempts: share of the throughput alone"
    yield Figure(title, median(shares), "×", 0.98, sense="at least", floor=1)


def with_retries(folder: Path, scale: float) -> Iterator[Figure]:
    """Retries of three executions in ten, against as many executions that need none.

    The second is the ideal schedule: no slot ever waits for a backoff. The two are run in turn,
    so what an attempt costs on this machine is in both. A call that fails takes as long as one
    that does not.
    """
    attempts = max(SLOTS, int(1_500 * scale))
    pack = write_pack(folder / "retried", attempts)
    shares = []
    for number in range(ROUNDS):
        failing = ("--fault", f"500:rate={FAILING}", "--seed", str(number))
        with mock_model(folder, "--echo", "--latency", str(SHRUNK), *failing) as base_url:
            request = chat(pack, base_url, "host_process", execution={"max_retries": RETRIES})
            request["model"]["max_request_retries"] = 0
            name = f"retried-{number}"
            runs = launch(
                folder,
                name,
                {"retried": request},
                SLOTS,
                may_fail=True,  # a few of so many fail four times
                backoff_factor=SHRUNK,
            )
        made = runs["retried"]
        executions = sum(event["kind"] == "started" for event in made.events())
        if not 0.2 < (executions - attempts) / executions < 0.4:
            raise CommandFailed(f"{executions} executions of {attempts} attempts")
        plain = write_pack(folder / f"plain-{number}", executions)
        with mock_model(folder, "--echo", "--latency", str(SHRUNK)) as base_url:
            request = chat(plain, base_url, "host_process")
            ideal = launch(folder, f"ideal-{number}", {"ideal": request}, SLOTS)["ideal"]
        shares.append(took_s(ideal, executions) / took_s(made, attempts))
    title = f"30% retries, {attempts:,} attempts: share of the schedule without waits"
    yield Figure(title, median(shares), "×", 0.95, sense="at least", floor=1)


def measure(*, scale: float) -> Iterator[Figure]:
    """Beside a full provider, and with many retries."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        yield from beside_a_limited_provider(Path(name), scale)
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        yield from with_retries(Path(name), scale)
