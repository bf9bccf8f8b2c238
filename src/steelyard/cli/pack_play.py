"""Let `oracle` and `nop` play a pack's cases through the engine, for `pack check`.

The same phases as in a run; only nothing is recorded.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal

from steelyard.benchmarks.pack.benchmark import PackBenchmark
from steelyard.benchmarks.pack.check import Play, Played, Player, played_from
from steelyard.components.benchmark import Task
from steelyard.components.clock import SystemClock
from steelyard.components.environment import Kept
from steelyard.components.issues import Outcome, Phase
from steelyard.components.registry import Kind
from steelyard.components.steps import Step
from steelyard.config.redaction import Redactor
from steelyard.config.secrets import SecretStore
from steelyard.engine.attempt import execute
from steelyard.engine.services import EndpointPool, Maker, Services
from steelyard.engine.spec import ComponentSpec, ExecutionSpec, RequestSpec

_PLAYERS: Final[tuple[Player, ...]] = ("oracle", "nop")


class _Unobserved:
    """An observer that keeps nothing."""

    def phase(self, token: str, phase: Phase) -> None:
        """Ignore it."""

    def session(self, token: str, state: Literal["opened", "closed"], provider: str) -> None:
        """Ignore it."""

    def step(self, token: str, step: Step) -> None:
        """Ignore it."""

    def kept(self, token: str, provider: str, kept: Kept) -> None:
        """Ignore it: no case of a check asks for it."""

    def checkpoint(self, token: str, path: str) -> None:
        """Ignore it."""


@asynccontextmanager
async def opened_players(
    benchmark: PackBenchmark, environment_id: str, store: SecretStore | None = None
) -> AsyncIterator[Play]:
    """Open the environment and give what plays a case in it.

    Args:
        benchmark: the pack.
        environment_id: where programs run.
        store: the secrets of its judge; they are hidden in what is said of a case.

    Raises:
        BadInput: the environment is unknown, or this machine lacks what it needs.
    """
    clock = SystemClock()
    if environment_id == "auto":
        from steelyard.environments.auto import resolve_auto

        environment_id = resolve_auto(benchmark.info().runs_model_code)
    store = store or SecretStore()
    redact = Redactor(store).text
    judge_faults: dict[str, str] = {}
    benchmark.judge_faults = judge_faults
    endpoints = EndpointPool(store, clock)
    maker = Maker(store, clock, endpoints, Path.cwd())
    environment = maker.component(Kind.ENVIRONMENT, ComponentSpec(environment_id))
    harnesses = {name: maker.component(Kind.HARNESS, ComponentSpec(name)) for name in _PLAYERS}
    observer = _Unobserved()

    async def play(player: Player, task: Task) -> Played:
        request = RequestSpec(
            request_name=player,
            benchmark=ComponentSpec("pack"),
            harness=ComponentSpec(player),
            environment=ComponentSpec(environment_id),
            model=None,
        )
        spec = ExecutionSpec(
            request=request,
            task=task,
            attempt=1,
            execution=1,
            token=f"check-{secrets.token_hex(8)}",
            seed=0,
        )
        services = Services(
            benchmark,
            harnesses[player],
            environment,
            None,
            clock,
            redact,
            judge_endpoint=lambda settings: endpoints.get(settings, {}),
        )
        result = await execute(spec, services, observer)
        failure = None
        if result.outcome is not Outcome.SCORED:
            failure = "; ".join(issue.message for issue in result.issues) or result.outcome.value
        played = played_from(result.metrics, result.details, failure)
        judge_fault = judge_faults.pop(task.id, None)
        return replace(
            played,
            reason=redact(played.reason) if played.reason else None,
            judge_fault=redact(judge_fault) if judge_fault else None,
        )

    try:
        yield play
    finally:
        await endpoints.close()
        await environment.close()
