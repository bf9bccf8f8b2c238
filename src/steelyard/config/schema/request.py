"""One evaluation request: benchmark × harness × model × environment with its settings.

Values here are the *resolved* ones: layers merged, `${NAME}` expanded, secrets replaced by
`SecretRef`. Defaults are those of the seeds.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt, StringConstraints

from steelyard.config.secrets import SecretRef

Text = Annotated[str, StringConstraints(min_length=1)]
NonNegativeNumber = Annotated[float, Field(ge=0)]
MAX_SEED: Final = 2**63 - 1
"""What a model's endpoint takes as a seed: a signed number of 64 bits."""
Protocol = Literal["openai-chat", "openai-responses", "anthropic"]
Strategy = Literal["avg", "pass"]


class Strict(BaseModel):
    """Refuses unknown fields; never changes after it is read."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        arbitrary_types_allowed=True,
        allow_inf_nan=False,
        defer_build=True,  # most of these are only ever built as a part of a whole document
    )


class Component(BaseModel):
    """`id` selects the component; every other field is one of its parameters."""

    model_config = ConfigDict(
        extra="allow", frozen=True, arbitrary_types_allowed=True, defer_build=True
    )
    id: Text
    """Which one: an id, an alias, `module:Class`, `./file.py:Class`, a pack's folder."""

    @property
    def params(self) -> dict[str, Any]:
        """Every field but `id`; secrets are `SecretRef`."""
        return dict(self.__pydantic_extra__ or {})


class Endpoint(Strict):
    """How a model is reached, all but its id."""

    base_url: str | SecretRef | None = None
    """A `SecretRef` where the URL carries user info or a query."""
    api_key: SecretRef | None = None
    """The endpoint's key, best as `${NAME}`; none for a keyless server."""
    api_protocol: Protocol = "openai-chat"
    """What the endpoint speaks."""
    params: dict[str, Any] = Field(default_factory=dict)
    """Forwarded as they are, nested and unknown ones too."""
    extra_headers: dict[str, SecretRef] = Field(default_factory=dict)
    """Headers of every call; all are secret."""
    max_request_retries: Annotated[int, Field(ge=0)] = 5
    """Tries again after 408, 409, 429, 5xx and lost connections."""
    max_connections: PositiveInt = 64
    """Calls at once; shrinks on 429 and grows back."""
    rpm: PositiveFloat | None = None
    """Calls a minute."""
    tpm: PositiveFloat | None = None
    """Tokens a minute."""
    request_timeout_seconds: NonNegativeNumber = 600
    """0 for none."""
    max_response_bytes: PositiveInt = 16 * 1024 * 1024
    """An answer longer than this is an ERROR of the agent."""
    provider_tools: bool = False
    """Agents behind the gateway may use what the provider runs itself: web search, MCP, URLs."""


class ModelSettings(Endpoint):
    """A model: what is asked, where, how, and within which limits."""

    id: Text
    """What is sent to the endpoint; `none` where no model is called."""


class AttemptsSettings(Strict):
    """How often each task is tried, and how the tries become one figure."""

    k: PositiveInt = 1
    """Attempts of each task."""
    strategy: Strategy = "avg"
    """How attempts become one figure; `pass` needs a binary metric."""
    early_stop: bool | None = None
    """None: true for `pass`, false for `avg`."""


class PhaseMultipliers(Strict):
    """Factors on the time limits of single phases."""

    setup: PositiveFloat = 1.0
    """Factor on the set-up's limit."""
    run: PositiveFloat = 1.0
    """Factor on the agent's limit."""
    collect: PositiveFloat = 1.0
    """Factor on the collection's limit."""
    evaluate: PositiveFloat = 1.0
    """Factor on the scorer's limit."""


class SavedArtifacts(Strict):
    """Files of the agent's environment that are kept beside the record."""

    paths: list[Text] = Field(default_factory=list)
    """Files or folders, relative to the working folder, or absolute inside the environment."""
    globs: list[Text] = Field(default_factory=list)
    """Patterns of files of the working folder; `**` crosses folders."""
    excludes: list[Text] = Field(default_factory=list)
    """Patterns of what is left out; one without a slash holds at any depth."""
    command: Annotated[list[Text], Field(min_length=1)] | None = None
    """Run in the working folder before anything is taken; no shell."""
    max_bytes: PositiveInt = 256 * 1024 * 1024
    """The most that is taken of an attempt; what does not fit is left out, with a WARNING."""
    max_files: PositiveInt = 10_000
    """The most files that are taken of an attempt."""


class ExecutionSettings(Strict):
    """How the attempts of one request are executed."""

    attempts: AttemptsSettings = AttemptsSettings.model_construct()
    """How often each task is tried."""
    seed: Annotated[int, Field(ge=0, le=MAX_SEED)] | None = None
    """Of the first attempt; others get one derived from it. For task, agent and model's calls."""
    max_concurrent_attempts: PositiveInt | None = None
    """Attempts of this request at once; None: as many as the pool gives."""
    max_retries: Annotated[int, Field(ge=0, le=100)] = 0
    """Further executions of an attempt that ended FATAL."""
    retry_pattern_list: list[str] | None = None
    """An ERROR whose message or code one of these matches is retried too."""
    run_timeout_seconds: NonNegativeNumber | None = None
    """None: what the benchmark says; 0: no limit."""
    evaluation_timeout_seconds: NonNegativeNumber | None = None
    """None: what the benchmark says; 0: no limit."""
    setup_timeout_seconds: NonNegativeNumber = 600
    """For opening an environment, the agent's or the scorer's; 0: no limit."""
    collection_timeout_seconds: NonNegativeNumber = 600
    """For taking files out of the agent's environment; 0: no limit."""
    timeout_multiplier: PositiveFloat | PhaseMultipliers = 1.0
    """Factor on time limits, for all phases or for each."""
    keep_environment: bool = False
    """Leave environments open for debugging."""
    analysis: bool | list[Text | Component] = False
    """Analyzers that read the run at its end: ids, or `{id, parameters}`; true for `failures`."""
    recipes: list[Text] = Field(default_factory=list)
    """Named adaptations that fit benchmark, harness and environment together."""
    save_artifacts: list[Text | SavedArtifacts] = Field(default_factory=list)
    """Files of the environment to keep with each attempt: paths, patterns, or both with bounds."""
    limit: PositiveInt | None = None
    """Only the first so many tasks."""
    sample_ids: list[str] | None = None
    """Only these tasks."""
    exclude_ids: list[str] = Field(default_factory=list)
    """Not these tasks."""
    shard: Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]*/[1-9][0-9]*$")] | None = None
    """`i/n`: the i-th of n parts, counted from 1."""


class RequestRuntime(Strict):
    """Where earlier work may be taken from."""

    reuse: bool = False
    """Take finished work from the latest compatible run."""
    reuse_run_id: Text | None = None
    """Implies `reuse`."""
    checkpoint_resume: bool = True
    """Restore what scoring needs where only scoring is pending."""


class Output(Strict):
    """How the request's result folder is organised."""

    run_name: str | None = None
    """A folder that groups runs."""
    run_id: Text | None = None
    """The new run's folder, unused so far; by default its UTC start."""


class Budget(Strict):
    """Money and tokens that may be spent; None where there is no bound."""

    usd: NonNegativeNumber | None = None
    """Dollars."""
    tokens: Annotated[int, Field(ge=0)] | None = None
    """Tokens, input and output."""
    attempt_usd: NonNegativeNumber | None = None
    """Dollars of one attempt."""
    attempt_tokens: Annotated[int, Field(ge=0)] | None = None
    """Tokens of one attempt."""
    reserve_usd: NonNegativeNumber | None = None
    """What to reserve for an attempt before any has been measured."""


class Request(Strict):
    """One resolved evaluation request."""

    name: Text
    """Its result folder, its line of progress, its outcome."""
    benchmark: Component
    """The tasks and how they are scored."""
    harness: Component
    """The agent scaffold."""
    environment: Component = Component.model_construct(id="auto")
    """Where programs run; `auto` picks a sandbox where model-written code will."""
    model: ModelSettings
    """The model."""
    execution: ExecutionSettings = ExecutionSettings.model_construct()
    """How attempts are executed."""
    runtime: RequestRuntime = RequestRuntime.model_construct()
    """Where earlier work may be taken from."""
    output: Output = Output.model_construct()
    """How the result folder is organised."""
    budget: Budget = Budget.model_construct()
    """What the request may spend."""
