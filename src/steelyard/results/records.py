"""The attempt record: all that is kept of how an attempt ended. `attempts.jsonl` alone says it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from steelyard.components.issues import Issue, Outcome
from steelyard.components.often_made import often_made
from steelyard.components.values import NO_USAGE, Trust, Usage

ATTEMPT_SCHEMA = "attempt/1"


@often_made(frozen=True, slots=True)
class Timing:
    """Where the time of the last execution went, in seconds; waiting is never the agent's."""

    queued_s: float = 0.0
    """Until it began, for slots and limits; the sum over its executions."""
    setup_s: float = 0.0
    agent_s: float = 0.0
    waited_s: float = 0.0
    """Inside the agent phase, for limits and request retries; not part of `agent_s`."""
    collect_s: float = 0.0
    evaluate_s: float = 0.0
    started_at: str | None = None
    """UTC, ISO 8601 with `Z`."""
    finished_at: str | None = None
    backoff_s: float = 0.0
    """Between its executions, before the next could have been queued; the sum of all."""


@often_made(frozen=True, slots=True)
class AttemptRecord:
    """How one attempt ended."""

    task_id: str
    attempt: int
    """Counted from 1."""
    outcome: Outcome
    metrics: Mapping[str, float | bool] = field(default_factory=dict)
    answer: str | None = None
    answer_file: str | None = None
    """Where an answer above 64 KiB lies, relative to the run directory; `answer` is then null."""
    issues: tuple[Issue, ...] = ()
    """Of all executions; see `last_issues`."""
    executions: int = 0
    """Physical tries; 0 where it never started."""
    usage: Usage = NO_USAGE
    """Of all executions together."""
    timing: Timing = Timing()
    trust: Trust | None = None
    """None where nothing ran."""
    environment: Mapping[str, Any] | None = None
    trajectory: Mapping[str, Any] | None = None
    artifacts: tuple[Mapping[str, Any], ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    generation: str | None = None
    """The generation identity, 32 hex digits."""
    evaluation: str | None = None
    """The evaluation identity, 32 hex digits."""
    category: str | None = None
    cluster: str | None = None
    reused_from: Mapping[str, Any] | None = None
    """`{run_id, path, cost_usd}` of the run that this result was taken from."""
    evaluation_mode: str | None = None
    """`none`, `fresh` or `reuse`: where it was scored; None where it never came so far."""
    checkpoint: Mapping[str, Any] | None = None
    """`{path, sha256}` of what it can be scored from once more; None where its answer is enough, or
    nothing was kept."""
    answer_sha256: str | None = None
    """Of `answer_file`; None without one, and in records of before it was written."""
    content: str | None = None
    """A digest of what any agent is shown of the task, 32 hex digits: by it runs of two models are
    compared. None where nothing ran, and in records of earlier versions."""

    @property
    def last_issues(self) -> tuple[Issue, ...]:
        """Those of the execution that counts: what a retry has mended is not among them."""
        if self.executions < 2:
            return self.issues
        return tuple(issue for issue in self.issues if issue.execution >= self.executions)

    @property
    def retries(self) -> int:
        """Executions after the first."""
        return max(0, self.executions - 1)
