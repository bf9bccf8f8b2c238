"""The in-process executor: components made once a request, executions run on the caller's loop."""

from __future__ import annotations

import asyncio
import logging

from steelyard.engine.attempt import execute
from steelyard.engine.log_context import current_execution
from steelyard.engine.services import Maker, Services
from steelyard.engine.spec import ExecutionObserver, ExecutionResult, ExecutionSpec, RequestSpec

log = logging.getLogger(__name__)

CLOSE_S = 30.0
"""How long a component may take to let go of what it holds at the end of a launch."""


class InProcessExecutor:
    """Runs executions in this process. An `Executor`."""

    def __init__(self, maker: Maker) -> None:
        self._maker = maker
        self._services: dict[int, tuple[RequestSpec, Services]] = {}

    def adopt(self, spec: RequestSpec, services: Services) -> None:
        """Take components that planning has already made for this very spec."""
        self._services[id(spec)] = (spec, self._maker.completed(spec, services))

    async def execute(self, spec: ExecutionSpec, observer: ExecutionObserver) -> ExecutionResult:
        """Run one execution to its end."""
        current_execution.set(spec)
        known = self._services.get(id(spec.request))
        if known is None:
            known = (spec.request, self._maker.services(spec.request))
            self._services[id(spec.request)] = known
        return await execute(spec, known[1], observer)

    async def release(self, spec: RequestSpec) -> None:
        """Close the components of a request, after its last execution."""
        known = self._services.pop(id(spec), None)
        if known is not None:
            await _close(known[1])

    async def close(self) -> None:
        """Close components and endpoints; what fails is logged, the rest is closed."""
        held, self._services = list(self._services.values()), {}
        for _, services in held:
            await _close(services)
        await self._maker.endpoints.close()


async def _close(services: Services) -> None:
    for component in (services.harness, services.environment, services.gateway):
        if component is None:
            continue
        try:
            async with asyncio.timeout(CLOSE_S):
                await component.close()
        except Exception:
            log.exception("closing %s failed", type(component).__name__)
