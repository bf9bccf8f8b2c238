"""Task folders written from a few lines, and attempts at them."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from steelyard.benchmarks.harbor import Harbor
from steelyard.components.environment import Environment
from steelyard.components.harness import Harness
from steelyard.engine.spec import ExecutionResult
from steelyard.environments.host_process import HostProcess
from steelyard.harnesses.nop import Nop
from steelyard.testing.attempts import run_attempt_now

REWARD = '"$STEELYARD_LOGS_DIR/verifier/reward.txt"'
PASSES = f"test -f done && echo 1 >{REWARD} || echo 0 >{REWARD}"
TOML = """
schema_version = "1.4"
[environment]
network_mode = "no-network"
"""


def write_task(
    root: Path,
    name: str = "one",
    *,
    toml: str = TOML,
    test: str | None = PASSES,
    solve: str | None = "touch done",
    instruction: str | None = "Make a file called done.",
    files: Mapping[str, str] | None = None,
) -> Path:
    """Write a task; None leaves a file out. Returns its folder."""
    task = root / name
    found = {"task.toml": toml, "environment/Dockerfile": "FROM scratch\nWORKDIR /app\n"}
    if test is not None:
        found["tests/test.sh"] = f"#!/bin/sh\n{test}\n"
    if solve is not None:
        found["solution/solve.sh"] = f"#!/bin/sh\n{solve}\n"
    if instruction is not None:
        found["instruction.md"] = instruction
    for path, text in {**found, **(files or {})}.items():
        place = task / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(textwrap.dedent(text).lstrip("\n") if path == "task.toml" else text)
    return task


def harbor(path: Path, **params: Any) -> Harbor:
    """Make the benchmark, without images."""
    return Harbor(Harbor.Params.model_validate({"path": str(path), "images": "none", **params}))


def attempt(
    benchmark: Harbor,
    harness: Harness | None = None,
    environment: Environment | None = None,
) -> ExecutionResult:
    """Run one attempt at the first task."""
    task = benchmark.load_tasks()[0]
    provider = environment or HostProcess(HostProcess.Params())
    return run_attempt_now(benchmark, task, harness or Nop(Nop.Params()), provider)
