"""Many requests of few cases, and an eval set of them, beside one request of as many cases."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measures import Figure
from benchmarks.processes import STEELYARD, CommandFailed, Used, clean_environment, run
from benchmarks.work import RunFiles, expect_attempts, only_run, write_orchestration, write_pack

HERE = Path(__file__).resolve().parent.parent
REQUESTS = 2_000
CASES = 5
CONCURRENCY = 32
MOST_FOR_MANY = 6.0
"""How many times the CPU of one request's case a case of many may cost: each request has a folder,
a lock, two journals, a summary of its own, and five cases to share that among."""
MOST_BEYOND_LAUNCH_MS = 0.3
"""What a case of an eval set may cost beyond one of the same requests launched."""
MOST_DESCRIPTORS = 400
MOST_MEMORY_MIB = 250


def swept(folder: Path, requests: int) -> tuple[Used, int]:
    """Launch many requests of one pack; give what they used, and the most descriptors open."""
    file = write_orchestration(
        folder / "sweep.json",
        pack=write_pack(folder / "small", CASES),
        harness="nop",
        concurrency=CONCURRENCY,
        results=folder / "sweep",
        requests=requests,
    )
    report = folder / "sweep.report"
    extra = {"BENCH_DESCRIPTORS": "1", "BENCH_REPORT": str(report), "PYTHONPATH": str(HERE)}
    command = [sys.executable, "-m", "benchmarks.instrumented", "launch", str(file)]
    used = run(command, cwd=folder, env=clean_environment(**extra))
    made = [path.parent for path in (folder / "sweep").rglob("attempts.jsonl")]
    if len(made) != requests:
        raise CommandFailed(f"{requests} requests planned, {len(made)} runs found")
    for root in made:
        expect_attempts(RunFiles(root), CASES)
    return used, json.loads(report.read_text())["descriptors"]


def whole(folder: Path, cases: int) -> Used:
    """Launch one request of as many cases."""
    file = write_orchestration(
        folder / "whole.json",
        pack=write_pack(folder / "large", cases),
        harness="nop",
        concurrency=CONCURRENCY,
        results=folder / "whole",
    )
    used = run([*STEELYARD, "launch", str(file)], cwd=folder)
    expect_attempts(only_run(folder / "whole"), cases)
    return used


def launched(folder: Path, requests: int) -> Used:
    """Launch many requests of one pack, as a person does."""
    file = write_orchestration(
        folder / "launched.json",
        pack=folder / "small",
        harness="nop",
        concurrency=CONCURRENCY,
        results=folder / "launched",
        requests=requests,
    )
    return run([*STEELYARD, "launch", str(file)], cwd=folder)


def submitted(folder: Path, cells: int) -> Used:
    """Submit a set of as many cells of the same pack: one agent, so many repeats."""
    agent = {"name": "a", "harness": {"id": "nop"}, "model": {"id": "none"}}
    project = {"deployments": [{**agent, "environment": {"id": "host_process"}}]}
    (folder / "steelyard.yaml").write_text(json.dumps(project), "utf-8")
    manifest = {
        "schema": "evalset/v1",
        "name": "sweep",
        "packs": [str(folder / "small")],
        "agents": [{"deployment": "a"}],
        "repeats": cells,
        "case_fanout": True,
        "execution": {"task_concurrency": CONCURRENCY},
        "runtime": {"results_dir": str(folder / "submitted")},
    }
    file = folder / "set.json"
    file.write_text(json.dumps(manifest), "utf-8")
    used = run([*STEELYARD, "evalset", "submit", str(file)], cwd=folder)
    made = [path.parent for path in (folder / "submitted").rglob("attempts.jsonl")]
    if len(made) != cells:
        raise CommandFailed(f"{cells} cells planned, {len(made)} runs found")
    for root in made:
        expect_attempts(RunFiles(root), CASES)
    return used


def measure(*, scale: float) -> Iterator[Figure]:
    """CPU a case, memory and descriptors of a launch of very many requests."""
    requests = max(1, int(REQUESTS * scale))
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        one = whole(folder, requests * CASES)
        many, descriptors = swept(folder, requests)
        as_requests, as_cells = launched(folder, requests), submitted(folder, requests)
    title = f"{requests:,} requests of {CASES} cases"
    cases = requests * CASES
    yield Figure(
        f"{title}: CPU a case",
        many.cpu_s / one.cpu_s,
        "× one request's",
        MOST_FOR_MANY,
        floor=1.0,
        note=f"{many.cpu_s / cases * 1000:.2f} ms, {one.cpu_s / cases * 1000:.2f} ms",
    )
    yield Figure(f"{title}: peak memory", many.max_rss_mib, "MiB", MOST_MEMORY_MIB)
    yield Figure(f"{title}: descriptors at once", float(descriptors), "", MOST_DESCRIPTORS)
    yield Figure(
        f"{requests:,} cells of {CASES} cases: CPU a case beyond launch's",
        (as_cells.cpu_s - as_requests.cpu_s) / cases * 1000,
        "ms",
        MOST_BEYOND_LAUNCH_MS,
        note=f"{as_cells.cpu_s:.1f} s, {as_requests.cpu_s:.1f} s",
    )
