"""Launch an orchestration given as data, in process."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from steelyard.config.resolution import Resolution
from steelyard.config.resolve import resolve_orchestration
from steelyard.engine.events import LaunchResult, Observer
from steelyard.engine.launch import launch, prepare
from steelyard.results.files import NO_FAULTS, Faults
from steelyard.results.reader import RunReader
from steelyard.results.records import AttemptRecord

COMPONENTS = Path(__file__).with_name("components.py")


def request(
    name: str = "r",
    *,
    benchmark: dict[str, Any] | None = None,
    harness: dict[str, Any] | None = None,
    **rest: Any,
) -> dict[str, Any]:
    return {
        "name": name,
        "benchmark": {"id": f"{COMPONENTS}:Counted", **(benchmark or {})},
        "harness": {"id": f"{COMPONENTS}:Scripted", **(harness or {})},
        "model": {"id": "none"},
        "environment": {"id": "host_process"},
    } | rest


def resolved(tmp_path: Path, *requests: dict[str, Any], **top: Any) -> Resolution:
    """Resolve these requests with results below `tmp_path`."""
    runtime = {"results_dir": str(tmp_path / "results"), **top.pop("runtime", {})}
    document = {"requests": list(requests), "runtime": runtime, **top}
    path = tmp_path / "orchestration.json"
    path.write_text(json.dumps(document))
    return resolve_orchestration(path, environ={}, cwd=tmp_path)


def run_all(
    tmp_path: Path,
    *requests: dict[str, Any],
    observer: Observer | None = None,
    faults: Faults = NO_FAULTS,
    **top: Any,
) -> LaunchResult:
    """Launch these requests with results below `tmp_path`."""
    prepared = prepare(resolved(tmp_path, *requests, **top))
    return asyncio.run(launch(prepared, observer=observer, faults=faults))


def records(result: LaunchResult, index: int = 0) -> list[AttemptRecord]:
    return list(RunReader(result.requests[index].run_dir).records())
