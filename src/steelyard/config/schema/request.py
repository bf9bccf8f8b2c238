"""One evaluation request: benchmark × harness × model × environment with its settings.

Values here are the *resolved* ones: layers merged, `${NAME}` expanded, secrets replaced by
`SecretRef`. Defaults are those of the seeds.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt, StringConstraints

from steelyard.config.secrets import SecretRef

Text = Annotated[str, StringConstraints(min_length=1)]
NonNegativeNumber = Annotated[float, Field(ge=0)]
Protocol = Literal["openai-chat", "openai-responses", "anthropic"]
Strategy = Literal["avg", "pass"]


class Strict(BaseModel):
    """Refuses unknown fields; never changes after it is read."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, arbitrary_types_allowed=True, allow_inf_nan=False
    )


class Component(BaseModel):
    """`id` selects the component; every other field is one of its parameters."""

    model_config = ConfigDict(extra="allow", frozen=True, arbitrary_types_allowed=True)
    id: Text

    @property
    def params(self) -> dict[str, Any]:
        """Every field but `id`; secrets are `SecretRef`."""
        return dict(self.__pydantic_extra__ or {})


class Endpoint(Strict):
    """How a model is reached, all but its id."""

    base_url: str | SecretRef | None = None
    """A `SecretRef` where the URL carries user info or a query."""
    api_key: SecretRef | None = None
    api_protocol: Protocol = "openai-chat"
    params: dict[str, Any] = Field(default_factory=dict)
    """Forwarded as they are, nested and unknown ones too."""
    extra_headers: dict[str, SecretRef] = Field(default_factory=dict)
    max_request_retries: Annotated[int, Field(ge=0)] = 5
    max_connections: PositiveInt = 64
    rpm: PositiveFloat | None = None
    tpm: PositiveFloat | None = None
    request_timeout_seconds: NonNegativeNumber = 600
    """0 for none."""
    max_response_bytes: PositiveInt = 16 * 1024 * 1024


class ModelSettings(Endpoint):
    """A model: what is asked, where, how, and within which limits."""

    id: Text


class AttemptsSettings(Strict):
    """How often each task is tried, and how the tries become one figure."""

    k: PositiveInt = 1
    strategy: Strategy = "avg"
    early_stop: bool | None = None
    """None: true for `pass`, false for `avg`."""


class PhaseMultipliers(Strict):
    """Factors on the time limits of single phases."""

    setup: PositiveFloat = 1.0
    run: PositiveFloat = 1.0
    evaluate: PositiveFloat = 1.0


class ExecutionSettings(Strict):
    """How the attempts of one request are executed."""

    attempts: AttemptsSettings = AttemptsSettings()
    max_retries: Annotated[int, Field(ge=0)] = 0
    retry_pattern_list: list[str] | None = None
    run_timeout_seconds: NonNegativeNumber | None = None
    """None: what the benchmark says; 0: no limit."""
    evaluation_timeout_seconds: NonNegativeNumber | None = None
    setup_timeout_seconds: NonNegativeNumber = 600
    timeout_multiplier: PositiveFloat | PhaseMultipliers = 1.0
    keep_environment: bool = False
    analysis: bool | list[str] = False
    recipes: list[Text] = Field(default_factory=list)
    save_artifacts: list[Text] = Field(default_factory=list)
    limit: PositiveInt | None = None
    sample_ids: list[str] | None = None
    exclude_ids: list[str] = Field(default_factory=list)
    shard: Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]*/[1-9][0-9]*$")] | None = None
    """`i/n`: the i-th of n parts, counted from 1."""


class RequestRuntime(Strict):
    """Where earlier work may be taken from."""

    reuse: bool = False
    reuse_run_id: Text | None = None
    """Implies `reuse`."""
    checkpoint_resume: bool = True


class Output(Strict):
    """How the request's result folder is organised."""

    run_name: str | None = None
    run_id: Text | None = None


class Budget(Strict):
    """Money and tokens that may be spent; None where there is no bound."""

    usd: NonNegativeNumber | None = None
    tokens: Annotated[int, Field(ge=0)] | None = None
    attempt_usd: NonNegativeNumber | None = None
    attempt_tokens: Annotated[int, Field(ge=0)] | None = None
    reserve_usd: NonNegativeNumber | None = None


class Request(Strict):
    """One resolved evaluation request."""

    name: Text
    benchmark: Component
    harness: Component
    environment: Component = Component(id="auto")
    model: ModelSettings
    execution: ExecutionSettings = ExecutionSettings()
    runtime: RequestRuntime = RequestRuntime()
    output: Output = Output()
    budget: Budget = Budget()
