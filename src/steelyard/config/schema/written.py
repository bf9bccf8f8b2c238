"""What people write: configuration files and orchestrations before layers are merged.

Everything may be left out that another layer can give. The resolved forms are `Orchestration`
and `Request`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PositiveInt, StringConstraints

from steelyard.config.names import UUID_FORM
from steelyard.config.schema.orchestration import Price, SharedRuntime
from steelyard.config.schema.request import (
    Budget,
    Endpoint,
    ExecutionSettings,
    Output,
    RequestRuntime,
    Strict,
    Text,
)


class ComponentPart(BaseModel):
    """A component as written: `id` selects it, every other field is one of its parameters.

    Without an `id` its fields apply to whichever component a request names.
    """

    model_config = ConfigDict(
        extra="allow", frozen=True, arbitrary_types_allowed=True, defer_build=True
    )
    id: Text | None = None
    """Which one; without it the fields apply to whichever a request names."""

    @property
    def params(self) -> dict[str, Any]:
        """Every field but `id`."""
        return dict(self.__pydantic_extra__ or {})


class ModelPart(Endpoint):
    """A model as written."""

    id: Text | None = None
    """What is sent to the endpoint; `none` where no model is called."""


class ConfigExecution(ExecutionSettings):
    """`execution` of a configuration file, which may also hold the pool's size."""

    task_concurrency: PositiveInt = 32
    """Attempts at once over all requests, retries included."""


class ConfigRuntime(SharedRuntime, RequestRuntime):
    """`runtime` of a configuration file: shared controls and where work may be reused from."""


class DeploymentPart(Strict):
    """An agent of this project, which eval sets name: harness, model and environment."""

    name: Text
    """What eval sets call it: `agents[].deployment`."""
    id: Annotated[str, StringConstraints(pattern=UUID_FORM)] | None = None
    """Its UUID, which eval sets may name in place of the name; by default one of the name."""
    harness: ComponentPart = ComponentPart.model_construct()
    """The agent scaffold, as in a request."""
    model: ModelPart = ModelPart.model_construct()
    """The model, as in a request; an eval set's `models` take the place of its id."""
    environment: ComponentPart = ComponentPart.model_construct()
    """Where its programs run, as in a request."""


class JudgePart(Strict):
    """The model that judges: for packs' validators of type judge and for scanners."""

    model: ModelPart = ModelPart.model_construct()
    """The judging model, as in a request."""
    samples: Literal[1, 3, 5, 7, 9, 11, 13, 15] | None = None
    """How often each question is asked; odd, so that there is a majority; by default 1."""


class ConfigFile(Strict):
    """`config.yaml`, `steelyard.yaml`, and every file given with `--config`."""

    runtime: ConfigRuntime = ConfigRuntime.model_construct()
    """Controls of the whole orchestration, and reuse."""
    execution: ConfigExecution = ConfigExecution.model_construct()
    """How attempts are executed."""
    model: ModelPart = ModelPart.model_construct()
    """The model where a request names none, or fields it leaves out."""
    benchmark: ComponentPart = ComponentPart.model_construct()
    """Fields for benchmarks with this `id`, or for all without one."""
    harness: ComponentPart = ComponentPart.model_construct()
    """Fields for harnesses with this `id`, or for all without one."""
    environment: ComponentPart = ComponentPart.model_construct()
    """Fields for environments with this `id`, or for all without one."""
    output: Output = Output.model_construct()
    """How result folders are organised."""
    budget: Budget = Budget.model_construct()
    """What the whole orchestration may spend."""
    prices: dict[str, Price] = Field(default_factory=dict)
    """What models cost, by model id."""
    packs: list[Text] = Field(default_factory=list)
    """The project's packs, for eval sets: folders, or patterns of folders such as `packs/*`."""
    deployments: list[DeploymentPart] = Field(default_factory=list)
    """The project's agents, for eval sets; their `${NAME}` are read where one is used."""
    judge: JudgePart | None = None
    """The model that judges in eval sets: packs' validators of type judge, scanners."""


class Defaults(Strict):
    """What every request of an orchestration inherits."""

    model: ModelPart = ModelPart.model_construct()
    """Fields of every request's model."""
    benchmark: ComponentPart = ComponentPart.model_construct()
    """Fields for requests with this `id` or none; without an `id`, for all."""
    harness: ComponentPart = ComponentPart.model_construct()
    """Fields for requests with this `id` or none; without an `id`, for all."""
    environment: ComponentPart = ComponentPart.model_construct()
    """Fields for requests with this `id` or none; without an `id`, for all."""
    execution: ExecutionSettings = ExecutionSettings.model_construct()
    """How attempts are executed."""
    runtime: RequestRuntime = RequestRuntime.model_construct()
    """Where earlier work may be taken from."""
    output: Output = Output.model_construct()
    """How result folders are organised."""
    budget: Budget = Budget.model_construct()
    """What each request may spend."""


class RequestPart(Defaults):
    """One request as written."""

    name: Text
    """Its result folder, its line of progress, its outcome."""


class OrchestrationFile(Strict):
    """An orchestration as written."""

    version: Literal[1] = 1
    """The format's version."""
    name: Text = "orchestration"
    """What people call it."""
    task_concurrency: PositiveInt = 32
    """Attempts at once over all requests, retries included."""
    defaults: Defaults = Defaults.model_construct()
    """What every request inherits."""
    runtime: SharedRuntime = SharedRuntime.model_construct()
    """Controls of the whole orchestration."""
    budget: Budget = Budget.model_construct()
    """What the whole orchestration may spend."""
    prices: dict[str, Price] = Field(default_factory=dict)
    """What models cost, by model id."""
    requests: Annotated[list[RequestPart], Field(min_length=1)]
    """Requests in order of priority."""
