"""Programs of a session reach the model gateway, and nothing else."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from secrets import token_hex
from typing import Literal

import pytest

from steelyard.components.environment import (
    EnvironmentFault,
    ExecResult,
    NoParams,
    OpenRequest,
    Session,
)
from steelyard.environments.host_process import HostProcess
from steelyard.environments.sandbox import Sandbox, SandboxParams
from tests.environments.gates import REACH, BrokenGate, FakeGate
from tests.environments.people import ordinary_user, run_python

pytestmark = pytest.mark.integration

TRY = """
import json, socket, sys
found = {}
for host, port in json.loads(sys.argv[1]):
    try:
        socket.create_connection((host, port), 5).close()
        found[f"{host}:{port}"] = "open"
    except OSError as error:
        found[f"{host}:{port}"] = "closed"
print(json.dumps(found))
"""

AS_ORDINARY_USER = """
import asyncio, json
from steelyard.components.environment import OpenRequest
from steelyard.environments.sandbox import Sandbox, SandboxParams
from tests.environments.gates import REACH, FakeGate
async def main():
    gate = FakeGate()
    provider = Sandbox(SandboxParams())
    session = await provider.open(OpenRequest("gate-user", gate=gate))
    run = ["python3", "-c", REACH, session.model_url]
    both = await asyncio.gather(session.exec(run), session.exec(run))
    print(json.dumps([[r.exit_code, r.stdout_text.strip(), r.stderr_text] for r in both]))
    print(gate.serving, gate.connections)
    await session.close()
    await provider.close()
asyncio.run(main())
"""


def in_session(
    use: Callable[[Session, FakeGate], Awaitable[None]],
    *,
    provider: str = "sandbox",
    gate: FakeGate | None = None,
    network: Literal["none", "open"] | None = None,
) -> None:
    async def main() -> None:
        served = gate or FakeGate()
        environment = (
            Sandbox(SandboxParams(network=network))
            if provider == "sandbox"
            else HostProcess(NoParams())
        )
        session = await environment.open(OpenRequest(f"gate{token_hex(6)}", gate=served))
        try:
            await use(session, served)
        finally:
            await session.close()
            await environment.close()
            served.close()

    asyncio.run(main())


async def reach(session: Session) -> ExecResult:
    assert session.model_url is not None
    return await session.exec(["python3", "-c", REACH, session.model_url], timeout_s=60)


@pytest.mark.parametrize(
    ("provider", "network"), [("sandbox", None), ("sandbox", "open"), ("host_process", None)]
)
def test_a_program_reaches_the_gateway(
    provider: str, network: Literal["none", "open"] | None
) -> None:
    async def use(session: Session, gate: FakeGate) -> None:
        done = await reach(session)
        assert done.stdout_text.strip() == "reached", done
        assert gate.connections == 1

    in_session(use, provider=provider, network=network)


def test_two_programs_at_once_each_have_a_way_in_that_ends_with_them() -> None:
    async def use(session: Session, gate: FakeGate) -> None:
        done = await asyncio.gather(*(reach(session) for _ in range(4)))
        assert [result.stdout_text.strip() for result in done] == ["reached"] * 4, done
        assert gate.serving == 0
        assert all(listener.fileno() == -1 for listener in gate.listeners)

    in_session(use)


def test_nothing_else_is_reachable_from_the_sandbox() -> None:
    async def use(session: Session, gate: FakeGate) -> None:
        with socket.create_server(("127.0.0.1", 0)) as other:
            ours = other.getsockname()[1]
            places = [["127.0.0.1", ours], ["192.0.2.1", 80], ["127.0.0.1", 8377]]
            done = await session.exec(["python3", "-c", TRY, json.dumps(places)], timeout_s=60)
        assert json.loads(done.stdout) == {
            f"127.0.0.1:{ours}": "closed",
            "192.0.2.1:80": "closed",
            "127.0.0.1:8377": "open",
        }

    in_session(use)


def test_without_a_gateway_the_session_has_no_way_to_one() -> None:
    async def main() -> None:
        provider = Sandbox(SandboxParams())
        session = await provider.open(OpenRequest(f"gate{token_hex(6)}"))
        assert session.model_url is None
        done = await session.exec(["python3", "-c", TRY, '[["127.0.0.1", 8377]]'])
        assert json.loads(done.stdout) == {"127.0.0.1:8377": "closed"}
        await session.close()
        await provider.close()

    asyncio.run(main())


def test_a_program_that_is_cut_off_leaves_no_listener() -> None:
    async def use(session: Session, gate: FakeGate) -> None:
        late = await session.exec(["sleep", "60"], timeout_s=0.1)
        assert late.timed_out
        assert gate.serving == 0
        run = asyncio.ensure_future(session.exec(["sleep", "60"]))
        while not gate.serving:
            await asyncio.sleep(0.01)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert gate.serving == 0
        assert all(listener.fileno() == -1 for listener in gate.listeners)

    in_session(use)


def test_a_gateway_that_does_not_serve_is_the_environments_fault() -> None:
    async def use(session: Session, gate: FakeGate) -> None:
        with pytest.raises(EnvironmentFault, match="gateway cannot be brought into the sandbox"):
            await session.exec(["true"])

    in_session(use, gate=BrokenGate())
    with pytest.raises(EnvironmentFault, match="the gateway is closed"):
        in_session(use, gate=BrokenGate(), provider="host_process")


def test_an_ordinary_user_has_the_same_way_in() -> None:
    here = str(Path(__file__).parents[2])
    program = f"import sys; sys.path.insert(0, {here!r})\n{AS_ORDINARY_USER}"
    with ordinary_user() as (prefix, variables):
        done = run_python(["-c", program], prefix=prefix, env=variables)
    assert done.returncode == 0, done
    said = done.stdout.splitlines()
    assert json.loads(said[0]) == [[0, "reached", ""]] * 2
    assert said[1] == "0 2"
