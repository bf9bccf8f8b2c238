"""Projects with packs and deployments, whose sets run for real."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from steelyard.evalset.set_plan import SetPlan, plan_submission
from steelyard.evalset.set_reader import OpenedSet
from steelyard.evalset.submission import SetResult, run_set
from steelyard.evalset.surroundings import Surroundings
from steelyard.results.files import NO_FAULTS, Faults
from steelyard.results.records import AttemptRecord
from steelyard.testing.endpoint import MockEndpoint

AGENTS = Path(__file__).with_name("agents.py")
QUICK = {"model": {"id": "none"}, "environment": {"id": "host_process"}}


def write_pack(folder: Path, cases: int = 3, *, version: int = 1) -> Path:
    """Write a pack whose cases are answered by `right`."""
    folder.mkdir(parents=True, exist_ok=True)
    pack = {
        "schema": "pack/v1",
        "slug": folder.name,
        "version": version,
        "prompt": "Case {{ id }}, seed {{ seed }}: say right.",
        "cases": [{"id": f"case-{number}"} for number in range(1, cases + 1)],
        "reference": "right",
        "scoring": {"validators": [{"type": "exact", "expected": "right"}], "threshold": 1.0},
    }
    (folder / "pack.yaml").write_text(json.dumps(pack))
    return folder


def agent(name: str, harness: str, params: dict[str, Any] | None = None, **more: Any) -> Any:
    """Give a deployment; `harness` is an id, or a class of `agents.py`."""
    found = harness if harness[0].islower() else f"{AGENTS}:{harness}"
    return {"name": name, "harness": {"id": found, **(params or {})}, **QUICK, **more}


def write_project(folder: Path, *deployments: dict[str, Any], **settings: Any) -> Path:
    """Write `steelyard.yaml` with deployments, and a pack `p` of three cases."""
    write_pack(folder / "packs" / "p")
    document = {"packs": ["packs/p"], "deployments": list(deployments), **settings}
    (folder / "steelyard.yaml").write_text(json.dumps(document))
    return folder


def write_manifest(folder: Path, *agents: str, **fields: Any) -> Path:
    """Write a manifest over the pack `p`."""
    manifest = {
        "schema": "evalset/v1",
        "name": "nightly",
        "packs": ["p"],
        "agents": [{"deployment": name} for name in agents],
        **fields,
    }
    path = folder / "set.yaml"
    path.write_text(json.dumps(manifest))
    return path


A_DOLLAR = 500_000
"""A million tokens' price at which the mock's answer, of two tokens, costs a dollar."""


@contextmanager
def dear_endpoint(folder: Path, *arguments: str, **settings: Any) -> Iterator[MockEndpoint]:
    """Serve a model whose every call costs a dollar, and make it the project's agent `dear`."""
    with MockEndpoint("--text", "right", *arguments) as endpoint:
        model = {"id": "m", "base_url": endpoint.url, "max_request_retries": 0}
        prices = {"m": {"input_per_mtok": 0, "output_per_mtok": A_DOLLAR}}
        write_project(folder, {**agent("dear", "chat"), "model": model}, prices=prices, **settings)
        yield endpoint


def around(folder: Path, **environ: str) -> Surroundings:
    """Give the project's own surroundings."""
    return Surroundings(cwd=folder, environ=environ)


def planned(folder: Path, *agents: str, budget_usd: float | None = None, **fields: Any) -> SetPlan:
    """Plan a set of the project, its results below the project."""
    runtime = {"results_dir": str(folder / "results"), **fields.pop("runtime", {})}
    path = write_manifest(folder, *agents, runtime=runtime, **fields)
    return plan_submission(path, around(folder), budget_usd=budget_usd)


def ran(plan: SetPlan, *, faults: Faults = NO_FAULTS) -> SetResult:
    """Run a plan to its end."""
    return asyncio.run(run_set(plan, faults=faults))


def submitted(folder: Path, *agents: str, **fields: Any) -> SetResult:
    """Plan and run a set."""
    return ran(planned(folder, *agents, **fields))


def records(opened: OpenedSet) -> dict[str, list[AttemptRecord]]:
    """Give the records of each cell's newest run, by matrix key."""
    found = {}
    for cell in opened.cells:
        reader = opened.reader(cell)
        found[cell.matrix_key] = [] if reader is None else list(reader.records())
    return found


def lines(path: Path) -> list[str]:
    """Give the whole lines of a file; none where it is not there."""
    return path.read_text().split("\n")[:-1] if path.exists() else []
