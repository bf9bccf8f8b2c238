"""Run one attempt of an agent program on a benchmark, through the executor, for real."""

from __future__ import annotations

import asyncio
import secrets
from pathlib import Path
from typing import Any

from steelyard.components.clock import SystemClock
from steelyard.components.registry import Kind
from steelyard.config.schema.request import ModelSettings
from steelyard.config.secrets import SecretStore
from steelyard.engine.executor import InProcessExecutor
from steelyard.engine.services import EndpointPool, Maker
from steelyard.engine.spec import ComponentSpec, ExecutionResult, ExecutionSpec, RequestSpec
from steelyard.harnesses.cli_agent import cache
from steelyard.harnesses.cli_agent.table import AGENTS
from tests.containers.images import cache_folder
from tests.engine.fakes import Watch

HERE = Path(__file__).parent
PACK = HERE / "pack"
PROTOCOLS = {
    "claude_code": "anthropic",
    "codex": "openai-responses",
    "mini_swe_agent": "openai-chat",
}
DATA_DIR = cache_folder()
"""Real agents are installed here once a machine, shared by workers through the install's lock."""


def install(agent_id: str) -> Path:
    """Install a real agent at its default version, or wait for the worker that does."""
    agent = AGENTS[agent_id]
    return cache.install(cache.Wanted(agent, agent.version, DATA_DIR), timeout_s=900)


def model(url: str, protocol: str = "openai-chat", **more: Any) -> dict[str, Any]:
    settings = ModelSettings(id="m", base_url=url, api_protocol=protocol)
    return settings.model_dump(mode="json") | more


def run_agent(
    harness: str,
    params: dict[str, Any] | None = None,
    *,
    environment: ComponentSpec | None = None,
    endpoint: dict[str, Any],
    benchmark: ComponentSpec | None = None,
    data_dir: Path = DATA_DIR,
    attempts: int = 1,
    watch: Watch | None = None,
    secrets_known: dict[str, str] | None = None,
    bounds: dict[str, Any] | None = None,
) -> list[ExecutionResult]:
    """Run attempts of the first task at once, and give their results.

    Args:
        harness: an id, or `file.py:Class`.
        params: of the harness.
        environment: `sandbox` by default.
        endpoint: `ModelSettings` as JSON.
        benchmark: the greeting job by default.
        data_dir: where agents are installed.
        attempts: how many.
        watch: is told of steps.
        secrets_known: variables for `$secret` values.
        bounds: more fields of the request.
    """
    request = RequestSpec(
        "r",
        benchmark or ComponentSpec(str(PACK)),
        ComponentSpec(harness, params or {}),
        environment or ComponentSpec("sandbox"),
        endpoint,
        data_dir=str(data_dir),
        **(bounds or {}),
    )

    async def main() -> list[ExecutionResult]:
        clock, store = SystemClock(), SecretStore(secrets_known or {})
        maker = Maker(store, clock, EndpointPool(store, clock), Path.cwd())
        task = maker.component(Kind.BENCHMARK, request.benchmark).load_tasks()[0]
        executor = InProcessExecutor(maker)
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(
                        executor.execute(
                            ExecutionSpec(request, task, n + 1, 1, f"a{secrets.token_hex(8)}", 1),
                            watch or Watch(),
                        )
                    )
                    for n in range(attempts)
                ]
            return [one.result() for one in tasks]
        finally:
            await executor.close()

    return asyncio.run(main())
