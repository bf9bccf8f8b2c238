"""Finished runs and attempts for analyzers and scanners: written by a test, or read from disk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from steelyard.components.analyzer import FinishedAttempt, FinishedRun
from steelyard.components.issues import Issue, IssueCode, Outcome, Phase
from steelyard.components.model import ModelClient
from steelyard.components.steps import Step
from steelyard.components.values import Trust, Usage
from steelyard.results.reader import RunReader
from steelyard.results.records import AttemptRecord
from steelyard.testing.fake_model import ScriptedModel

DOCUMENT: Final[Mapping[str, Any]] = {
    "schema": "run/1",
    "run_id": "20260806_120000",
    "benchmark_info": {
        "id": "sample",
        "version": "1",
        "primary": "passed",
        "metrics": [
            {
                "name": "passed",
                "kind": "binary",
                "higher_is_better": True,
                "bounds": [0.0, 1.0],
                "on_failure": 0.0,
            }
        ],
    },
    "plan": {"k": 2, "strategy": "avg", "early_stop": False},
    "request": {"name": "sample", "harness": {"id": "chat"}, "model": {"id": "scripted"}},
}


def sample_record(task_id: str, attempt: int, outcome: Outcome) -> AttemptRecord:
    """Make a record as an attempt with this outcome would leave it."""
    scored = outcome is Outcome.SCORED
    failed = {
        Outcome.FAILED_FATAL: IssueCode.MODEL_UNAVAILABLE,
        Outcome.FAILED_ERROR: IssueCode.CONTEXT_OVERFLOW,
        Outcome.TIMED_OUT: IssueCode.AGENT_TIMED_OUT,
    }.get(outcome)
    ran = scored or failed is not None
    return AttemptRecord(
        task_id,
        attempt,
        outcome,
        metrics={"passed": attempt % 2 == 1} if scored else {},
        answer="42" if scored else None,
        issues=() if failed is None else (Issue.of(failed, Phase.RUN, "as the sample has it"),),
        executions=int(ran),
        usage=Usage(100, 20, requests=1, cost_usd=None if failed else 0.01),
        trust=Trust.HOST if ran else None,
        category="even" if len(task_id) % 2 == 0 else None,
    )


def sample_records() -> list[AttemptRecord]:
    """Make two attempts of a task for every outcome there is."""
    return [
        sample_record(f"task-{outcome.value}", attempt, outcome)
        for outcome in Outcome
        for attempt in (1, 2)
    ]


class FakeRun:
    """A `FinishedRun` in memory.

    Args:
        records: its attempts, in the order they ended; every outcome by default.
        document: its `run.json`.
        steps: trajectories by (task id, attempt); none by default.
    """

    def __init__(
        self,
        records: Iterable[FinishedAttempt] | None = None,
        document: Mapping[str, Any] = DOCUMENT,
        steps: Mapping[tuple[str, int], Iterable[Step]] | None = None,
    ) -> None:
        self._steps = steps or {}
        self._records = sample_records() if records is None else list(records)
        self.document = document
        self.passes = 0
        """How often its records were asked for."""

    @property
    def run_id(self) -> str:
        """As `run.json` has it."""
        return str(self.document.get("run_id", "sample"))

    def records(self) -> Iterator[FinishedAttempt]:
        """Iterate over the attempts."""
        self.passes += 1
        yield from self._records

    def steps(self, attempt: FinishedAttempt) -> Iterator[Step]:
        """Iterate over an attempt's trajectory."""
        yield from self._steps.get((attempt.task_id, attempt.attempt), ())

    def answer_text(self, attempt: FinishedAttempt, *, max_bytes: int) -> str | None:
        """Give an answer's beginning."""
        if attempt.answer is None:
            return None
        return attempt.answer.encode("utf-8", "replace")[:max_bytes].decode("utf-8", "ignore")


def finished_run(folder: Path) -> FinishedRun:
    """Open a run directory for an analyzer.

    Raises:
        RunUnreadable: it holds no run.
    """
    return RunReader(folder)


class FakeScannedAttempt:
    """A `ScannedAttempt` in memory.

    Args:
        steps: its trajectory.
        record: how it ended; scored by default.
        artifacts: what was collected.
        model: the judge, for scanners that ask one.
    """

    def __init__(
        self,
        steps: Iterable[Step] = (),
        *,
        record: FinishedAttempt | None = None,
        artifacts: Mapping[str, Path] | None = None,
        model: ModelClient | None = None,
    ) -> None:
        self._steps = list(steps)
        self.record: FinishedAttempt = record or sample_record("task", 1, Outcome.SCORED)
        self.artifacts: Mapping[str, Path] = artifacts or {}
        self.judge = model or ScriptedModel("no")
        self.has_asked_for_the_model = False
        self.steps_read = 0
        """How many steps were taken from its trajectory, over all passes."""

    @property
    def model(self) -> ModelClient:
        """The judge."""
        self.has_asked_for_the_model = True
        return self.judge

    def steps(self) -> Iterator[Step]:
        """Iterate over the trajectory."""
        for step in self._steps:
            self.steps_read += 1
            yield step
