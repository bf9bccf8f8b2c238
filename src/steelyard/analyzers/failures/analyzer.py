"""The analyzer: one pass over the records, and the trajectories of those that got nothing."""

from __future__ import annotations

from typing import Annotated, ClassVar, Final

from pydantic import BaseModel, ConfigDict, Field

from steelyard.analyzers.failures.course import Course, course_of
from steelyard.analyzers.failures.rules import RULES_VERSION, Case, diagnose
from steelyard.analyzers.failures.tally import PointRule, Tally
from steelyard.analyzers.failures.wording import page, summary
from steelyard.components.analyzer import (
    Analysis,
    Analyzer,
    FinishedAttempt,
    FinishedRun,
    TrajectoryUnreadable,
)

MAX_ANSWER_BYTES: Final = 256 * 1024
"""So much of an answer is looked at."""


class FailuresParams(BaseModel):
    """What `failures` takes."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    examples: Annotated[int, Field(ge=0, le=50)] = 3
    """How many attempts of each class are shown."""


class Failures(Analyzer):
    """Sorts the attempts that got nothing into classes, by rules over records and trajectories."""

    id: ClassVar[str] = "failures"
    version: ClassVar[str] = RULES_VERSION
    Params: ClassVar[type[BaseModel]] = FailuresParams

    def __init__(self, params: BaseModel) -> None:
        super().__init__(params)
        assert isinstance(params, FailuresParams)  # noqa: S101 — the engine gives what it made
        self._examples = params.examples

    def analyze(self, run: FinishedRun) -> Analysis:
        """Classify every attempt that failed, or was scored and got nothing."""
        rule = PointRule(run.document)
        tally = Tally(rule, self._examples)
        for attempt in run.records():
            tally.saw(attempt)
            if rule.got_nothing(attempt):
                answer = run.answer_text(attempt, max_bytes=MAX_ANSWER_BYTES)
                course = _course(run, attempt, tally)
                tally.diagnosed(attempt, diagnose(Case(attempt, answer, course)))
        data = tally.result()
        data = {"summary": summary(data), **data}
        return Analysis(self.id, self.version, data, page(data, run.run_id))


def _course(run: FinishedRun, attempt: FinishedAttempt, tally: Tally) -> Course:
    """Read what an agent did; of a damaged trajectory nothing is used, not even its beginning."""
    try:
        return course_of(run.steps(attempt))
    except TrajectoryUnreadable as error:
        tally.unreadable(attempt, str(error))
        return Course()
