"""What a submission will run and what that may cost: real tasks, real prices, earlier runs.

Where nothing is known it is said so; no figure is made up.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from steelyard.components.benchmark import Task
from steelyard.components.registry import Kind, canonical_id
from steelyard.config.secrets import SecretStore
from steelyard.engine.opening import selected
from steelyard.engine.request_plan import RequestPlan
from steelyard.evalset.earlier_runs import Experience, earlier_runs, kind_of
from steelyard.evalset.pack_refs import OpenedPack
from steelyard.evalset.set_document import SetCell
from steelyard.evalset.set_plan import SetPlan
from steelyard.evalset.spent import set_spending
from steelyard.models.allowance import HELD_BYTES_A_TOKEN, asked_tokens
from steelyard.models.prices import pricing_for
from steelyard.models.settings import parse_settings
from steelyard.models.token_counts import TokenCounts
from steelyard.results.consumption import without_noise

_ONE_CALL: Final = frozenset({"chat"})
"""Harnesses that ask the model once an attempt, the prompt as it is."""


class Basis(StrEnum):
    """What an estimate rests on."""

    NO_MODEL = "no_model"
    """No model is called: it costs nothing."""
    EARLIER_RUNS = "earlier_runs"
    """The mean of what attempts of earlier runs cost."""
    BOUNDED = "bounded"
    """The prompts' size, and the most that may be answered; retries aside."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Cost:
    """What the attempts of a cell may cost."""

    basis: Basis
    usd: float | None
    """None where it is unknown."""
    note: str
    """What it rests on, or why it is unknown."""
    runs: int = 0
    """Earlier runs that it is taken from."""
    attempts: int = 0
    """Attempts of these runs."""


@dataclass(frozen=True, slots=True)
class CellEstimate:
    """One cell of a submission."""

    cell: SetCell
    model: str
    harness: str
    environment: str
    tasks: int
    k: int
    cost: Cost

    @property
    def attempts(self) -> int:
        """At most: early stops make some needless."""
        return self.tasks * self.k

    def as_json(self) -> dict[str, Any]:
        """Give the form of `evalset-plan/1`."""
        cell = self.cell
        return {
            "index": cell.index,
            "matrix_key": cell.matrix_key,
            "pack": {"slug": cell.pack.slug, "version": cell.pack.version, "uuid": cell.pack.uuid},
            "agent": {"name": cell.agent.name, "label": cell.agent.label, "uuid": cell.agent.uuid},
            "harness": self.harness,
            "model": self.model,
            "environment": self.environment,
            "repeat": cell.cell.repeat,
            "seed": cell.cell.seed,
            "tasks": self.tasks,
            "k": self.k,
            "attempts": self.attempts,
            "cost": {
                "usd": without_noise(self.cost.usd),
                "basis": self.cost.basis.value,
                "note": self.cost.note,
                "runs": self.cost.runs,
                "attempts": self.cost.attempts,
            },
        }


@dataclass(frozen=True, slots=True)
class SetEstimate:
    """What a submission will run, and what that may cost."""

    name: str
    kind: str
    cells: tuple[CellEstimate, ...]
    budget_usd: float | None
    """What the whole set may spend."""
    spent_usd: float | None
    """What earlier submissions of the set have spent; None where a part is unknown."""

    @property
    def tasks(self) -> int:
        """Over all cells."""
        return sum(cell.tasks for cell in self.cells)

    @property
    def attempts(self) -> int:
        """Over all cells, at most."""
        return sum(cell.attempts for cell in self.cells)

    @property
    def known_usd(self) -> float:
        """Of the cells whose cost is estimated."""
        return math.fsum(cell.cost.usd or 0.0 for cell in self.cells)

    @property
    def unknown(self) -> tuple[CellEstimate, ...]:
        """The cells whose cost is not."""
        return tuple(cell for cell in self.cells if cell.cost.usd is None)

    @property
    def cost_usd(self) -> float | None:
        """Of all cells; None where that of one is unknown."""
        return None if self.unknown else self.known_usd

    @property
    def is_over_budget(self) -> bool:
        """True where what is known alone comes to more than the budget."""
        if self.budget_usd is None:
            return False
        return self.known_usd + (self.spent_usd or 0.0) > self.budget_usd

    def as_json(self) -> dict[str, Any]:
        """Give the document `evalset-plan/1`."""
        return {
            "schema": "evalset-plan/1",
            "name": self.name,
            "kind": self.kind,
            "cells": [cell.as_json() for cell in self.cells],
            "cell_count": len(self.cells),
            "tasks": self.tasks,
            "attempts": self.attempts,
            "cost_usd": without_noise(self.cost_usd),
            "known_cost_usd": without_noise(self.known_usd),
            "cells_of_unknown_cost": len(self.unknown),
            "budget_usd": self.budget_usd,
            "spent_usd": without_noise(self.spent_usd),
            "over_budget": self.is_over_budget,
        }


def estimate_set(plan: SetPlan) -> SetEstimate:
    """Estimate a submission. Blocking; reads the figures of earlier runs, makes nothing.

    Raises:
        BadInput: the filters of a cell leave no task.
    """
    whole, secrets = plan.prepared.plan.orchestration, plan.prepared.maker.secrets
    known: Mapping[bytes, Experience] | None = None
    cells: list[CellEstimate] = []
    costs: dict[tuple[bytes, str, int], Cost] = {}
    for cell, request in zip(plan.cells, plan.prepared.plan.requests, strict=True):
        pack = plan.references.opened[cell.cell.pack_ref]
        tasks = selected(pack.tasks, request.request.execution)
        kind = kind_of(pack.pinned.slug, request.request)
        key = (kind, pack.pinned.path, len(tasks) * request.k)
        if key not in costs:
            if known is None and request.spends:
                known = earlier_runs(Path(whole.runtime.results_dir))
            costs[key] = cost_of(request, pack, tasks, (known or {}).get(kind), secrets)
        cells.append(
            CellEstimate(
                cell,
                request.request.model.id,
                request.request.harness.id,
                request.spec.environment.id,
                len(tasks),
                request.k,
                costs[key],
            )
        )
    spent = None if plan.opened is None else set_spending(plan.opened)
    return SetEstimate(
        name=plan.document.name,
        kind=plan.kind,
        cells=tuple(cells),
        budget_usd=plan.budget_usd,
        spent_usd=0.0 if spent is None else spent.cost_usd,
    )


def cost_of(
    request: RequestPlan,
    pack: OpenedPack,
    tasks: Sequence[Task],
    experience: Experience | None,
    secrets: SecretStore,
) -> Cost:
    """Estimate what the attempts of a request cost.

    Args:
        request: the request.
        pack: its pack.
        tasks: what of the pack is run.
        experience: what earlier runs of its kind cost; None where there are none.
        secrets: where the secrets of its model are.
    """
    attempts = len(tasks) * request.k
    if not request.spends:
        return Cost(Basis.NO_MODEL, 0.0, "no model is called")
    if experience is not None and (mean := experience.usd_per_attempt) is not None:
        seen = f"${mean:.3g} an attempt, the mean of {experience.attempts} in {experience.runs} "
        note = seen + f"earlier run{'s' * (experience.runs != 1)}"
        return Cost(Basis.EARLIER_RUNS, mean * attempts, note, experience.runs, experience.attempts)
    return _bounded(request, pack, tasks, experience, secrets)


def _bounded(
    request: RequestPlan,
    pack: OpenedPack,
    tasks: Sequence[Task],
    experience: Experience | None,
    secrets: SecretStore,
) -> Cost:
    """Bound the cost by what is sent and may be answered, where both are known."""
    lacks = "no earlier run to go by"
    if experience is not None:
        runs = f"{experience.runs} earlier run{'s' * (experience.runs != 1)}"
        lacks = f"what {experience.attempts} attempts of {runs} cost is not known"

    def unknown(reason: str) -> Cost:
        return Cost(Basis.UNKNOWN, None, f"{lacks}, and {reason}")

    model, harness = request.spec.model, request.request.harness.id
    if request.asks_judges:
        return unknown("how much judges say is not bounded")
    if model is None or canonical_id(Kind.HARNESS, harness) not in _ONE_CALL:
        return unknown(f"{harness} decides itself how often it asks")
    settings = parse_settings(model, secrets)
    pricing = pricing_for(
        settings.model_id,
        settings.address.parts.geturl(),
        is_local=settings.address.is_local,
        prices=request.spec.prices,
    )
    said = asked_tokens(settings.params)
    benchmark, usd, longest = pack.benchmark, 0.0, 0
    for task in tasks:
        shown = benchmark.task_input(task, attempt=1, seed=0)
        sent = sum(len(message.content.encode()) for message in shown.messages)
        bounds = [bound for bound in (said, shown.limits.output_tokens) if bound]
        answer = min(bounds, default=0)
        counts = TokenCounts(math.ceil(sent / HELD_BYTES_A_TOKEN), answer)
        cost = pricing.cost_usd(counts)
        if cost is None:
            return unknown(f"the price of {settings.model_id} is not known")
        if not bounds:
            return unknown("nothing bounds an answer: neither limits.output_tokens of the pack "
                           "nor model.params.max_tokens")  # fmt: skip
        usd, longest = usd + cost, max(longest, answer)
    by = "model.params" if longest == said else "the pack's limits.output_tokens"
    note = f"{lacks}: the prompts' size, and {longest:,} tokens of answer ({by})"
    return Cost(Basis.BOUNDED, usd * request.k, note)
