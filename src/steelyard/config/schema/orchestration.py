"""An orchestration: requests in order over one pool, and what they share."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PositiveInt

from steelyard.config.schema.request import (
    Budget,
    NonNegativeNumber,
    Request,
    Strict,
    Text,
)

LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]
LogFormat = Literal["text", "json"]
Progress = Literal["auto", "plain", "none"]
Limit = Annotated[int, Field(ge=0)]


class Price(Strict):
    """What a model costs, in US dollars a million tokens."""

    input_per_mtok: NonNegativeNumber
    """Of input tokens."""
    output_per_mtok: NonNegativeNumber
    """Of output tokens."""
    cached_per_mtok: NonNegativeNumber | None = None
    """Of cached input tokens; by default as input."""


class SharedRuntime(Strict):
    """Controls of the whole orchestration."""

    provider_limits: dict[str, Limit] = Field(default_factory=dict)
    """Attempts at once through a provider; 0 for no limit; 128 for built-in providers."""
    env_open_qps: dict[str, NonNegativeNumber] = Field(default_factory=dict)
    """Environments opened a second; 0 for no pacing; remote providers 10."""
    max_concurrent_requests: PositiveInt | None = None
    """Requests that have begun and not ended, in declaration order; None for no bound."""
    results_dir: Text = "results"
    """Root of results, relative to the working folder."""
    data_dir: Text | None = None
    """Where data sets lie."""
    timeout_seconds: NonNegativeNumber = 360_000
    """Wall clock of the whole orchestration; 0 for none."""
    cleanup_grace_seconds: NonNegativeNumber = 30
    """How long clean-up may take once all must stop."""
    progress: Progress = "auto"
    """How progress is shown."""
    log_level: LogLevel = "INFO"
    """Of the terminal."""
    file_log_level: LogLevel = "DEBUG"
    """Of `run.log`."""
    log_format: LogFormat = "text"
    """Of what is said on standard error: `json` for lines of schema `log/1`."""
    file_log_format: LogFormat = "text"
    """Of `run.log`."""
    allow_unpriced: bool = False
    """Run under a dollar budget with models whose price is unknown; they then count as free."""
    auto_install_dependencies: bool = False
    """Install missing extras of our own and agents' programs, at pinned versions."""
    secret_env: list[Text] = Field(default_factory=list)
    """Names of environment variables whose values are redacted everywhere."""


class Orchestration(Strict):
    """A resolved orchestration: every request complete, nothing left to inherit."""

    version: Literal[1] = 1
    """The format's version."""
    name: Text = "orchestration"
    """What people call it."""
    task_concurrency: PositiveInt = 32
    """Attempts at once over all requests, retries included."""
    runtime: SharedRuntime = SharedRuntime.model_construct()
    """Controls of the whole."""
    budget: Budget = Budget.model_construct()
    """What the whole may spend."""
    prices: dict[str, Price] = Field(default_factory=dict)
    """What models cost, by model id."""
    requests: Annotated[list[Request], Field(min_length=1)]
    """Requests in order of priority."""
