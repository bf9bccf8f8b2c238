"""The contract of a benchmark: tasks, what an agent is shown of them, and how work is scored.

`load_tasks` runs in the driver. Everything else may run in another process, on another machine:
it sees the parameters and one task, nothing else. Hidden files and references reach neither the
agent's prompt nor its environment.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, Self

from pydantic import BaseModel

from steelyard.components.artifacts import ArtifactSpec, EvaluationMode
from steelyard.components.environment import ImageBuild, Network, NoParams, Resources, Session
from steelyard.components.issues import AttemptFault, Issue, IssueCode
from steelyard.components.model import ModelClient, ToolCall
from steelyard.components.steps import Step
from steelyard.components.values import NO_USAGE, Message, Trust, Usage


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """A figure that scoring an attempt gives."""

    name: str
    kind: Literal["binary", "scalar"]
    higher_is_better: bool = True
    bounds: tuple[float, float] | None = None
    """Lowest and highest possible value; (0, 1) for a binary one. None: unbounded, and then no
    worst/best bounds are given for attempts without a score."""
    on_failure: float | None = None
    """What an ERROR or agent timeout counts as. None: left out, and coverage shows it. Binary
    metrics default to 0 in `BenchmarkInfo`."""


def binary(name: str, *, higher_is_better: bool = True) -> MetricSpec:
    """A metric that is true or false; a failure counts as 0."""
    return MetricSpec(name, "binary", higher_is_better, (0.0, 1.0), 0.0)


def scalar(
    name: str,
    *,
    higher_is_better: bool = True,
    bounds: tuple[float, float] | None = None,
    on_failure: float | None = None,
) -> MetricSpec:
    """A metric that is a number."""
    return MetricSpec(name, "scalar", higher_is_better, bounds, on_failure)


@dataclass(frozen=True, slots=True)
class BenchmarkInfo:
    """What a benchmark says of itself before any task is loaded."""

    id: str
    version: str
    """Part of the evaluation identity; changes when scoring changes."""
    metrics: tuple[MetricSpec, ...]
    primary: str
    """The name of the metric that stands for the benchmark."""
    runs_model_code: bool
    """True where scoring runs what a model wrote: `environment: auto` then picks a sandbox."""
    attempts_may_overlap: bool = True
    """True where two attempts of one task share nothing."""
    license: str | None = None
    source: str | None = None
    wants_images: bool = False
    """True where tasks bring images of their own: `environment: auto` then picks an engine."""


@dataclass(frozen=True, slots=True)
class Task:
    """One task; `data` holds all that this benchmark needs to show and score it."""

    id: str
    data: Mapping[str, Any]
    category: str | None = None
    cluster: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Give the serialisable form."""
        return {
            "id": self.id,
            "data": dict(self.data),
            "category": self.category,
            "cluster": self.cluster,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Task:
        """Read the serialisable form."""
        return cls(data["id"], data["data"], data["category"], data["cluster"])


@dataclass(frozen=True, slots=True)
class TaskLimits:
    """What the benchmark grants the agent; None where it says nothing."""

    run_seconds: float | None = None
    evaluation_seconds: float | None = None
    turns: int | None = None
    output_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class EnvironmentNeeds:
    """What a task asks of its environment. A request may only tighten it."""

    image: str | None = None
    network: Network | None = None
    resources: Resources = Resources()
    build: ImageBuild | None = None
    """Takes the place of `image`."""
    workdir: str | None = None
    """The working folder, absolute, where the task's programs expect one."""
    allowed_hosts: tuple[str, ...] = ()
    """With the network `allowlist`."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables of every program of the session. May hold secrets: stands in no record."""

    @property
    def wants_image(self) -> bool:
        """True where programs of this machine are not what the task expects."""
        return self.image is not None or self.build is not None

    def as_json(self) -> dict[str, Any]:
        """Give the serialisable form; what is not asked for is left out of it."""
        data: dict[str, Any] = {
            "image": self.image,
            "network": self.network,
            "resources": self.resources.as_json(),
        }
        if self.build is not None:
            data["build"] = self.build.as_json()
        if self.workdir is not None:
            data["workdir"] = self.workdir
        if self.allowed_hosts:
            data["allowed_hosts"] = list(self.allowed_hosts)
        return data


@dataclass(frozen=True, slots=True)
class Reference:
    """A task's known good answer, for `oracle`: at least one of these."""

    answer: str | None = None
    files: Path | None = None
    """A folder laid over the working folder."""
    command: tuple[str, ...] | None = None
    """Run in the working folder, after `files` are in place."""
    tool_calls: tuple[ToolCall, ...] = ()
    """Noted in the trajectory as if the agent had asked for them; nothing is run."""
    files_into: str = "."
    """Where `files` are laid: in the working folder, or absolute inside the session."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables of `command`."""


@dataclass(frozen=True, slots=True)
class TaskInput:
    """What the agent gets."""

    messages: tuple[Message, ...]
    workspace: tuple[Path, ...] = ()
    """Folders copied into the working folder, in order."""
    needs: EnvironmentNeeds = EnvironmentNeeds()
    limits: TaskLimits = TaskLimits()
    answer_file: str | None = None
    """The answer is this file of the working folder, not the harness's last words."""
    answer_command: tuple[str, ...] | None = None
    """The answer is what this command prints."""
    collect: tuple[str, ...] = ()
    """Paths of the working folder that scoring needs (`.` for all of it); carried into the
    scorer's own environment after the agent's is closed."""
    scores_steps: bool = False
    """True where scoring looks at the trajectory: a saved answer alone is then never scored
    again, only a checkpoint, which holds every step as scoring saw it."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """For harnesses that know the benchmark; most ignore it."""
    artifacts: ArtifactSpec | None = None
    """More files that scoring needs: by pattern, bounded; carried like those of `collect`."""
    evaluation: EvaluationMode | None = None
    """Where the attempt is scored; None: `fresh` where files are carried, else `none`."""
    scores_timed_out: bool = False
    """True where what an agent had done when its time ran out is scored all the same."""
    scorer_needs: EnvironmentNeeds | None = None
    """What the scorer's own environment is to be; None: what the agent's is."""
    collect_command: tuple[str, ...] | None = None
    """Run in the working folder before anything that scoring needs is taken."""
    collect_command_s: float = 60.0
    """What that may take."""
    stages: tuple[Task, ...] = ()
    """Parts of the task, each with an input of its own and the task's id: the agent is sent to
    work on one after another in one environment (`needs` of the whole), and each is scored before
    the next begins: in that environment, or, where the stage's input says `fresh`, in one of the
    scorer's with what the stage's `collect` names."""

    @property
    def mode(self) -> EvaluationMode:
        """Where the attempt is scored."""
        if self.evaluation is not None:
            return self.evaluation
        return EvaluationMode.FRESH if self.carries_files else EvaluationMode.NONE

    @property
    def carries_files(self) -> bool:
        """True where scoring takes files of the agent's environment."""
        return bool(self.collect) or self.artifacts is not None

    @property
    def needs_environment(self) -> bool:
        """True where the agent's environment must be open before it starts."""
        return bool(
            self.workspace
            or self.answer_file
            or self.answer_command
            or self.carries_files
            or self.evaluation is EvaluationMode.REUSE
        )


class ScoringContext(Protocol):
    """What scoring may use."""

    @property
    def answer(self) -> str | None:
        """What the agent answered; None where it gave none."""
        ...

    @property
    def artifacts(self) -> Mapping[str, Path]:
        """What was collected, as host paths: each path of `TaskInput.collect` that existed, and
        each file that `TaskInput.artifacts` took."""
        ...

    @property
    def steps(self) -> Sequence[Step]:
        """What the agent did, as far as it is known: the steps of its trajectory."""
        ...

    def model(self, settings: Mapping[str, Any]) -> ModelClient:
        """Give a model of the scorer's own, for judging; what it consumes is counted.

        Args:
            settings: `ModelSettings` as JSON.

        Raises:
            BadInput: they cannot be used.
        """
        ...

    async def session(self) -> Session:
        """Open, once, an environment for the scorer, with the collected paths put back.

        In mode `reuse` it is the agent's own, as the agent left it.

        Raises:
            EnvironmentFault: it could not be opened.
        """
        ...


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What scoring found."""

    metrics: Mapping[str, float | bool]
    """At least the primary metric. Values are finite."""
    trust: Trust | None = None
    """None: that of the sessions that were opened. A benchmark whose scorer shares its process
    with the agent's code says CONTAINED; the engine takes the weaker of the two."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """For people reading one attempt; at most a few KiB."""
    issues: tuple[Issue, ...] = ()
    """WARNINGs only; raise for more."""
    usage: Usage = NO_USAGE


class Benchmark(ABC):
    """A set of tasks and the rule that scores them. Plug-ins subclass it."""

    api: ClassVar[int] = 1
    id: ClassVar[str]
    Params: ClassVar[type[BaseModel]] = NoParams

    data_dir: Path | None = None
    """Where data sets lie, as the settings say; set once it is made. None: nothing is said."""

    def __init__(self, params: BaseModel) -> None:
        self.params = params

    def share(self, earlier: Self) -> None:
        """Take over what another instance has read, where neither ever changes it.

        Called once it is made, with one that was made with equal parameters for another request of
        the same launch: an eval set has hundreds.
        """
        del earlier  # by default nothing is taken

    @abstractmethod
    def info(self) -> BenchmarkInfo:
        """Describe the benchmark; cheap, no task is loaded.

        Raises:
            BadInput: the parameters name something that is not there or not well formed.
        """

    @classmethod
    def unavailable(cls) -> str | None:
        """Say what this machine lacks to run it, and the remedy; None where nothing."""
        return None

    def lacking(self) -> str | None:
        """Say what this machine lacks to run it with these parameters; None where nothing.

        Task data that is not there is such a thing. Asked when planning, once `data_dir` is set.
        """
        return self.unavailable()

    def missing_extra(self) -> str | None:
        """Name the optional dependency of our package that these parameters need and lack.

        Cheap: a file's name may decide, its content does not.
        """
        return None

    @abstractmethod
    def load_tasks(self) -> Sequence[Task]:
        """Load every task, in the benchmark's order, ids unique. Blocking: called in a thread.

        Raises:
            BadInput: all that is wrong with the data, at once.
        """

    def task_ids(self) -> Sequence[str] | None:
        """Give the ids of all tasks; None where that is not known without bringing data in.

        Asked when planning, where a request names some of them, so that a misspelt one is said
        before anything is created. Blocking.
        """
        return None

    @abstractmethod
    def task_input(self, task: Task, *, attempt: int, seed: int) -> TaskInput:
        """Give what the agent is shown in this attempt. Pure."""

    def generation_content(self, task: Task) -> Any:
        """Give, as JSON data, all of the task that can change what an agent does.

        Part of the generation identity. Must not depend on the attempt. The default is the whole
        of `task.data`; override it where that holds scoring data.
        """
        return dict(task.data)

    def evaluation_content(self, task: Task) -> Any:
        """Give, as JSON data, all of the task that can change its score."""
        return dict(task.data)

    def scoring_params(self, filled: Mapping[str, Any]) -> Mapping[str, Any]:
        """Give what of its own parameters can change a score: part of the evaluation identity.

        Args:
            filled: all of them as plain data, defaults filled in, secrets as references.
        """
        return {name: value for name, value in filled.items() if name != "path"}

    def scoring_models(self) -> Sequence[Mapping[str, Any]]:
        """Give the models that scoring calls, as `ModelSettings` in JSON form.

        Asked when planning, so that what is wrong with them is said before anything runs.

        Raises:
            BadInput: a model or its endpoint is not named, or may not be used.
        """
        return ()

    def reference(self, task: Task) -> Reference | None:
        """Give the known good answer, None where there is none."""
        return None

    async def begin(self, task: Task, session: Session) -> None:
        """Put in place what `workspace` cannot, and wait until all is ready.

        Called once the agent's environment is open and its workspace laid out, and again before
        each of the task's stages. None of it is the agent's time.

        Raises:
            AttemptFault: the task cannot begin.
        """
        return

    def goes_on(self, stage: Task, evaluation: Evaluation) -> bool:
        """True where the stage after this one is to begin."""
        return True

    def combined(self, task: Task, evaluations: Sequence[Evaluation]) -> Evaluation:
        """Make one evaluation of those of the stages that were worked on.

        Raises:
            AttemptFault: they do not add up.
        """
        raise AttemptFault(IssueCode.SCORER_CRASHED, f"{self.id} does not combine stages")

    @abstractmethod
    async def evaluate(self, task: Task, context: ScoringContext) -> Evaluation:
        """Score one attempt. A wrong answer is a low score; raising is the scorer's own fault.

        Raises:
            AttemptFault: a known cause.
            EnvironmentFault: the scorer's environment failed.
        """
