"""Kept sessions of whoever runs them: root, an ordinary user; entered by another process."""

from __future__ import annotations

import asyncio
import json
import secrets
import threading
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from steelyard.components.environment import EnvironmentFault, OpenRequest, Resources
from steelyard.components.session_folders import find_folders, kept_folder, new_folder
from steelyard.environments import cgroups, leftovers
from steelyard.environments.sandbox import Sandbox, SandboxParams
from steelyard.environments.sandbox_session import SandboxSession
from tests.environments.people import ordinary_user, run_python

pytestmark = pytest.mark.integration

KEEP = """
import asyncio, json, sys
from steelyard.components.environment import OpenRequest, Resources
from steelyard.components.registry import Kind, find
async def main():
    component = find(Kind.ENVIRONMENT, sys.argv[1]).component
    environment = component(component.Params())
    request = OpenRequest(sys.argv[2], Resources(memory_mb=192), network="none")
    session = await environment.open(request)
    await session.exec(["sh", "-c", "umask 077; mkdir d; echo by-the-agent > d/note; chmod 0 d"])
    kept = await session.keep()
    await environment.close()
    print(json.dumps(dict(kept.state)))
asyncio.run(main())
"""
ENTER = """
import asyncio, json, sys
from steelyard.components.registry import Kind, find
async def main():
    component = find(Kind.ENVIRONMENT, sys.argv[1]).component
    environment = component(component.Params())
    try:
        return await environment.enter(sys.argv[2], json.loads(sys.argv[3]), sys.argv[4:])
    finally:
        await environment.close()
sys.exit(asyncio.run(main()))
"""
END = """
import asyncio, sys
from steelyard.components.registry import Kind, find
async def main():
    component = find(Kind.ENVIRONMENT, sys.argv[1]).component
    environment = component(component.Params())
    await environment.end_leftovers(await environment.find_leftovers([sys.argv[2]]))
    print(len(await environment.find_leftovers([sys.argv[2]])))
asyncio.run(main())
"""


@pytest.mark.parametrize("provider", ["sandbox", "host_process"])
@pytest.mark.parametrize("person", ["whoever runs the tests", "an ordinary user"])
def test_what_one_process_keeps_another_enters_and_a_third_ends(person: str, provider: str) -> None:
    token = f"kept{secrets.token_hex(6)}-0-0-1-1-a"
    someone = ordinary_user() if person == "an ordinary user" else nullcontext(([], None))
    with someone as (prefix, env):
        kept = run_python(["-c", KEEP, provider, token], prefix=prefix, env=env)
        assert kept.returncode == 0, kept.stderr
        inside = ["-c", ENTER, provider, token, kept.stdout]
        script = "chmod 700 d; cat d/note; sleep 600 & exit 9"
        seen = run_python([*inside, "sh", "-c", script], prefix=prefix, env=env)
        assert (seen.returncode, seen.stdout) == (9, "by-the-agent\n"), seen.stderr
        if provider == "sandbox":
            walls = run_python([*inside, "sh", "-c", "tail -n +3 /proc/net/dev | cut -d: -f1"],
                               prefix=prefix, env=env)  # fmt: skip
            assert walls.stdout.split() == ["lo"], walls
        ended = run_python(["-c", END, provider, token], prefix=prefix, env=env)
        assert ended.stdout == "0\n", ended
        gone = run_python([*inside, "true"], prefix=prefix, env=env)
        assert "nothing of" in gone.stderr


async def _kept(token: str, resources: Resources) -> tuple[Sandbox, dict[str, Any]]:
    environment = Sandbox(SandboxParams())
    session = await environment.open(OpenRequest(token, resources))
    await session.exec(["sh", "-c", "echo x > note"])
    kept = await session.keep()
    assert kept is not None
    return environment, dict(kept.state)


def test_the_limits_of_a_kept_sandbox_hold_for_who_enters_it() -> None:
    token = f"kept{secrets.token_hex(6)}"

    async def main() -> tuple[int, int]:
        environment, state = await _kept(token, Resources(memory_mb=128, disk_mb=16))
        assert state["limits"]["memory_mb"] == 128
        bomb = "x = []\nwhile True: x.append(bytearray(b'x') * (8 << 20))"
        fill = "i=0; while :; do i=$((i+1)); head -c 4000000 /dev/zero > f$i; sleep 0.02; done"
        async with asyncio.timeout(60):
            return (
                await environment.enter(token, state, ["python3", "-c", bomb]),
                await environment.enter(token, state, ["sh", "-c", fill]),
            )

    try:
        memory, disk = asyncio.run(main())
        assert memory not in (0, None)
        assert disk != 0
        assert cgroups.find([token]) == []
    finally:
        leftovers.end([token])


def test_a_state_that_says_no_limits_opens_nothing() -> None:
    token = f"kept{secrets.token_hex(6)}"

    async def main() -> None:
        environment, state = await _kept(token, Resources())
        for broken in ({}, {"folder": state["folder"]}, {**state, "limits": {"cpu": 1}}):
            with pytest.raises(EnvironmentFault, match="does not say how"):
                await environment.enter(token, broken, ["true"])

    try:
        asyncio.run(main())
    finally:
        leftovers.end([token])


def test_only_a_folder_of_the_token_itself_is_entered(tmp_path: Path) -> None:
    token = f"kept{secrets.token_hex(6)}"
    folder = new_folder(token, base=Path("/tmp"))
    folder.mkdir()
    try:
        assert kept_folder(token, folder.name) == folder
        for name in ("", ".", "..", "../etc", "etc", str(folder), f"{folder.name}/work"):
            assert kept_folder(token, name) is None
        assert kept_folder(token + "x", folder.name) is None
    finally:
        leftovers.end([token])


def test_a_close_that_comes_while_it_is_being_kept_still_removes_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A keep that was cancelled goes on in its thread: the close must not take it for its own."""
    token = f"kept{secrets.token_hex(6)}"
    began, goes_on = threading.Event(), threading.Event()
    release = SandboxSession._release

    def slow(session: SandboxSession) -> None:
        began.set()
        goes_on.wait(20)
        release(session)

    async def main() -> None:
        session = await Sandbox(SandboxParams()).open(OpenRequest(token))
        await session.exec(["true"])
        monkeypatch.setattr(SandboxSession, "_release", slow)
        keeping = asyncio.ensure_future(session.keep())
        await asyncio.to_thread(began.wait, 20)
        keeping.cancel()
        goes_on.set()
        await asyncio.gather(keeping, return_exceptions=True)
        await session.close()

    asyncio.run(main())
    assert find_folders([token]) == []


def test_what_is_kept_is_json(tmp_path: Path) -> None:
    token = f"kept{secrets.token_hex(6)}"
    try:
        _, state = asyncio.run(_kept(token, Resources()))
        assert json.loads(json.dumps(state)) == state
    finally:
        leftovers.end([token])
