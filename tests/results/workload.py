"""A scripted run for tests: what it writes is known, and what was acknowledged is told."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from steelyard.components.issues import Issue, IssueCode, Outcome, Phase
from steelyard.components.steps import Step
from steelyard.components.values import Trust, Usage
from steelyard.results.analysis import analysis_document, write_analysis
from steelyard.results.artifacts import collecting, digest_tree
from steelyard.results.checkpoints import Checkpoint, ScoringInput, write_checkpoint
from steelyard.results.files import NO_FAULTS, Faults, WritePoint, write_beside
from steelyard.results.journal import EventKind, Journal, Syncer
from steelyard.results.layout import RunPaths, attempt_folder
from steelyard.results.progress_file import ProgressFile
from steelyard.results.reader import RunReader
from steelyard.results.records import AttemptRecord, Timing
from steelyard.results.run_folder import RunFolder, create_run
from steelyard.results.step_log import StepLog
from steelyard.results.summary import write_summary

TASKS = ("plain", "with/slash", "emoji-🦀", "line\u2028separator")
K = 2
STEPS = 3
"""Of each task's first attempt."""
BENCHMARK_INFO: Mapping[str, Any] = {
    "id": "toy",
    "version": "1",
    "primary": "accuracy",
    "metrics": [
        {
            "name": "accuracy",
            "kind": "binary",
            "higher_is_better": True,
            "bounds": [0.0, 1.0],
            "on_failure": 0.0,
        }
    ],
}
DOCUMENT: Mapping[str, Any] = {
    "benchmark_info": BENCHMARK_INFO,
    "plan": {"k": K, "strategy": "avg", "early_stop": False},
    "request": {"name": "toy-request", "execution": {"run_timeout_seconds": 60}},
}


class FixedClock:
    """Each look at it is a millisecond later than the last."""

    def __init__(self, start: datetime = datetime(2026, 8, 6, 12, tzinfo=UTC)) -> None:
        self._now = start
        self._seconds = 0.0

    def monotonic(self) -> float:
        self._seconds += 0.001
        return self._seconds

    def now(self) -> datetime:
        self._now += timedelta(milliseconds=1)
        return self._now


def generation(task_id: str) -> str:
    return f"{TASKS.index(task_id) if task_id in TASKS else 99:032x}"


EVALUATION = "e" * 32


def a_record(task_id: str = "plain", attempt: int = 1, **changes: Any) -> AttemptRecord:
    fields: dict[str, Any] = {
        "task_id": task_id,
        "attempt": attempt,
        "outcome": Outcome.SCORED,
        "metrics": {"accuracy": attempt == 1},
        "answer": f"42\u2028 of {task_id}",
        "executions": 1,
        "usage": Usage(10, 5, 2, 1, 1, 0.001),
        "timing": Timing(
            queued_s=0.1,
            setup_s=0.2,
            agent_s=0.3,
            collect_s=0.05,
            evaluate_s=0.1,
            started_at="2026-08-06T12:00:00.000Z",
        ),
        "trust": Trust.HOST,
        "environment": {"provider": "host_process", "image": None, "digest": None},
        "generation": generation(task_id),
        "evaluation": EVALUATION,
    }
    return AttemptRecord(**{**fields, **changes})


def an_issue(code: IssueCode, message: str = "because") -> Issue:
    return Issue.of(code, Phase.RUN, message)


def a_run(
    results_dir: Path,
    run_id: str | None = None,
    *,
    document: Mapping[str, Any] = DOCUMENT,
    clock: FixedClock | None = None,
    faults: Faults = NO_FAULTS,
) -> RunFolder:
    paths = RunPaths(results_dir, None, "toy", run_id)
    return create_run(paths, document, clock=clock or FixedClock(), faults=faults)


def token_of(task_id: str, attempt: int) -> str:
    return f"token-{TASKS.index(task_id)}-{attempt}"


def keep_inputs(root: Path, task_id: str, attempt: int, faults: Faults = NO_FAULTS) -> Checkpoint:
    """Do what an executor does once an agent is done: its files are copied, then digested."""
    folder = attempt_folder(task_id, attempt)
    for name, point in (
        ("inputs-1", WritePoint.INPUTS_COLLECTED),
        ("artifacts", WritePoint.ARTIFACTS_COLLECTED),
    ):
        with collecting(root / folder / name, point, faults):
            (root / folder / name / "0").write_text(f"work on {task_id}, {attempt}")
    digest = digest_tree(root / folder / "inputs-1" / "0")
    return Checkpoint(
        task_id=task_id,
        attempt=attempt,
        execution=1,
        token=token_of(task_id, attempt),
        generation=generation(task_id),
        mode="fresh",
        answer=f"42\u2028 of {task_id}",
        steps=(Step("agent", "step 0", usage=Usage(requests=1, cost_usd=0.5)),),
        usage=Usage(10, 5, 2, 1, 1, 0.001),
        inputs=(ScoringInput("out.txt", f"{folder}/inputs-1/0", digest),),
    )


async def play(results_dir: Path, faults: Faults, tell: Callable[[str, str, int], None]) -> None:
    """Play the whole run. `tell` is told (`intent`, `step` or `synced`, task, attempt)."""
    clock = FixedClock()
    folder = a_run(results_dir, clock=clock, faults=faults)
    syncer = Syncer()
    journal = Journal(folder, clock=clock, syncer=syncer, faults=faults)
    progress = ProgressFile(folder, faults=faults)
    journal.event(EventKind.PLANNED, tasks=len(TASKS), k=K)
    done = 0
    for task_id in TASKS:
        for attempt in range(1, K + 1):
            journal.event(
                EventKind.STARTED,
                task_id=task_id,
                attempt=attempt,
                execution=1,
                token=token_of(task_id, attempt),
            )
            journal.flush()
            if journal.failure is None:
                tell("intent", task_id, attempt)
        folder_of = attempt_folder(task_id, 1)
        steps = StepLog(folder.root, folder_of, faults=faults)
        for number in range(STEPS):
            steps.append(Step("agent", f"step {number}", usage=Usage(requests=1, cost_usd=0.5)))
            tell("step", task_id, 1)
        for attempt in range(1, K + 1):
            answer_file = None
            if attempt == 2:
                where = f"{attempt_folder(task_id, attempt)}/answer.txt"
                answer_file = write_beside(folder.root, where, b"x" * 70_000, faults)
            kept = keep_inputs(folder.root, task_id, attempt, faults)
            record = a_record(task_id, attempt, answer_file=answer_file)
            write_checkpoint(folder.root, kept, faults)
            journal.record(record)
            journal.flush()
            if attempt == 1:
                steps.remove()
            done += 1
            if journal.failure is None:
                await journal.synced()
                tell("synced", task_id, attempt)
        progress.write({"done": done}, clock.monotonic(), is_last=True)
    outcome = "failed" if journal.failure else "completed"
    await journal.finish(outcome, {"scored": done}, None)
    write_summary(folder.root, faults)
    document = analysis_document(RunReader(folder.root), [])
    write_analysis(folder.root, document, "nothing\n", faults=faults)
    journal.close()
    await syncer.close()


def tell_parent(kind: str, task_id: str, attempt: int) -> None:
    """Say it on standard output, unbuffered: what was said has happened."""
    os.write(1, f"{kind}\t{attempt}\t{task_id}\n".encode())
