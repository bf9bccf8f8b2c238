"""The work that is measured: generated packs, orchestrations, a mock model, and their results."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.processes import STEELYARD, CommandFailed, clean_environment

PACK = """\
schema: pack/v1
slug: generated
version: 1
name: Generated
description: Cases made by the benchmarks.
prompt: "{{ question }}"
cases: cases.jsonl
reference: "{{ answer }}"
scoring:
  validators:
    - {type: exact, expected: "{{ answer }}"}
"""


def write_pack(folder: Path, cases: int) -> Path:
    """Write a pack of small cases."""
    folder.mkdir(parents=True)
    (folder / "pack.yaml").write_text(PACK)
    with (folder / "cases.jsonl").open("w") as file:
        for number in range(cases):
            case = {"id": f"c{number}", "question": f"What is {number} + 1?", "answer": number + 1}
            file.write(json.dumps(case | {"answer": str(number + 1)}) + "\n")
    return folder


def write_orchestration(
    path: Path,
    *,
    pack: Path | str,
    harness: str,
    concurrency: int,
    results: Path,
    environment: str = "host_process",
    model: Mapping[str, Any] | None = None,
    requests: int = 1,
) -> Path:
    """Write an orchestration; JSON, which is YAML too."""
    document = {
        "name": "bench",
        "task_concurrency": concurrency,
        "runtime": {"results_dir": str(results), "progress": "none"},
        "requests": [
            {
                "name": f"bench-{number}",
                "benchmark": {"id": str(pack)},
                "harness": {"id": harness},
                "environment": {"id": environment},
                "model": dict(model or {"id": "none"}),
            }
            for number in range(requests)
        ],
    }
    path.write_text(json.dumps(document))
    return path


@dataclass(frozen=True, slots=True)
class RunFiles:
    """A finished run's directory, as the benchmarks look at it."""

    folder: Path

    @property
    def disk_bytes(self) -> int:
        """What the run takes on disk, whole blocks counted."""
        return sum(p.stat().st_blocks * 512 for p in self.folder.rglob("*") if p.is_file())

    def lines(self, name: str) -> list[bytes]:
        """The raw lines of one of its files."""
        return (self.folder / name).read_bytes().splitlines(keepends=True)

    def events(self) -> Iterator[dict[str, Any]]:
        """The events; the check sum that closes a line is left out."""
        for line in self.lines("events.jsonl"):
            yield json.loads(line.rpartition(b"\t")[0])


def only_run(results: Path) -> RunFiles:
    """Find the single run below a results folder."""
    found = list(results.rglob("attempts.jsonl"))
    if len(found) != 1:
        raise CommandFailed(f"expected one run below {results}, found {len(found)}")
    return RunFiles(found[0].parent)


def expect_attempts(run: RunFiles, attempts: int) -> None:
    """Refuse figures of a run that did not do its work.

    Raises:
        CommandFailed: another number of records, or one that was not scored.
    """
    lines = run.lines("attempts.jsonl")
    scored = sum(b'"outcome":"scored"' in line for line in lines)
    if (len(lines), scored) != (attempts, attempts):
        raise CommandFailed(f"{attempts} attempts planned, {len(lines)} recorded, {scored} scored")


@contextmanager
def mock_model(folder: Path, *options: str) -> Iterator[str]:
    """Start a mock model in a process of its own, and give its base URL."""
    port_file = folder / "port"
    port_file.unlink(missing_ok=True)
    log = (folder / "mock-model.log").open("wb")
    process = subprocess.Popen(
        [*STEELYARD, "mock-model", *options, "--port-file", str(port_file)],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        env=clean_environment(),
    )
    try:
        deadline = time.monotonic() + 20
        while not (port_file.exists() and port_file.read_text().strip()):
            if process.poll() is not None or time.monotonic() > deadline:
                said = (folder / "mock-model.log").read_text()
                raise CommandFailed(f"mock-model did not start:\n{said[-2000:]}")
            time.sleep(0.02)
        yield f"http://127.0.0.1:{int(port_file.read_text())}/v1"
    finally:
        os.kill(process.pid, signal.SIGTERM)
        process.wait(timeout=20)
        log.close()
