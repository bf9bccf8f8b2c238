"""From settings to the values that a plan consists of: limits, time, prices. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

from steelyard.components.artifacts import ArtifactSpec, is_pattern
from steelyard.components.registry import BUILTINS, Kind
from steelyard.config.schema.orchestration import Orchestration
from steelyard.config.schema.request import PhaseMultipliers, Request
from steelyard.engine.capacity import Limits
from steelyard.engine.request_plan import RequestPlan
from steelyard.engine.spec import TimeLimits

Number = TypeVar("Number", int, float)

BUILTIN_PROVIDER_LIMIT: Final = 128
REMOTE_OPEN_QPS: Final = 10.0


def time_limits(request: Request) -> TimeLimits:
    """Give the seconds that a request grants each phase, with its multipliers."""
    execution = request.execution
    factors = execution.timeout_multiplier
    if not isinstance(factors, PhaseMultipliers):
        factors = PhaseMultipliers(setup=factors, run=factors, collect=factors, evaluate=factors)
    return TimeLimits(
        setup_s=execution.setup_timeout_seconds,
        run_s=execution.run_timeout_seconds,
        evaluate_s=execution.evaluation_timeout_seconds,
        setup_factor=factors.setup,
        run_factor=factors.run,
        evaluate_factor=factors.evaluate,
        collect_s=execution.collection_timeout_seconds,
        collect_factor=factors.collect,
    )


def price_values(orchestration: Orchestration) -> dict[str, dict[str, float | None]]:
    """Give the user's own prices as plain values, by model id."""
    return {model: price.model_dump() for model, price in orchestration.prices.items()}


def saved_artifacts(request: Request) -> tuple[ArtifactSpec, ...]:
    """Give what the user wants to keep; texts together make one specification."""
    written = request.execution.save_artifacts
    texts = [one for one in written if isinstance(one, str)]
    found = []
    if texts:
        found.append(
            ArtifactSpec(
                paths=tuple(text for text in texts if not is_pattern(text)),
                globs=tuple(text for text in texts if is_pattern(text)),
            )
        )
    whole = [one for one in written if not isinstance(one, str)]
    return (*found, *(ArtifactSpec.from_json(one.model_dump()) for one in whole))


def attempt_usd(orchestration: Orchestration, request: Request) -> float | None:
    """Give the dollars that one attempt may spend: the lower of both bounds."""
    return _lower(orchestration.budget.attempt_usd, request.budget.attempt_usd)


def attempt_tokens(orchestration: Orchestration, request: Request) -> int | None:
    """Give the tokens that one attempt may spend: the lower of both bounds."""
    return _lower(orchestration.budget.attempt_tokens, request.budget.attempt_tokens)


def with_attempt_bounds(orchestration: Orchestration, request: Request) -> Request:
    """Give a request that holds what bounds its attempts, the orchestration's bounds included.

    Its document says them: whoever reuses the run must see that they have changed.
    """
    usd, tokens = attempt_usd(orchestration, request), attempt_tokens(orchestration, request)
    budget = request.budget
    if (usd, tokens) == (budget.attempt_usd, budget.attempt_tokens):
        return request
    bounds = {"attempt_usd": usd, "attempt_tokens": tokens}
    return request.model_copy(update={"budget": budget.model_copy(update=bounds)})


def _lower(one: Number | None, other: Number | None) -> Number | None:
    return min((bound for bound in (one, other) if bound is not None), default=None)


def admission_limits(orchestration: Orchestration, plans: Sequence[RequestPlan]) -> Limits:
    """Lay what the user set over the defaults: 128 at once for each built-in, remote ones paced."""
    runtime = orchestration.runtime
    limits = dict.fromkeys(BUILTINS[Kind.ENVIRONMENT], BUILTIN_PROVIDER_LIMIT)
    paces = {
        plan.spec.environment.id: REMOTE_OPEN_QPS for plan in plans if not plan.provider_is_local
    }
    return Limits(
        orchestration.task_concurrency,
        limits | runtime.provider_limits,
        paces | runtime.env_open_qps,
    )
