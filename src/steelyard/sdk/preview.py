"""What would run, as a dry run shows it: resolved, typed, secrets hidden. Nothing is created."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from steelyard.config.errors import Problem


@dataclass(frozen=True, slots=True)
class ResolvedRequest:
    """One request, resolved."""

    name: str
    benchmark: str
    """Its id, as are the next two."""
    harness: str
    environment: str
    """What `auto` came to."""
    model: str
    endpoint_host: str | None
    """Host and port that the model is reached at; None where none is set."""
    k: int
    strategy: str
    early_stop: bool
    settings: Mapping[str, Any]
    """All of it, secrets as `${NAME}` or hidden."""


@dataclass(frozen=True, slots=True)
class ResolvedLaunch:
    """An orchestration, resolved and planned: what `launch` would run."""

    name: str
    task_concurrency: int
    results_dir: str
    """Absolute."""
    requests: tuple[ResolvedRequest, ...]
    warnings: tuple[Problem, ...]
    """Worth knowing. What this machine lacks is among them: a launch would refuse."""
    settings: Mapping[str, Any]
    """All of it, secrets as `${NAME}` or hidden."""

    def __str__(self) -> str:
        count = len(self.requests)
        return "\n".join(
            [f"{self.name}: {count} request{'s' * (count != 1)}, nothing is run"]
            + [
                f"  {each.name}: {each.benchmark} × {each.harness} × {each.model} in "
                f"{each.environment}, k {each.k}"
                for each in self.requests
            ]
            + [f"  warning: {warning}" for warning in self.warnings]
        )
