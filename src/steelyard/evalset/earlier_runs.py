"""What earlier runs of the same pack by the same agent cost, from the figures they left."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import orjson

from steelyard.components.registry import Kind, canonical_id
from steelyard.config.errors import SteelyardError
from steelyard.config.schema.request import Request
from steelyard.config.secrets import MARKER, sealed_json
from steelyard.results.consumption import NO_SPENDING, Spending, spending
from steelyard.results.documents import read_run_document
from steelyard.results.layout import RunFiles
from steelyard.results.newest import runs_below
from steelyard.results.plain_files import MAX_DOCUMENT_BYTES, read_plain

_DEPTH: Final = 6
"""`<results_dir>/[<run_name>/]<set>/<set_id>/cells/<cell>/<run_id>`."""
_MOST_RUNS: Final = 20_000
"""That are looked at: beyond it more of them change a mean hardly, and take their time."""
_OF_MODELS: Final = ("id", "api_protocol", "params", "base_url")
_NOT_EXECUTED: Final = ("not_started", "skipped_budget", "skipped_passed")


@dataclass(frozen=True, slots=True)
class Experience:
    """What runs of one kind have cost."""

    runs: int = 0
    attempts: int = 0
    """That they executed themselves; what they took over was paid before."""
    spent: Spending = NO_SPENDING

    @property
    def usd_per_attempt(self) -> float | None:
        """The mean, retries and judges included; None where a price was not known."""
        cost = self.spent.cost_usd
        return cost / self.attempts if cost is not None and self.attempts else None

    def __add__(self, other: Experience) -> Experience:
        return Experience(
            self.runs + other.runs, self.attempts + other.attempts, self.spent + other.spent
        )


NO_EXPERIENCE: Final = Experience()


def kind_of(slug: str, request: Request) -> bytes:
    """Tell runs whose attempts should cost alike from others.

    Pack, harness and model with their parameters and the model's address count; repeats, limits,
    places and what secrets are called do not.
    """
    model, harness = request.model, request.harness
    return _kind(
        slug,
        {"id": harness.id, **sealed_json(harness.params)},
        {
            "id": model.id,
            "api_protocol": model.api_protocol,
            "params": sealed_json(model.params),
            "base_url": sealed_json({"": model.base_url})[""],
        },
    )


def earlier_runs(results_dir: Path) -> Mapping[bytes, Experience]:
    """Read what the runs below a folder have cost, by their kind.

    Runs without figures, or that cannot be read, are passed over.
    """
    found: dict[bytes, Experience] = {}
    for number, root in enumerate(runs_below(results_dir, _DEPTH)):
        if number >= _MOST_RUNS:
            break
        if (one := _experience(root)) is not None:
            kind, experience = one
            found[kind] = found.get(kind, NO_EXPERIENCE) + experience
    return found


def _experience(root: Path) -> tuple[bytes, Experience] | None:
    try:
        metrics = orjson.loads(read_plain(RunFiles(root).metrics, MAX_DOCUMENT_BYTES))
        document = read_run_document(root)
        request = document["request"]
        model = request["model"]
        kind = _kind(
            document["benchmark_info"]["id"],
            request["harness"],
            {name: model.get(name) for name in _OF_MODELS},
        )
        outcomes = metrics["attempts"]["outcomes"]
        executed = sum(n for name, n in outcomes.items() if name not in _NOT_EXECUTED)
        executed -= metrics["reused"]["attempts"]
        if executed <= 0:
            return None
        return kind, Experience(1, executed, spending([metrics]))
    except (OSError, ValueError, LookupError, TypeError, AttributeError, SteelyardError):
        return None  # a run that is not as we write it teaches nothing


def _kind(slug: str, harness: Mapping[str, Any], model: Mapping[str, Any]) -> bytes:
    named = {**harness, "id": canonical_id(Kind.HARNESS, str(harness.get("id")))}
    # Not orjson: parameters may hold numbers beyond 64 bits.
    return json.dumps(_unnamed([slug, named, model]), sort_keys=True).encode()


def _unnamed(tree: Any) -> Any:
    """Copy a tree, its secrets without their names: these hold the request's number."""
    if isinstance(tree, Mapping):
        if MARKER in tree:
            return MARKER
        return {name: _unnamed(below) for name, below in tree.items()}
    return [_unnamed(below) for below in tree] if isinstance(tree, list | tuple) else tree
