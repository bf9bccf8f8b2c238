"""Stopping a launch whose sandboxes are all at work: from the signal to the end of the process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from benchmarks.measures import Figure
from benchmarks.processes import STEELYARD, CommandFailed, clean_environment
from benchmarks.work import only_run, write_orchestration, write_pack

SANDBOXES = 64
REPEATS = 3
_WAIT_S = 120.0


def _sleepers(word: str) -> int:
    """Count the programs of this measure that run; their second word is their own."""
    found = 0
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += path.read_bytes() == f"sleep\0{word}\0".encode()
        except OSError:
            continue
    return found


def stop_once(folder: Path, sandboxes: int) -> float:
    """Start a launch, wait for all its sandboxes, send SIGINT; give the seconds until it ended.

    Raises:
        CommandFailed: it did not start all, ended with another status than 130, or left
            programs, folders or an open ledger.
    """
    word = f"9{os.getpid()}{time.monotonic_ns() % 10**6}"
    file = write_orchestration(
        folder / "stop.yaml",
        pack=write_pack(folder / "pack", sandboxes),
        harness="command",
        environment="sandbox",
        concurrency=sandboxes,
        results=folder / "results",
    )
    document = json.loads(file.read_text())
    document["requests"][0]["harness"]["run"] = ["sleep", word]
    file.write_text(json.dumps(document))
    temporary = folder / "tmp"
    temporary.mkdir(mode=0o755)
    folder.chmod(0o755)
    child = subprocess.Popen(
        [*STEELYARD, "launch", str(file)],
        cwd=folder,
        env=clean_environment(TMPDIR=str(temporary)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        deadline = time.monotonic() + _WAIT_S
        while (live := _sleepers(word)) < sandboxes:
            if child.poll() is not None or time.monotonic() > deadline:
                raise CommandFailed(f"{live} of {sandboxes} sandboxes started")
            time.sleep(0.1)
        began_s = time.perf_counter()
        child.send_signal(signal.SIGINT)
        _, said = child.communicate(timeout=_WAIT_S)
        took_s = time.perf_counter() - began_s
    finally:
        if child.poll() is None:
            child.kill()
            child.communicate()
    made = only_run(folder / "results")
    cancelled = sum(b'"outcome":"cancelled"' in line for line in made.lines("attempts.jsonl"))
    left = [path.name for path in temporary.iterdir()]
    end = (child.returncode, cancelled, _sleepers(word), left)
    if end != (130, sandboxes, 0, []) or not (made.folder / "summary.md").exists():
        raise CommandFailed(f"status, cancelled, programs and folders left: {end}\n{said[-2000:]}")
    return took_s


def measure(*, scale: float) -> Iterator[Figure]:
    """SIGINT to exit with 64 live sandboxes, everything ended, recorded and summed up."""
    sandboxes = max(2, int(SANDBOXES * scale))
    times = []
    for _ in range(REPEATS):
        with tempfile.TemporaryDirectory(prefix="bench-") as name:
            times.append(stop_once(Path(name), sandboxes))
    worst = max(times)
    yield Figure(
        f"SIGINT to exit with {sandboxes} live sandboxes",
        worst,
        "s",
        5,
        note=f"the slowest of {REPEATS}; median {median(times):.2f} s",
    )
