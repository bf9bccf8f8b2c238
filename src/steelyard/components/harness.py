"""The contract of a harness: the agent scaffold that works on one task."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

from pydantic import BaseModel

from steelyard.components.benchmark import Reference, TaskInput
from steelyard.components.clock import AgentTimer
from steelyard.components.environment import Mount, NoParams, Session
from steelyard.components.gateway import ModelAccess
from steelyard.components.issues import Issue
from steelyard.components.model import ModelClient
from steelyard.components.steps import Step as Step


@dataclass(frozen=True, slots=True)
class HarnessTraits:
    """What the engine must know before it starts one."""

    calls_model: bool
    """False: the model id is `none` and no endpoint is needed."""
    runs_model_code: bool = False
    """True where programs a model wrote run in the agent's environment."""
    needs_reference: bool = False
    """True for `oracle` alone: it is handed the task's reference."""
    attempts_may_overlap: bool = True
    """True where two attempts of one task share nothing outside their environments."""
    uses_gateway: bool = False
    """True where programs in the environment call the model: it is opened with the gateway in
    place, and `model_access` says how to reach it."""
    model_optional: bool = False
    """True where it works with the model id `none` as well, and then calls none."""

    def calls(self, model_id: str) -> bool:
        """True where a model of this id is called; `none` is the id of no model."""
        return self.calls_model and not (self.model_optional and model_id == "none")


class HarnessContext(Protocol):
    """What a harness may use during one execution."""

    @property
    def task_id(self) -> str:
        """The task worked on."""
        ...

    @property
    def input(self) -> TaskInput:
        """What the agent is shown."""
        ...

    @property
    def attempt(self) -> int:
        """Which of the k tries this is, counted from 1."""
        ...

    @property
    def seed(self) -> int:
        """For whatever the harness draws at random."""
        ...

    @property
    def reference(self) -> Reference | None:
        """The known good answer; None unless the traits ask for it."""
        ...

    @property
    def timer(self) -> AgentTimer:
        """The agent's stopwatch; wait for others inside `timer.waiting()`."""
        ...

    @property
    def model(self) -> ModelClient:
        """The model, bound to this attempt; raises where the request names none."""
        ...

    @property
    def has_model(self) -> bool:
        """False where the request's model id is `none`."""
        ...

    async def session(self) -> Session:
        """Open the agent's environment, once, with the task's workspace in place.

        Raises:
            EnvironmentFault: it could not be opened.
        """
        ...

    async def model_access(self) -> ModelAccess:
        """Say how programs in the session reach the model, through the run's gateway.

        What they call is counted, recorded as steps and held to the attempt's budget.

        Raises:
            AttemptFault: the request names no model, or the traits do not say `uses_gateway`.
            EnvironmentFault: the session could not be opened.
        """
        ...

    def step(self, step: Step) -> None:
        """Add a step to the trajectory; kept even where the harness fails afterwards."""
        ...

    def keep_answer(self, answer: str | None) -> None:
        """Say what the answer is as things stand: it counts where the agent's time runs out.

        What `run` returns takes its place.
        """
        ...


@dataclass(frozen=True, slots=True)
class HarnessResult:
    """What came of one execution of the agent."""

    answer: str | None
    """Its last words; the engine replaces them where the task takes a file or a command."""
    issues: tuple[Issue, ...] = ()
    """ERRORs and WARNINGs. With an ERROR the partial work is still scored only where the
    benchmark says so."""
    details: Mapping[str, Any] = field(default_factory=dict)


class Harness(ABC):
    """An agent scaffold. One instance serves all attempts of a run. Plug-ins subclass it."""

    api: ClassVar[int] = 1
    id: ClassVar[str]
    version: ClassVar[str] = "1"
    """Part of the generation identity; changes when behaviour changes."""
    traits: ClassVar[HarnessTraits]
    Params: ClassVar[type[BaseModel]] = NoParams

    protocols: ClassVar[tuple[str, ...]] = ()
    """What its programs speak where that is not for the request to say: `model.api_protocol` may
    then name no other. Empty: whatever the request names."""

    data_dir: Path | None = None
    """Where data lie, as the settings say; set once it is made. None: nothing is said."""

    def __init__(self, params: BaseModel) -> None:
        self.params = params

    def generation_params(self, filled: Mapping[str, Any]) -> Mapping[str, Any]:
        """Give what of its parameters can change what it does: part of the generation identity.

        Args:
            filled: all of them as plain data, defaults filled in, secrets as references.
        """
        return filled

    @classmethod
    def unavailable(cls) -> str | None:
        """Say what this machine lacks to run it, and the remedy; None where nothing."""
        return None

    def lacking(self) -> str | None:
        """Say what this machine lacks to run it with these parameters; None where nothing.

        A program that is not installed is such a thing. Asked when planning, once `data_dir` is
        set.
        """
        return self.unavailable()

    def installation(self) -> Callable[[], str] | None:
        """Give what installs all that `lacking` names; None where a person must.

        Called, blocking, where the user let missing programs be installed; gives what was done.
        """
        return None

    async def prepare(self) -> None:
        """Make, once a run and before the first session, what sessions will mount or use.

        Raises:
            AttemptFault: it cannot be made; with `request_fault` where no attempt could go on.
        """
        return

    def mounts(self) -> Sequence[Mount]:
        """Name what each of the agent's sessions must see of the host; asked after `prepare`."""
        return ()

    @abstractmethod
    async def run(self, context: HarnessContext) -> HarnessResult:
        """Work on the task. Cancelled when the agent's time is up.

        Raises:
            AttemptFault: a known cause, the model client's own among them.
            EnvironmentFault: the environment failed.
        """

    async def close(self) -> None:
        """Let go of what the harness holds. Called once, at the end of the run."""
        return
