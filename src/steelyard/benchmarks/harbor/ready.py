"""Wait until an environment says that it is ready."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from steelyard.benchmarks.harbor.schema import HealthcheckTable
from steelyard.components.environment import Session
from steelyard.components.issues import AttemptFault, IssueCode

Sleep = Callable[[float], Awaitable[None]]


async def wait_until_healthy(
    session: Session, check: HealthcheckTable, *, sleep: Sleep = asyncio.sleep
) -> None:
    """Run a health check until it passes.

    Failures count once `start_period_sec` has passed; `retries` of them in a row are too many.

    Raises:
        AttemptFault: ENVIRONMENT_OPEN_FAILED: it does not become healthy.
    """
    loop = asyncio.get_running_loop()
    began, failures = loop.time(), 0
    while True:
        done = await session.exec(["/bin/sh", "-c", check.command], timeout_s=check.timeout_sec)
        if done.exit_code == 0 and not done.timed_out:
            return
        is_starting = loop.time() - began < check.start_period_sec
        if not is_starting:
            failures += 1
        if failures >= check.retries:
            said = (done.stderr_text.strip() or done.stdout_text.strip())[-300:]
            ended = "took too long" if done.timed_out else f"ended with {done.exit_code}"
            raise AttemptFault(
                IssueCode.ENVIRONMENT_OPEN_FAILED,
                f"the task's health check `{check.command[:200]}` {ended}"
                f"{f': {said}' if said else ''}",
            )
        await sleep(check.start_interval_sec if is_starting else check.interval_sec)
