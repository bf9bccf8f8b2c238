"""Score one answer with the validators of a pack of one case."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from steelyard.components.issues import AttemptFault
from tests.benchmarks.scoring import Context, opened, score, write_pack

CASE = {"id": "a", "q": "?"}


def scored(
    root: Path,
    validators: str,
    answer: str | None,
    *,
    case: Mapping[str, Any] | None = None,
    artifacts: Mapping[str, Path] | None = None,
    provider: str = "host_process",
) -> tuple[float, str]:
    """Give the score, and the reasons in one text."""
    folder = write_pack(root / "pack", validators, [{**CASE, **(case or {})}])
    benchmark = opened(folder)
    (task,) = benchmark.load_tasks()
    found = score(benchmark, task, Context(answer, provider, artifacts))
    for name, value in found.metrics.items():
        (spec,) = (spec for spec in benchmark.info().metrics if spec.name == name)
        assert isinstance(value, bool) == (spec.kind == "binary"), name
    reasons = found.details.get("reasons", {})
    return float(found.metrics["score"]), "; ".join(reasons.values())


def fault_of(root: Path, validators: str, answer: str | None, **rest: Any) -> AttemptFault:
    """Give the fault of a validator that could not run."""
    with pytest.raises(AttemptFault) as caught:
        scored(root, validators, answer, **rest)
    return caught.value
