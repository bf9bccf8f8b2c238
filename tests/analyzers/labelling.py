"""What a labelled attempt is, and short ways to write one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from steelyard.analyzers.failures.classes import FailureClass as F
from steelyard.components.issues import Issue, IssueCode, Outcome, Phase
from steelyard.components.model import ToolCall
from steelyard.components.steps import Step, ToolResult
from steelyard.results.records import AttemptRecord


@dataclass(frozen=True)
class Labelled:
    label: F
    answer: str | None = None
    issues: tuple[Issue, ...] = ()
    outcome: Outcome = Outcome.SCORED
    details: Mapping[str, Any] = field(default_factory=dict)
    steps: Sequence[Step] = ()
    looks_like: F | None = None
    """Given: a hard negative, which a careless rule would call so."""

    def record(self, name: str) -> AttemptRecord:
        return AttemptRecord(
            name,
            1,
            self.outcome,
            metrics={"passed": False} if self.outcome is Outcome.SCORED else {},
            answer=self.answer,
            issues=self.issues,
            details=self.details,
            executions=1,
            trajectory={"path": "x"} if self.steps else None,
        )


def failed(code: IssueCode, message: str = "because", phase: Phase = Phase.RUN) -> dict[str, Any]:
    issue = Issue.of(code, phase, message)
    is_fatal = issue.severity == "FATAL"
    return {
        "issues": (issue,),
        "outcome": Outcome.FAILED_FATAL if is_fatal else Outcome.FAILED_ERROR,
    }


def says(text: str, stop: str | None = None, **extra: Any) -> Step:
    return Step("agent", text, {**({"stop_reason": stop} if stop else {}), **extra})


def calls(name: str, arguments: Any, result: str | None, number: int = 1) -> Step:
    written = arguments if isinstance(arguments, str) else json.dumps(arguments)
    call = ToolCall(f"c{number}", name, written)
    results = () if result is None else (ToolResult(f"c{number}", result),)
    return Step("agent", "", {}, (call,), results)


def reason(text: str) -> dict[str, Any]:
    return {"details": {"reasons": {"exact": text}}}


WRONG = reason("expected '42'")
SEARCH = [calls("search", {"q": f"word {n}"}, f"{n} hits") for n in range(8)]
FORTY_TWO = "After looking at all of it, the answer is 41."
TABLE = "\n".join(f"| {n} | {n * n} | {'even' if n % 2 == 0 else 'odd'} |" for n in range(200))
