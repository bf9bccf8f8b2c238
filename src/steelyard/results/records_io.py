"""The attempt record as JSON and back. Written by hand: it is made once for every attempt."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from steelyard.components.issues import Issue, Outcome
from steelyard.components.values import Trust, Usage
from steelyard.results.records import ATTEMPT_SCHEMA, AttemptRecord, Timing

INLINE_LIMIT_BYTES: Final = 64 * 1024
"""What is larger lies in a file beside the record."""

_TIMES: Final = ("queued_s", "setup_s", "agent_s", "waited_s", "collect_s", "evaluate_s")


_LATER: Final = frozenset({"evaluation_mode", "checkpoint"})
"""Fields that records of earlier versions lack."""


class MalformedRecord(ValueError):
    """A line is whole, but is not a record."""


def record_to_json(record: AttemptRecord) -> dict[str, Any]:
    """Give the record's form in `attempts.jsonl`.

    Seconds are rounded to microseconds.

    Raises:
        ValueError: a metric is not a finite number; JSON would make it null without a word.
    """
    for name, value in record.metrics.items():
        if not math.isfinite(value):
            raise ValueError(f"the metric {name!r} of task {record.task_id!r} is {value}")
    usage, timing = record.usage, record.timing
    return {
        "schema": ATTEMPT_SCHEMA,
        "task_id": record.task_id,
        "attempt": record.attempt,
        "outcome": record.outcome.value,
        "metrics": dict(record.metrics),
        "answer": record.answer,
        "answer_file": record.answer_file,
        "issues": [issue.as_json() for issue in record.issues],
        "executions": record.executions,
        "usage": usage.as_json(),
        "timing": {
            "queued_s": round(timing.queued_s, 6),
            "backoff_s": round(timing.backoff_s, 6),
            "setup_s": round(timing.setup_s, 6),
            "agent_s": round(timing.agent_s, 6),
            "waited_s": round(timing.waited_s, 6),
            "collect_s": round(timing.collect_s, 6),
            "evaluate_s": round(timing.evaluate_s, 6),
            "started_at": timing.started_at,
            "finished_at": timing.finished_at,
        },
        "trust": None if record.trust is None else record.trust.value,
        "environment": None if record.environment is None else dict(record.environment),
        "trajectory": None if record.trajectory is None else dict(record.trajectory),
        "artifacts": [dict(artifact) for artifact in record.artifacts],
        "details": dict(record.details),
        "generation": record.generation,
        "evaluation": record.evaluation,
        "category": record.category,
        "cluster": record.cluster,
        "reused_from": None if record.reused_from is None else dict(record.reused_from),
        "evaluation_mode": record.evaluation_mode,
        "checkpoint": None if record.checkpoint is None else dict(record.checkpoint),
    }


def record_from_json(data: Mapping[str, Any]) -> AttemptRecord:
    """Read a record; fields that this version does not know are left out.

    Raises:
        MalformedRecord: a field is missing or is not what it must be; says which.
    """
    field = "schema"
    try:
        if data["schema"] != ATTEMPT_SCHEMA:
            raise ValueError(f"is {data['schema']!r}, not {ATTEMPT_SCHEMA!r}")
        fields: dict[str, Any] = {}
        for field, read in _READERS.items():
            fields[field] = read(data.get(field) if field in _LATER else data[field])
    except KeyError as error:
        raise MalformedRecord(f"the record has no field {error.args[0]!r} ({field})") from error
    except (ValueError, TypeError, AttributeError) as error:
        raise MalformedRecord(f"the record's {field}: {error}") from error
    return AttemptRecord(**fields)


def _metric(value: Any) -> float | bool:
    if not isinstance(value, bool | int | float) or not math.isfinite(value):
        raise ValueError(f"{value!r} is not a finite number")
    return value


def _count(value: Any, least: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ValueError(f"{value!r} is not a number from {least} on")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not text")
    return value


def _optional_text(value: Any) -> str | None:
    return None if value is None else _text(value)


def _mapping(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"{value!r} is not an object")
    return value


def _optional_mapping(value: Any) -> Mapping[str, Any] | None:
    return None if value is None else _mapping(value)


def _metrics(value: Any) -> Mapping[str, float | bool]:
    return {str(name): _metric(number) for name, number in value.items()}


def timing_from_json(value: Any) -> Timing:
    """Read the record's `timing`; raise `ValueError`, `KeyError` or `TypeError` on another."""
    return Timing(
        **{name: float(value[name]) for name in _TIMES},
        backoff_s=float(value.get("backoff_s", 0.0)),  # records of before retries have none
        started_at=_optional_text(value["started_at"]),
        finished_at=_optional_text(value["finished_at"]),
    )


_READERS: Final[Mapping[str, Callable[[Any], Any]]] = MappingProxyType(
    {
        "task_id": _text,
        "attempt": lambda value: _count(value, 1),
        "outcome": Outcome,
        "metrics": _metrics,
        "answer": _optional_text,
        "answer_file": _optional_text,
        "issues": lambda value: tuple(map(Issue.from_json, value)),
        "executions": lambda value: _count(value, 0),
        "usage": Usage.from_json,
        "timing": timing_from_json,
        "trust": lambda value: None if value is None else Trust(value),
        "environment": _optional_mapping,
        "trajectory": _optional_mapping,
        "artifacts": lambda value: tuple(map(_mapping, value)),
        "details": _mapping,
        "generation": _optional_text,
        "evaluation": _optional_text,
        "category": _optional_text,
        "cluster": _optional_text,
        "reused_from": _optional_mapping,
        "evaluation_mode": _optional_text,
        "checkpoint": _optional_mapping,
    }
)
"""How each field is read; a test compares them with those of `AttemptRecord`."""
