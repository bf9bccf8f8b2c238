"""Measure AI agents: every attempt on record, every score with its uncertainty.

`run` evaluates one model with one harness on one benchmark, `launch` runs many requests over one
pool, `resolve` says what would run; `load_run` reads what an earlier run left. Everything here is
imported when it is first used: `import steelyard` costs nothing.
"""

from steelyard._version import __version__

TYPE_CHECKING = False  # as `typing.TYPE_CHECKING`, whose module is slow to import
if TYPE_CHECKING:
    from steelyard.components.benchmark import (
        Benchmark,
        BenchmarkInfo,
        EnvironmentNeeds,
        Evaluation,
        MetricSpec,
        Reference,
        ScoringContext,
        Task,
        TaskInput,
        TaskLimits,
        binary,
        scalar,
    )
    from steelyard.components.environment import Environment, Session
    from steelyard.components.harness import (
        Harness,
        HarnessContext,
        HarnessResult,
        HarnessTraits,
        Step,
    )
    from steelyard.components.issues import (
        AttemptFault,
        Issue,
        IssueCode,
        Outcome,
        Phase,
        Severity,
    )
    from steelyard.components.model import ModelRequest, ModelResponse, ToolCall
    from steelyard.components.values import Message, Trust, Usage
    from steelyard.config.errors import BadInput, Fault, Problem, SteelyardError, Where
    from steelyard.engine.events import RunOutcome
    from steelyard.results.documents import RunUnreadable
    from steelyard.results.records import AttemptRecord, Timing
    from steelyard.sdk.builders import Model, Orchestration, Request
    from steelyard.sdk.comparing import Comparison, Difference, TaskDifference, compare
    from steelyard.sdk.events import (
        AttemptFinished,
        AttemptStarted,
        Event,
        EventsLost,
        Notice,
        PhaseStarted,
        RunFinished,
        RunProgress,
    )
    from steelyard.sdk.faults import NotCompleted, PackageMissing
    from steelyard.sdk.launching import alaunch, aresolve, arun, launch, resolve, run
    from steelyard.sdk.preview import ResolvedLaunch, ResolvedRequest
    from steelyard.sdk.results import LaunchResult, RunResult, load_run
    from steelyard.sdk.scores import Coverage, Estimate, Score

_HOMES = {
    "components.benchmark": (
        "Benchmark", "BenchmarkInfo", "EnvironmentNeeds", "Evaluation", "MetricSpec", "Reference",
        "ScoringContext", "Task", "TaskInput", "TaskLimits", "binary", "scalar",
    ),
    "components.environment": ("Environment", "Session"),
    "components.harness": (
        "Harness", "HarnessContext", "HarnessResult", "HarnessTraits", "Step",
    ),
    "components.issues": ("AttemptFault", "Issue", "IssueCode", "Outcome", "Phase", "Severity"),
    "components.model": ("ModelRequest", "ModelResponse", "ToolCall"),
    "components.values": ("Message", "Trust", "Usage"),
    "config.errors": ("BadInput", "Fault", "Problem", "SteelyardError", "Where"),
    "engine.events": ("RunOutcome",),
    "results.documents": ("RunUnreadable",),
    "results.records": ("AttemptRecord", "Timing"),
    "sdk.builders": ("Model", "Orchestration", "Request"),
    "sdk.comparing": ("Comparison", "Difference", "TaskDifference", "compare"),
    "sdk.events": (
        "AttemptFinished", "AttemptStarted", "Event", "EventsLost", "Notice", "PhaseStarted",
        "RunFinished", "RunProgress",
    ),
    "sdk.faults": ("NotCompleted", "PackageMissing"),
    "sdk.launching": ("alaunch", "aresolve", "arun", "launch", "resolve", "run"),
    "sdk.preview": ("ResolvedLaunch", "ResolvedRequest"),
    "sdk.results": ("LaunchResult", "RunResult", "load_run"),
    "sdk.scores": ("Coverage", "Estimate", "Score"),
}  # fmt: skip
"""Which module each public name is imported from when it is first asked for."""

__all__ = [
    "AttemptFault",
    "AttemptFinished",
    "AttemptRecord",
    "AttemptStarted",
    "BadInput",
    "Benchmark",
    "BenchmarkInfo",
    "Comparison",
    "Coverage",
    "Difference",
    "Environment",
    "EnvironmentNeeds",
    "Estimate",
    "Evaluation",
    "Event",
    "EventsLost",
    "Fault",
    "Harness",
    "HarnessContext",
    "HarnessResult",
    "HarnessTraits",
    "Issue",
    "IssueCode",
    "LaunchResult",
    "Message",
    "MetricSpec",
    "Model",
    "ModelRequest",
    "ModelResponse",
    "NotCompleted",
    "Notice",
    "Orchestration",
    "Outcome",
    "PackageMissing",
    "Phase",
    "PhaseStarted",
    "Problem",
    "Reference",
    "Request",
    "ResolvedLaunch",
    "ResolvedRequest",
    "RunFinished",
    "RunOutcome",
    "RunProgress",
    "RunResult",
    "RunUnreadable",
    "Score",
    "ScoringContext",
    "Session",
    "Severity",
    "SteelyardError",
    "Step",
    "Task",
    "TaskDifference",
    "TaskInput",
    "TaskLimits",
    "Timing",
    "ToolCall",
    "Trust",
    "Usage",
    "Where",
    "__version__",
    "alaunch",
    "aresolve",
    "arun",
    "binary",
    "compare",
    "launch",
    "load_run",
    "resolve",
    "run",
    "scalar",
]


def __getattr__(name: str) -> object:
    for module, names in _HOMES.items():
        if name in names:
            from importlib import import_module

            found: object = getattr(import_module(f"steelyard.{module}"), name)
            globals()[name] = found
            return found
    raise AttributeError(f"module 'steelyard' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
