"""`--calibrate`: two more requests for each benchmark, its ceiling (`oracle`) and floor (`nop`).

Pure: from a resolved orchestration to a larger one. The engine runs them like any other; they call
no model, and stand last, so that they take no turn from what was asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from steelyard.config.checks import namespace
from steelyard.config.names import clash_key
from steelyard.config.resolution import Provenance, Resolution
from steelyard.config.schema.request import (
    AttemptsSettings,
    Budget,
    Component,
    ModelSettings,
    Output,
    Request,
    RequestRuntime,
)
from steelyard.config.source import Node

CEILING: Final = "oracle"
FLOOR: Final = "nop"
NO_MODEL: Final = "none"


@dataclass(frozen=True, slots=True)
class Calibration:
    """The two requests that calibrate a benchmark, by name, and those that they are for."""

    oracle: str
    nop: str
    of: tuple[str, ...]


def with_calibration(resolution: Resolution) -> tuple[Resolution, tuple[Calibration, ...]]:
    """Add a ceiling and a floor for each benchmark, tasks and environment among the requests."""
    whole = resolution.orchestration
    groups: dict[str, list[int]] = {}
    for index, request in enumerate(whole.requests):
        groups.setdefault(_tasks_key(request), []).append(index)
    added: list[Request] = []
    nodes: list[Node] = []
    found: list[Calibration] = []
    listed = resolution.provenance.root.at(("requests",))
    for members in groups.values():
        first = whole.requests[members[0]]
        pair = []
        for harness in (CEILING, FLOOR):
            name = _unused(f"{first.name}-{harness}", first, [*whole.requests, *added])
            added.append(_request(first, name, harness))
            pair.append(name)
            if listed is not None:
                nodes.append(_node(listed.value[members[0]], name, harness))
        found.append(Calibration(pair[0], pair[1], tuple(whole.requests[m].name for m in members)))
    larger = whole.model_copy(update={"requests": [*whole.requests, *added]})
    root = resolution.provenance.root
    if listed is not None:
        requests = Node([*listed.value, *nodes], listed.origin)
        root = Node({**root.value, "requests": requests}, root.origin)
    return replace(resolution, orchestration=larger, provenance=Provenance(root)), tuple(found)


def _tasks_key(request: Request) -> str:
    """Give what decides which tasks there are, how they are scored and where."""
    execution = request.execution
    parts = (
        request.benchmark.model_dump(),
        request.environment.model_dump(),
        (execution.limit, execution.sample_ids, execution.exclude_ids, execution.shard),
        request.output.run_name,
    )
    return repr(parts)


def _request(first: Request, name: str, harness: str) -> Request:
    return Request(
        name=name,
        benchmark=first.benchmark,
        harness=Component(id=harness),
        environment=first.environment,
        model=ModelSettings(id=NO_MODEL),
        execution=first.execution.model_copy(
            update={
                "attempts": AttemptsSettings(k=1),
                "save_artifacts": [],
                "analysis": False,
                "keep_environment": False,
            }
        ),
        runtime=RequestRuntime(reuse=first.runtime.reuse),
        output=Output(run_name=first.output.run_name),
        budget=Budget(),
    )


def _unused(name: str, first: Request, requests: Sequence[Request]) -> str:
    """Give the name, or with a number the next that shares no folder with another request's."""
    names = {request.name for request in requests}
    folders = {_folder(request.output.run_name, request.name) for request in requests}
    number, chosen = 1, name
    while chosen in names or _folder(first.output.run_name, chosen) in folders:
        number += 1
        chosen = f"{name}-{number}"
    return chosen


def _folder(run_name: str | None, name: str) -> tuple[str, ...]:
    return tuple(clash_key(part) for part in namespace(run_name, name))


def _node(first: Node, name: str, harness: str) -> Node:
    origin = first.origin
    fields = {
        "name": Node(name, origin),
        "harness": Node({"id": Node(harness, origin)}, origin),
        "model": Node({"id": Node(NO_MODEL, origin)}, origin),
    }
    return Node({**first.value, **fields}, origin)
