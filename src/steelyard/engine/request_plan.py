"""One request, ready to run: its components, its spec, its identities, its place on the disk."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from steelyard.components.analyzer import Analyzer
from steelyard.components.artifacts import EvaluationMode
from steelyard.components.benchmark import BenchmarkInfo, Task
from steelyard.components.issue_patterns import IssuePatterns
from steelyard.components.issues import Outcome
from steelyard.config.schema.request import Request
from steelyard.engine.budget import BudgetLimits
from steelyard.engine.retries import RetryPolicy
from steelyard.engine.services import Services
from steelyard.engine.spec import RequestSpec
from steelyard.results.identity import (
    content_digest,
    evaluation_identity,
    generation_identity,
)
from steelyard.results.layout import RunPaths

if TYPE_CHECKING:
    from steelyard.results.reuse import PlanShape, Rescoring


@dataclass(frozen=True, slots=True)
class RequestPlan:
    """One request, ready to run."""

    request: Request
    spec: RequestSpec
    services: Services
    info: BenchmarkInfo
    paths: RunPaths
    generation_base: bytes
    evaluation_base: bytes
    early_stop: bool
    attempts_may_overlap: bool
    provider_is_local: bool
    document: Callable[[], Mapping[str, Any]]
    """Makes what `run.json` says; looking up versions takes a while, which a dry run spares."""
    analyzers: tuple[Analyzer, ...] = ()
    """Read the run once it has ended."""

    @property
    def k(self) -> int:
        """Attempts of each task."""
        return self.request.execution.attempts.k

    @property
    def retry_patterns(self) -> tuple[str, ...]:
        """Patterns that make an ERROR worth another try."""
        return tuple(self.request.execution.retry_pattern_list or ())

    @property
    def retry_policy(self) -> RetryPolicy:
        """When an attempt is executed again; its patterns were checked with the settings."""
        if not self.request.execution.max_retries:
            return RetryPolicy()
        return RetryPolicy(
            self.request.execution.max_retries, IssuePatterns.of(self.retry_patterns)
        )

    def identities(self, task: Task) -> tuple[str, str]:
        """The generation and the evaluation identity of a task's attempts."""
        benchmark = self.services.benchmark
        return (
            generation_identity(self.generation_base, benchmark.generation_content(task)),
            evaluation_identity(self.evaluation_base, benchmark.evaluation_content(task)),
        )

    def content(self, task: Task) -> str:
        """A digest of what any agent is shown of a task."""
        return content_digest(self.services.benchmark.generation_content(task))

    def rescoring(self, task: Task, *, is_thorough: bool) -> Rescoring:
        """What scoring takes of an agent's saved work.

        Its answer alone, unless it looks at what the agent left behind or at its steps; nothing
        that could be saved where it needs the environment itself.
        """
        from steelyard.results.reuse import Rescoring

        shown = self.services.benchmark.task_input(task, attempt=1, seed=1)
        has_ended = shown.mode is not EvaluationMode.REUSE
        return Rescoring(
            answer_suffices=has_ended and not shown.carries_files and not shown.scores_steps,
            from_checkpoint=has_ended,
            resumes=self.request.runtime.checkpoint_resume,
            scores_timed_out=shown.scores_timed_out,
            is_thorough=is_thorough,
        )

    @property
    def budget(self) -> BudgetLimits:
        """What this request may spend."""
        budget = self.request.budget
        return BudgetLimits(budget.usd, budget.tokens, budget.reserve_usd)

    @property
    def asks_judges(self) -> bool:
        """True where scoring calls models of its own, which cost money too."""
        return bool(self.services.benchmark.scoring_models())

    @property
    def spends(self) -> bool:
        """False where no model is called, so that nothing need be reserved."""
        return self.spec.model is not None or self.asks_judges

    @property
    def shape(self) -> PlanShape:
        """What a run must have in common with this request to be reused by it."""
        from steelyard.results.reuse import PlanShape

        attempts = self.request.execution.attempts
        return PlanShape(self.info.id, attempts.k, attempts.strategy, self.early_stop)

    def stops_task(self, outcome: Outcome, metrics: Mapping[str, float | bool]) -> bool:
        """True where this attempt makes the task's others unnecessary."""
        return (
            self.early_stop and outcome is Outcome.SCORED and bool(metrics.get(self.info.primary))
        )
