"""The executor's seam: an execution as a value that goes out, a result as a value that returns.

Both are JSON without secrets. `RequestSpec` is shared by every execution of a request, so that
in process nothing is copied or parsed per attempt.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from steelyard.components.benchmark import Task
from steelyard.components.issues import Issue, Outcome
from steelyard.components.values import NO_USAGE, Trust, Usage

SPEC_SCHEMA = "execution-spec/1"
RESULT_SCHEMA = "execution-result/1"


@dataclass(frozen=True, slots=True)
class ComponentSpec:
    """A component by id, with its parameters as plain data; secrets in their `$secret` form."""

    id: str
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """Seconds for each phase, multipliers applied; None for no limit.

    For `run_s` and `evaluate_s`, -1 means: what the task says.
    """

    setup_s: float | None
    run_s: float | None
    evaluate_s: float | None
    run_factor: float = 1.0
    evaluate_factor: float = 1.0


@dataclass(frozen=True, slots=True)
class RequestSpec:
    """What every execution of one request shares."""

    request_name: str
    benchmark: ComponentSpec
    harness: ComponentSpec
    environment: ComponentSpec
    """Never `auto`: what it resolved to."""
    model: Mapping[str, Any] | None
    """`ModelSettings` as JSON, secrets in their `$secret` form; None for model id `none`."""
    limits: TimeLimits
    prices: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)
    data_dir: str | None = None
    cleanup_grace_s: float = 30.0


@dataclass(frozen=True, slots=True)
class ExecutionSpec:
    """One physical try of one attempt."""

    request: RequestSpec
    task: Task
    attempt: int
    execution: int
    token: str
    """In the journal before the execution starts; marks everything it creates."""
    seed: int
    attempt_dir: str
    """Where files of this attempt go; made only when something is written."""


@dataclass(frozen=True, slots=True)
class PhaseTimes:
    """Seconds spent in each phase."""

    setup_s: float = 0.0
    agent_s: float = 0.0
    waited_s: float = 0.0
    collect_s: float = 0.0
    evaluate_s: float = 0.0


@dataclass(frozen=True, slots=True)
class ExecutionResult:
    """How one execution ended."""

    outcome: Outcome
    metrics: Mapping[str, float | bool] = field(default_factory=dict)
    answer: str | None = None
    answer_file: str | None = None
    issues: tuple[Issue, ...] = ()
    usage: Usage = NO_USAGE
    times: PhaseTimes = PhaseTimes()
    trust: Trust | None = None
    environment: Mapping[str, Any] | None = None
    trajectory: Mapping[str, Any] | None = None
    artifacts: tuple[Mapping[str, Any], ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    request_fault: str | None = None
    """Why the same fault would meet every attempt of the request."""
    model_calls_succeeded: int = 0


class Executor(Protocol):
    """Runs executions, here or elsewhere.

    `execute` never raises for what happens to the attempt: that is in the result. Cancelling it
    ends the execution with its clean-up done.
    """

    async def execute(self, spec: ExecutionSpec) -> ExecutionResult:
        """Run one execution to its end."""
        ...

    async def close(self) -> None:
        """Close what it holds, after the last execution."""
        ...
