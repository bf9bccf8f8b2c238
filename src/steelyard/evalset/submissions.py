"""A submission of a set (`submit`, `resume`, `retry`): what was to run, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from steelyard.engine.events import RunOutcome
from steelyard.results.json_values import count, optional_text, seconds, text

SUBMISSION_SCHEMA: Final = "evalset-submission/1"


@dataclass(frozen=True, slots=True)
class Submission:
    """What was asked of a set, and how that ended."""

    number: int
    """From 1."""
    kind: str
    """`submit`, `resume` or `retry`."""
    began_at: str
    """UTC, ISO 8601 with `Z`."""
    budget_usd: float | None
    """What the whole set may spend, from then on; None for no limit."""
    cells: tuple[int, ...]
    """The cells that were to run."""
    outcome: RunOutcome | None = None
    """None where it has not ended, or its process died."""
    exit_status: int | None = None
    ended_at: str | None = None
    reason: str | None = None
    """Why it did not complete."""

    def as_json(self) -> dict[str, Any]:
        """Give the form of its file."""
        return {
            "schema": SUBMISSION_SCHEMA,
            "number": self.number,
            "kind": self.kind,
            "began_at": self.began_at,
            "budget_usd": self.budget_usd,
            "cells": list(self.cells),
            "outcome": None if self.outcome is None else self.outcome.value,
            "exit_status": self.exit_status,
            "ended_at": self.ended_at,
            "reason": self.reason,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Submission:
        """Read what `as_json` gave.

        Raises:
            KeyError, TypeError, ValueError: it is not that.
        """
        if data["schema"] != SUBMISSION_SCHEMA:
            raise ValueError(f"the schema {data['schema']!r} is not {SUBMISSION_SCHEMA!r}")
        outcome = data["outcome"]
        budget = data["budget_usd"]
        return cls(
            number=count(data["number"], 1),
            kind=text(data["kind"]),
            began_at=text(data["began_at"]),
            budget_usd=None if budget is None else seconds(budget),
            cells=tuple(count(index) for index in data["cells"]),
            outcome=None if outcome is None else RunOutcome(outcome),
            exit_status=None if data["exit_status"] is None else count(data["exit_status"]),
            ended_at=optional_text(data["ended_at"]),
            reason=optional_text(data["reason"]),
        )
