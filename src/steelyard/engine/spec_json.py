"""Specs and results as JSON: what crosses a process boundary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

import orjson

from steelyard.components.artifacts import ArtifactSpec, EvaluationMode
from steelyard.components.benchmark import Task
from steelyard.components.harness import Step
from steelyard.components.issues import Issue, Outcome
from steelyard.components.values import Trust, Usage
from steelyard.config.errors import BadInput
from steelyard.engine.spec import (
    RESULT_SCHEMA,
    SPEC_SCHEMA,
    AttemptPlace,
    ComponentSpec,
    ExecutionResult,
    ExecutionSpec,
    PhaseTimes,
    RequestSpec,
    SavedWork,
    TimeLimits,
)
from steelyard.models.allowance import Charge


class NotAMessage(BadInput):
    """Bytes that are not a spec or a result of this version."""


def spec_to_bytes(spec: ExecutionSpec) -> bytes:
    """Serialise a spec; it holds no secrets, so neither do the bytes."""
    request = spec.request
    return orjson.dumps(
        {
            "schema": SPEC_SCHEMA,
            "request": {
                "request_name": request.request_name,
                "benchmark": _component(request.benchmark),
                "harness": _component(request.harness),
                "environment": _component(request.environment),
                "model": request.model,
                "limits": asdict(request.limits),
                "prices": dict(request.prices),
                "data_dir": request.data_dir,
                "cleanup_grace_s": request.cleanup_grace_s,
                "attempt_usd": request.attempt_usd,
                "attempt_tokens": request.attempt_tokens,
                "save_artifacts": [wanted.as_json() for wanted in request.save_artifacts],
                "keep_environment": request.keep_environment,
                "seed": request.seed,
            },
            "task": spec.task.as_json(),
            "attempt": spec.attempt,
            "execution": spec.execution,
            "token": spec.token,
            "seed": spec.seed,
            "saved": _saved_json(spec.saved),
            "place": None if spec.place is None else asdict(spec.place),
            "earlier": asdict(spec.earlier),
        }
    )


def spec_from_bytes(data: bytes) -> ExecutionSpec:
    """Read a spec.

    Raises:
        NotAMessage: the bytes are something else, or of a newer version.
    """
    document = _document(data, SPEC_SCHEMA)
    try:
        request = dict(document["request"])
        for name in ("benchmark", "harness", "environment"):
            request[name] = ComponentSpec(request[name]["id"], request[name]["params"])
        request["limits"] = TimeLimits(**request["limits"])
        request["save_artifacts"] = tuple(map(ArtifactSpec.from_json, request["save_artifacts"]))
        place = document["place"]
        return ExecutionSpec(
            request=RequestSpec(**request),
            task=Task.from_json(document["task"]),
            attempt=document["attempt"],
            execution=document["execution"],
            token=document["token"],
            seed=document["seed"],
            saved=_saved(document["saved"]),
            place=None if place is None else AttemptPlace(**place),
            earlier=Charge(**document["earlier"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise NotAMessage(f"not a whole {SPEC_SCHEMA}: {error}") from error


def result_to_bytes(result: ExecutionResult) -> bytes:
    """Serialise a result."""
    return orjson.dumps(
        {
            "schema": RESULT_SCHEMA,
            "outcome": result.outcome.value,
            "metrics": dict(result.metrics),
            "answer": result.answer,
            "issues": [issue.as_json() for issue in result.issues],
            "usage": result.usage.as_json(),
            "agent_usage": result.agent_usage.as_json(),
            "times": asdict(result.times),
            "trust": result.trust.value if result.trust else None,
            "environment": result.environment,
            "steps": [step.as_json() for step in result.steps],
            "artifacts": list(result.artifacts),
            "details": dict(result.details),
            "request_fault": result.request_fault,
            "model_calls_succeeded": result.model_calls_succeeded,
            "mode": result.mode,
            "checkpoint": result.checkpoint,
            "drops_inputs": result.drops_inputs,
            "work": _saved_json(result.work),
            "charge": None if result.charge is None else asdict(result.charge),
        }
    )


def result_from_bytes(data: bytes) -> ExecutionResult:
    """Read a result.

    Raises:
        NotAMessage: the bytes are something else, or of a newer version.
    """
    document = _document(data, RESULT_SCHEMA)
    try:
        values = {field.name: document[field.name] for field in fields(ExecutionResult)}
        values["outcome"] = Outcome(values["outcome"])
        values["issues"] = tuple(Issue.from_json(issue) for issue in values["issues"])
        values["usage"] = Usage.from_json(values["usage"])
        values["agent_usage"] = Usage.from_json(values["agent_usage"])
        values["times"] = PhaseTimes(**values["times"])
        values["trust"] = Trust(values["trust"]) if values["trust"] else None
        values["steps"] = tuple(Step.from_json(step) for step in values["steps"])
        values["artifacts"] = tuple(values["artifacts"])
        values["mode"] = EvaluationMode(values["mode"]) if values["mode"] else None
        values["work"] = _saved(values["work"])
        values["charge"] = None if values["charge"] is None else Charge(**values["charge"])
        return ExecutionResult(**values)
    except (KeyError, TypeError, ValueError) as error:
        raise NotAMessage(f"not a whole {RESULT_SCHEMA}: {error}") from error


def _saved_json(saved: SavedWork | None) -> dict[str, Any] | None:
    if saved is None:
        return None
    return {
        "answer": saved.answer,
        "steps": [step.as_json() for step in saved.steps],
        "inputs": dict(saved.inputs),
        "checkpoint": saved.checkpoint,
    }


def _saved(data: Mapping[str, Any] | None) -> SavedWork | None:
    if data is None:
        return None
    return SavedWork(**{**data, "steps": tuple(map(Step.from_json, data["steps"]))})


def _component(component: ComponentSpec) -> dict[str, Any]:
    return {"id": component.id, "params": dict(component.params)}


def _document(data: bytes, schema: str) -> Mapping[str, Any]:
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise NotAMessage(f"not JSON: {error}") from error
    found = document.get("schema") if isinstance(document, dict) else None
    if found != schema:
        raise NotAMessage(f"schema {found!r}, not {schema!r}", remedy="use one version everywhere")
    return document  # type: ignore[no-any-return]  # orjson returns Any
