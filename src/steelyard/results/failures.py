"""Which attempts of a run got nothing: the one rule for `show --failed` and the SDK. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from steelyard.components.issues import Outcome
from steelyard.results.documents import part
from steelyard.results.records import AttemptRecord
from steelyard.results.tallies import metric_specs

FAILED: Final = frozenset({Outcome.FAILED_FATAL, Outcome.FAILED_ERROR, Outcome.TIMED_OUT})
"""Outcomes of attempts that ran and have no score."""


class PrimaryMetric:
    """The primary metric, as `run.json` names it."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        info = part(dict(document), "benchmark_info")
        self.name = str(info.get("primary") or "score")
        spec = next((spec for spec in metric_specs(info) if spec.name == self.name), None)
        self._higher_is_better = spec is None or spec.higher_is_better

    def value(self, record: AttemptRecord) -> float | bool | None:
        """What the record says of it; None where it has no score."""
        return record.metrics.get(self.name)

    def is_failed(self, record: AttemptRecord) -> bool:
        """True where the attempt ran without a score, or was scored and got nothing."""
        return record.outcome in FAILED or self.is_nothing(record)

    def is_nothing(self, record: AttemptRecord) -> bool:
        """True where it was scored and got nothing."""
        value = self.value(record)
        return value is not None and self._higher_is_better and not value
