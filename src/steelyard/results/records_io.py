"""The attempt record as JSON and back. Written by hand: it is made once for every attempt."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from steelyard.components.issues import Issue, Outcome
from steelyard.components.values import Trust, Usage
from steelyard.results.json_values import (
    artifact,
    count,
    items,
    mapping,
    metric,
    optional_mapping,
    optional_text,
    seconds,
    text,
)
from steelyard.results.records import ATTEMPT_SCHEMA, AttemptRecord, Timing

INLINE_LIMIT_BYTES: Final = 64 * 1024
"""What is larger lies in a file beside the record."""

_TIMES: Final = ("queued_s", "setup_s", "agent_s", "waited_s", "collect_s", "evaluate_s")


_SURE_S: Final = 1e12
"""What lies between is a number of seconds for sure."""
_LATER: Final = frozenset({"evaluation_mode", "checkpoint", "answer_sha256", "content"})
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
        "content": record.content,
        "category": record.category,
        "cluster": record.cluster,
        "reused_from": None if record.reused_from is None else dict(record.reused_from),
        "evaluation_mode": record.evaluation_mode,
        "checkpoint": None if record.checkpoint is None else dict(record.checkpoint),
        "answer_sha256": record.answer_sha256,
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
        for field, as_it_is, is_later, read in _FIELDS:
            value = data.get(field) if is_later else data[field]
            fields[field] = value if type(value) in as_it_is else read(value)
    except KeyError as error:
        raise MalformedRecord(f"the record has no field {error.args[0]!r} ({field})") from error
    except (ValueError, TypeError, AttributeError, OverflowError) as error:
        raise MalformedRecord(f"the record's {field}: {error}") from error
    return AttemptRecord(**fields)


def _metrics(value: Any) -> Mapping[str, float | bool]:
    return {str(name): metric(number) for name, number in mapping(value).items()}


def _trajectory(value: Any) -> Mapping[str, Any] | None:
    found = optional_mapping(value)
    if found is not None:
        optional_text(found.get("path"))
        optional_text(found.get("sha256"))
    return found


def timing_from_json(value: Any) -> Timing:
    """Read the record's `timing`; raise `ValueError`, `KeyError` or `TypeError` on another."""
    return Timing(
        **{
            name: lasted
            if type(lasted := value[name]) is float and -_SURE_S < lasted < _SURE_S
            else seconds(lasted)
            for name in _TIMES
        },
        backoff_s=seconds(value.get("backoff_s", 0.0)),  # records of before retries have none
        started_at=optional_text(value["started_at"]),
        finished_at=optional_text(value["finished_at"]),
    )


_READERS: Final[Mapping[str, Callable[[Any], Any]]] = MappingProxyType(
    {
        "task_id": text,
        "attempt": lambda value: count(value, 1),
        "outcome": Outcome,
        "metrics": _metrics,
        "answer": optional_text,
        "answer_file": optional_text,
        "issues": lambda value: tuple(map(Issue.from_json, items(value))),
        "executions": count,
        "usage": Usage.from_json,
        "timing": timing_from_json,
        "trust": lambda value: None if value is None else Trust(value),
        "environment": optional_mapping,
        "trajectory": _trajectory,
        "artifacts": lambda value: tuple(map(artifact, items(value))),
        "details": mapping,
        "generation": optional_text,
        "evaluation": optional_text,
        "content": optional_text,
        "category": optional_text,
        "cluster": optional_text,
        "reused_from": optional_mapping,
        "evaluation_mode": optional_text,
        "checkpoint": optional_mapping,
        "answer_sha256": optional_text,
    }
)
"""How each field is read; a test compares them with those of `AttemptRecord`."""

_NOTHING: Final = type(None)
_AS_IT_IS: Final[Mapping[Callable[[Any], Any], frozenset[type]]] = MappingProxyType(
    {
        text: frozenset({str}),
        optional_text: frozenset({str, _NOTHING}),
        mapping: frozenset({dict}),
        optional_mapping: frozenset({dict, _NOTHING}),
    }
)
"""Readers that give back what is of these types: records are read by the hundred thousand."""
_FIELDS: Final = tuple(
    (field, _AS_IT_IS.get(read, frozenset()), field in _LATER, read)
    for field, read in _READERS.items()
)
