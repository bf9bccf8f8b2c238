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
Progress = Literal["auto", "plain", "none"]
Limit = Annotated[int, Field(ge=0)]


class Price(Strict):
    """What a model costs, in US dollars a million tokens."""

    input_per_mtok: NonNegativeNumber
    output_per_mtok: NonNegativeNumber
    cached_per_mtok: NonNegativeNumber | None = None


class SharedRuntime(Strict):
    """Controls of the whole orchestration."""

    provider_limits: dict[str, Limit] = Field(default_factory=dict)
    """Attempts at once through a provider; 0 for no limit; 128 for built-in providers."""
    env_open_qps: dict[str, NonNegativeNumber] = Field(default_factory=dict)
    """Environments opened a second; 0 for no pacing; remote providers 10."""
    results_dir: Text = "results"
    data_dir: Text | None = None
    timeout_seconds: NonNegativeNumber = 360_000
    """Wall clock of the whole orchestration; 0 for none."""
    cleanup_grace_seconds: NonNegativeNumber = 30
    progress: Progress = "auto"
    log_level: LogLevel = "INFO"
    file_log_level: LogLevel = "DEBUG"
    auto_install_dependencies: bool = False
    secret_env: list[Text] = Field(default_factory=list)
    """Names of environment variables whose values are redacted everywhere."""


class Orchestration(Strict):
    """A resolved orchestration: every request complete, nothing left to inherit."""

    version: Literal[1] = 1
    name: Text = "orchestration"
    task_concurrency: PositiveInt = 32
    runtime: SharedRuntime = SharedRuntime()
    budget: Budget = Budget()
    prices: dict[str, Price] = Field(default_factory=dict)
    requests: Annotated[list[Request], Field(min_length=1)]
