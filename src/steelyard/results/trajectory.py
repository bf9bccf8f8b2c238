"""A trajectory as ATIF, the public Agent Trajectory Interchange Format (v1.7).

Written once, at the end of an attempt, beside its record.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import orjson

from steelyard.components.harness import Step
from steelyard.components.model import ToolCall
from steelyard.components.values import Usage
from steelyard.results.files import NO_FAULTS, Faults, write_beside
from steelyard.results.lines import redacted_json

ATIF_VERSION: Final = "ATIF-v1.7"
_REASONING: Final = "reasoning"


def atif_document(
    steps: Sequence[Step], *, session_id: str, harness: str, version: str, model: str, usage: Usage
) -> dict[str, Any]:
    """Give the ATIF document of one execution's steps; step ids count from 1.

    What a harness keeps in `extra` stays in the step's `extra`; `reasoning` has a field of its own.
    """
    return {
        "schema_version": ATIF_VERSION,
        "session_id": session_id,
        "agent": {"name": harness, "version": version, "model_name": model},
        "steps": [_step(number, step) for number, step in enumerate(steps, 1)],
        "final_metrics": {
            "total_prompt_tokens": usage.input_tokens,
            "total_completion_tokens": usage.output_tokens,
            "total_cached_tokens": usage.cached_tokens,
            "total_cost_usd": usage.cost_usd,
            "total_steps": len(steps),
        },
    }


def _step(number: int, step: Step) -> dict[str, Any]:
    extra = dict(step.extra)
    document: dict[str, Any] = {"step_id": number, "source": step.source, "message": step.message}
    if step.source == "agent" and isinstance(extra.get(_REASONING), str):
        document["reasoning_content"] = extra.pop(_REASONING)
    if step.reasoning is not None:
        document["reasoning_content"] = step.reasoning
    if step.model is not None:
        document["model_name"] = step.model
    if step.tool_calls:
        document["tool_calls"] = [_tool_call(call) for call in step.tool_calls]
    if step.results:
        document["observation"] = {
            "results": [
                {"source_call_id": result.call_id, "content": result.content}
                for result in step.results
            ]
        }
    if step.usage is not None:
        document["metrics"] = _metrics(step.usage)
    if extra:
        document["extra"] = extra
    return document


def _metrics(usage: Usage) -> dict[str, Any]:
    """Give what a call consumed; nulls where the endpoint did not say: no call takes no tokens."""
    is_known = usage.input_tokens or usage.output_tokens or usage.cost_usd is not None
    return {
        "prompt_tokens": usage.input_tokens if is_known else None,
        "completion_tokens": usage.output_tokens if is_known else None,
        "cached_tokens": usage.cached_tokens if is_known else None,
        "cost_usd": usage.cost_usd,
    }


def _tool_call(call: ToolCall) -> dict[str, Any]:
    """Give a call in ATIF's form, whose arguments are an object; what is none stands as `raw`."""
    try:
        arguments = orjson.loads(call.arguments or "{}")
    except orjson.JSONDecodeError:
        arguments = None
    return {
        "tool_call_id": call.id,
        "function_name": call.name,
        "arguments": arguments if isinstance(arguments, dict) else {"raw": call.arguments},
    }


def write_trajectory(
    root: Path,
    folder: str,
    document: dict[str, Any],
    *,
    redact: Callable[[bytes], bytes] | None = None,
    faults: Faults = NO_FAULTS,
) -> dict[str, Any]:
    """Write `trajectory.json` into an attempt's folder; give the record's `trajectory`.

    Raises:
        StorageFailed: it could not be written.
    """
    data = redacted_json(document, redact) + b"\n"
    path = write_beside(root, f"{folder}/trajectory.json", data, faults)
    return {
        "path": path,
        "sha256": hashlib.sha256(data).hexdigest(),
        "steps": len(document["steps"]),
    }
