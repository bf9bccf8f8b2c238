"""From a resolved orchestration to a plan: components made, checked and identified.

Everything that is wrong is reported at once, before anything is created. A dry run is this and
no more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from steelyard.components.clock import Clock
from steelyard.config.errors import BadInput, Problem
from steelyard.config.resolve import Resolution
from steelyard.config.schema.orchestration import Orchestration
from steelyard.config.validation import in_order
from steelyard.engine.budget import BudgetLimits
from steelyard.engine.capacity import Limits
from steelyard.engine.plan_checks import unknown_providers
from steelyard.engine.plan_values import admission_limits
from steelyard.engine.request_plan import RequestPlan
from steelyard.engine.request_planner import RequestPlanner
from steelyard.engine.services import EndpointPool, Maker
from steelyard.results.layout import RunPaths


@dataclass(frozen=True, slots=True)
class Plan:
    """A whole orchestration, ready to run."""

    orchestration: Orchestration
    requests: tuple[RequestPlan, ...]
    limits: Limits
    warnings: tuple[Problem, ...]
    """Worth knowing; nothing that stops a run."""
    lacking: tuple[Problem, ...]
    """What this machine lacks to run it: a dry run warns, a run refuses."""

    @property
    def timeout_s(self) -> float:
        """Wall clock of the whole; 0 for none."""
        return self.orchestration.runtime.timeout_seconds

    @property
    def cleanup_grace_s(self) -> float:
        """How long clean-up may take once all must stop."""
        return self.orchestration.runtime.cleanup_grace_seconds

    @property
    def counts_unknown_as_free(self) -> bool:
        """True where a cost that is not known is none to the budget."""
        return self.orchestration.runtime.allow_unpriced

    def placed_in(self, results_dir: Path) -> Plan:
        """Give the same plan with its runs below another folder; of `run_name`s nothing stays."""
        requests = tuple(
            replace(each, paths=RunPaths(results_dir, None, each.paths.namespace))
            for each in self.requests
        )
        return replace(self, requests=requests)

    def budget(self) -> BudgetLimits:
        """What the whole orchestration may spend."""
        budget = self.orchestration.budget
        return BudgetLimits(budget.usd, budget.tokens, budget.reserve_usd)


def make_plan(resolution: Resolution, *, clock: Clock, maker: Maker | None = None) -> Plan:
    """Plan an orchestration. Blocking; touches nothing but the files that packs consist of.

    Raises:
        BadInput: all that is wrong, at once.
    """
    orchestration = resolution.orchestration
    planned = plan_requests(resolution, clock=clock, maker=maker)
    if planned.problems:
        raise BadInput.of(in_order(planned.problems))
    limits = admission_limits(orchestration, planned.plans)
    warnings = (*resolution.warnings, *planned.warnings)
    lacking = tuple(planned.lacking)
    return Plan(orchestration, tuple(planned.plans), limits, warnings, lacking)


@dataclass(frozen=True, slots=True)
class Planned:
    """What came of planning each request, and all that is wrong."""

    plans: list[RequestPlan]
    problems: list[Problem]
    lacking: list[Problem]
    warnings: list[Problem]


def plan_requests(resolution: Resolution, *, clock: Clock, maker: Maker | None = None) -> Planned:
    """Plan as far as can be judged; of settings that are healed, only the problems count."""
    if maker is None:
        secrets = resolution.secrets
        pool = EndpointPool(secrets, clock)
        maker = Maker(secrets, clock, pool, resolution.base_dir)
    problems: list[Problem] = []
    lacking: list[Problem] = []
    warnings: list[Problem] = []
    plans = []
    for index, request in enumerate(resolution.orchestration.requests):
        planner = RequestPlanner(resolution, request, index, maker)
        plan = planner.plan()
        problems += planner.problems
        lacking += planner.lacking
        warnings += planner.warnings
        if plan is not None:
            plans.append(plan)
    problems += unknown_providers(resolution.orchestration)
    # What is shared by requests, such as the results folder, is said once.
    return Planned(plans, list(dict.fromkeys(problems)), lacking, warnings)
