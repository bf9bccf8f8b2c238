"""A program that somebody ends by intent gives back what it had printed, in every environment."""

from __future__ import annotations

import asyncio
import secrets

import pytest

from steelyard.components.environment import Environment, ExecResult, OpenRequest
from steelyard.components.registry import Kind, find

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("provider", ["host_process", "sandbox"])
def test_a_program_that_is_ended_on_request_gives_what_it_had_printed(provider: str) -> None:
    async def main() -> ExecResult:
        kind = find(Kind.ENVIRONMENT, provider).component
        environment = kind(kind.Params())
        assert isinstance(environment, Environment)
        session = await environment.open(OpenRequest(f"ended-{secrets.token_hex(8)}"))
        try:
            script = "echo said; touch begun; sleep 60"
            async with asyncio.timeout(60), asyncio.TaskGroup() as group:
                running = group.create_task(session.exec(["sh", "-c", script], timeout_s=60))
                while (await session.exec(["test", "-e", "begun"])).exit_code:
                    await asyncio.sleep(0.02)
                await session.end_programs()
            return running.result()
        finally:
            await session.close()

    ended = asyncio.run(main())
    assert (ended.exit_code, ended.stdout, ended.timed_out) == (-9, b"said\n", False)
