"""What a validator is: a rule that looks at an attempt's work and gives a value from 0 to 1."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from steelyard.benchmarks.pack.judging.settings import Judge
from steelyard.benchmarks.pack.paths import read_collected
from steelyard.benchmarks.pack.schema_validators.base import (
    OnFile,
    TextValidatorSpec,
    ValidatorSpec,
)
from steelyard.benchmarks.pack.template import Template
from steelyard.benchmarks.pack.template_language import TemplateProblem
from steelyard.benchmarks.pack.trajectory_text import trajectory_text
from steelyard.components.benchmark import ScoringContext
from steelyard.components.issues import AttemptFault, IssueCode
from steelyard.components.model import ModelClient
from steelyard.components.often_made import often_made
from steelyard.config.errors import BadInput

MAX_TEXT_BYTES = 10 * 1024 * 1024


@often_made(frozen=True, slots=True)
class Verdict:
    """What a validator found."""

    value: float
    reason: str | None = None
    """For people, where it fell short."""
    details: Mapping[str, Any] | None = None
    """More for people, as JSON data of at most a few KiB: a judge's words, for one."""


PASSED = Verdict(1.0)


def _no_judge() -> Judge:
    raise BadInput("the pack has no judge")


@dataclass(slots=True)
class Work:
    """What the validators of one attempt look at."""

    fields: Mapping[str, Any]
    answer: str | None
    context: ScoringContext
    printed: dict[str, str] = field(default_factory=dict)
    """What each `command` validator's program printed, by the validator's name."""
    judge: Callable[[], Judge] = _no_judge
    """Says which model judges, and how often it is asked."""
    given: Mapping[str, Callable[[], str]] = field(default_factory=dict)
    """What a `judge` may be shown of the pack: gives the `prompt`, and the `reference`."""
    _client: ModelClient | None = None

    def judge_client(self) -> ModelClient:
        """Give the judging model, one for all validators of the attempt.

        Raises:
            AttemptFault: SCORER_CRASHED, there is none.
        """
        if self._client is None:
            try:
                self._client = self.context.model(self.judge().model)
            except BadInput as error:
                message = f"the judge cannot be asked: {error.problems[0].message}"
                raise AttemptFault(IssueCode.SCORER_CRASHED, message, request_fault=True) from error
        return self._client


class Validator(ABC):
    """A rule of one pack, its templates compiled. Holds nothing of an attempt."""

    uses_session: ClassVar[bool] = False
    """True where it runs programs in the scorer's environment."""
    checks_cases: ClassVar[bool] = False
    """True where a case can be wrong for it in a way that is seen without an answer."""

    is_scalar: bool = False
    """True where values between 0 and 1 say something: its metric is then a scalar, not a claim
    that is true or false."""

    def __init__(self, name: str, spec: ValidatorSpec) -> None:
        self.name = name
        self.weight = spec.weight
        self.is_gate = spec.gate
        self.reads_steps = spec.reads_steps()
        """True where it looks at the trajectory."""

    def fault_in(self, fields: Mapping[str, Any]) -> str | None:
        """Say what is wrong with a case, None where nothing; may raise `AttemptFault` too."""
        return None

    @abstractmethod
    async def verdict(self, work: Work) -> Verdict:
        """Look at the work.

        Raises:
            AttemptFault: the validator itself could not run.
            EnvironmentFault: the scorer's environment failed.
        """


class ReadsText(Validator):
    """A validator that looks at a text: the answer, a file, a program's output, the trajectory."""

    def __init__(self, name: str, spec: TextValidatorSpec, stdout_of: str | None) -> None:
        super().__init__(name, spec)
        self._on = spec.on
        self._stdout_of = stdout_of

    def text_of(self, work: Work) -> str | None:
        """Give the text that is judged, None where there is none."""
        if self._on == "answer":
            return work.answer
        if self._on == "trajectory":
            return trajectory_text(work.context.steps)
        if isinstance(self._on, OnFile):
            return collected_text(work, self._on.file)
        return work.printed.get(self._stdout_of or "")

    def absence(self) -> str:
        """Say that there is no text to look at."""
        if isinstance(self._on, OnFile):
            return f"no file {self._on.file}"
        return "no trajectory" if self._on == "trajectory" else "no answer"


class TextValidator(ReadsText):
    """A validator that needs the text and the case's fields, nothing else."""

    async def verdict(self, work: Work) -> Verdict:
        """Find the text, then judge it; where there is none the verdict is 0."""
        text = self.text_of(work)
        if text is None:
            return Verdict(0.0, self.absence())
        return await self.judge(text, work.fields)

    @abstractmethod
    async def judge(self, text: str, fields: Mapping[str, Any]) -> Verdict:
        """Judge the text."""


def collected_text(work: Work, path: str) -> str | None:
    """Read a collected file as text, None where there is none."""
    found = work.context.artifacts.get(path)
    data = read_collected(found, max_bytes=MAX_TEXT_BYTES) if found is not None else None
    return None if data is None else data.decode("utf-8", "replace")


def rendered(template: Template, fields: Mapping[str, Any]) -> str:
    """Render a validator's template; what fails is the pack's fault, not the agent's."""
    try:
        return template.render(fields)
    except TemplateProblem as error:
        raise AttemptFault(IssueCode.TASK_INVALID, f"a validator's template: {error}") from error


def value_of(template: Template, fields: Mapping[str, Any]) -> Any:
    """Give the field itself where the template is `{{ field }}`, else its text."""
    try:
        return template.value(fields)
    except TemplateProblem as error:
        raise AttemptFault(IssueCode.TASK_INVALID, f"a validator's template: {error}") from error
