"""The executor's seam: an execution as a value that goes out, a result as a value that returns.

Both are JSON without secrets. `RequestSpec` is shared by every execution of a request, so that
in process nothing is copied or parsed per attempt.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from steelyard.components.artifacts import ArtifactSpec, EvaluationMode
from steelyard.components.benchmark import Task
from steelyard.components.environment import Kept
from steelyard.components.harness import Step
from steelyard.components.issues import Issue, Outcome, Phase
from steelyard.components.often_made import often_made
from steelyard.components.values import NO_USAGE, Trust, Usage
from steelyard.models.allowance import NO_CHARGE, Charge

SPEC_SCHEMA = "execution-spec/1"
RESULT_SCHEMA = "execution-result/1"


@dataclass(frozen=True, slots=True)
class ComponentSpec:
    """A component by id, with its parameters as plain data; secrets in their `$secret` form."""

    id: str
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """Seconds that the request grants each phase, before its multiplier."""

    setup_s: float = 600.0
    """0 for no limit."""
    run_s: float | None = None
    """None: what the task says; 0: no limit."""
    evaluate_s: float | None = None
    setup_factor: float = 1.0
    run_factor: float = 1.0
    evaluate_factor: float = 1.0
    collect_s: float = 600.0
    """0 for no limit."""
    collect_factor: float = 1.0

    def setup(self) -> float | None:
        """Seconds to open an environment and fill it; None for no limit."""
        return self.setup_s * self.setup_factor or None

    def run(self, task_s: float | None) -> float | None:
        """Seconds of the agent's own time; None for no limit."""
        granted = task_s if self.run_s is None else self.run_s
        return granted * self.run_factor if granted else None

    def collect(self) -> float | None:
        """Seconds to take out of the agent's environment what is wanted; None for no limit."""
        return self.collect_s * self.collect_factor or None

    def evaluate(self, task_s: float | None) -> float | None:
        """Seconds for scoring; None for no limit."""
        granted = task_s if self.evaluate_s is None else self.evaluate_s
        return granted * self.evaluate_factor if granted else None


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
    limits: TimeLimits = TimeLimits()
    prices: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)
    data_dir: str | None = None
    cleanup_grace_s: float = 30.0
    attempt_usd: float | None = None
    """What one attempt's model calls may cost; None for no bound."""
    attempt_tokens: int | None = None
    """How many tokens, input and output together, they may take."""
    save_artifacts: tuple[ArtifactSpec, ...] = ()
    """What to keep of the agent's environment beside each record."""
    keep_environment: bool = False
    """Whether sessions stand when they have ended, for a person to look into."""
    seed: int | None = None
    """What the user asked for; None: attempts are numbered, and models are sent none."""


@dataclass(frozen=True, slots=True)
class SavedWork:
    """What an agent left, in an earlier run or execution, as far as scoring takes it."""

    answer: str | None
    steps: tuple[Step, ...] = ()
    inputs: Mapping[str, str] = field(default_factory=dict)
    """Path in the agent's working folder → where it lies on the host that executes."""
    checkpoint: Mapping[str, Any] | None = None
    """`{path, sha256}` of the checkpoint in this run that holds the same."""


@often_made(frozen=True, slots=True)
class AttemptPlace:
    """Where an execution keeps what must outlive it, on the host that executes."""

    root: str
    """The run directory."""
    generation: str | None = None
    """The attempt's generation identity, for its checkpoint."""


@often_made(frozen=True, slots=True)
class ExecutionSpec:
    """One physical try of one attempt."""

    request: RequestSpec
    task: Task
    attempt: int
    execution: int
    token: str
    """In the journal before the execution starts; marks everything it creates."""
    seed: int
    """The attempt's own, as `seeds.attempt_seed` gives it."""
    saved: SavedWork | None = None
    """Given, the agent does not run: its saved work is scored again."""
    place: AttemptPlace | None = None
    """None: nothing is kept beside the result."""
    earlier: Charge = NO_CHARGE
    """What earlier executions of the attempt spent; its allowance is for them all."""


@often_made(frozen=True, slots=True)
class PhaseTimes:
    """Seconds spent in each phase."""

    setup_s: float = 0.0
    agent_s: float = 0.0
    waited_s: float = 0.0
    collect_s: float = 0.0
    evaluate_s: float = 0.0


@often_made(frozen=True, slots=True)
class ExecutionResult:
    """How one execution ended."""

    outcome: Outcome
    metrics: Mapping[str, float | bool] = field(default_factory=dict)
    answer: str | None = None
    issues: tuple[Issue, ...] = ()
    usage: Usage = NO_USAGE
    agent_usage: Usage = NO_USAGE
    """What of it the agent's own calls consumed; the rest are those of scoring."""
    times: PhaseTimes = PhaseTimes()
    trust: Trust | None = None
    environment: Mapping[str, Any] | None = None
    steps: tuple[Step, ...] = ()
    artifacts: tuple[Mapping[str, Any], ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    request_fault: str | None = None
    """Why the same fault would meet every attempt of the request."""
    model_calls_succeeded: int = 0
    mode: EvaluationMode | None = None
    """Where it was scored, or would have been; None where that is not known."""
    checkpoint: Mapping[str, Any] | None = None
    """`{path, sha256}` of the checkpoint from which it can be scored again."""
    drops_inputs: bool = False
    """What it was scored by is too large to be kept, and is to go once its record is written."""
    work: SavedWork | None = None
    """Where only scoring failed: what it takes to score the agent's work again."""
    charge: Charge | None = None
    """What budgets count for it, unknown costs by their size; None: what `usage` says."""

    @property
    def charged(self) -> Charge:
        """What budgets count for it."""
        return Charge.of(self.usage) if self.charge is None else self.charge

    def fault_of_request(self, calls_succeeded: int) -> str | None:
        """Say why the request must stop at once; None where it need not.

        Once the agent's model has answered, a refusal is of one attempt. A scorer's model is
        another one: that the agent's has answered says nothing of it.

        Args:
            calls_succeeded: how many calls of the agent's model have, in all attempts.
        """
        is_scorers = any(issue.phase is Phase.EVALUATE for issue in self.issues)
        return self.request_fault if is_scorers or not calls_succeeded else None


class ExecutionObserver(Protocol):
    """Is told of an execution while it runs; must return at once and never raise."""

    def phase(self, token: str, phase: Phase) -> None:
        """A phase has begun."""
        ...

    def session(self, token: str, state: Literal["opened", "closed"], provider: str) -> None:
        """A session with this token was opened, or closed."""
        ...

    def kept(self, token: str, provider: str, kept: Kept) -> None:
        """A session with this token has ended and stands, in place of `closed`."""
        ...

    def step(self, token: str, step: Step) -> None:
        """A step of an agent that is recorded as it happens: one that uses the gateway."""
        ...

    def checkpoint(self, token: str, path: str) -> None:
        """The agent's work is on the disk, and can be scored without it; `path` in the run."""
        ...


class Executor(Protocol):
    """Runs executions, here or elsewhere.

    `execute` never raises for what happens to the attempt: that is in the result. Cancelled, it
    ends the execution, cleans up and returns a result with outcome `cancelled` and with what was
    spent; cancelled a second time it gives up the clean-up and returns that result at once.
    """

    async def execute(self, spec: ExecutionSpec, observer: ExecutionObserver) -> ExecutionResult:
        """Run one execution to its end."""
        ...

    async def release(self, spec: RequestSpec) -> None:
        """Let go of what it holds for a request, after its last execution. Never raises."""
        ...

    async def close(self) -> None:
        """Close what it holds, after the last execution."""
        ...
