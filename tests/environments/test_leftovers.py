"""What a dead run leaves on the machine: nothing in a sandbox lives on, the rest is found."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from steelyard.components.environment import Environment, Leftover, NoParams
from steelyard.components.session_folders import find_folders, label_of, new_folder
from steelyard.environments import cgroups, leftovers
from steelyard.environments.host_process import HostProcess
from steelyard.environments.process_trees import find_marked
from steelyard.environments.sandbox import Sandbox, SandboxParams

PARENT = """
import asyncio, sys
from steelyard.components.environment import OpenRequest
from steelyard.components.registry import Kind, find
async def main():
    component = find(Kind.ENVIRONMENT, sys.argv[1]).component
    session = await component(component.Params()).open(OpenRequest(sys.argv[2]))
    await session.write_file("script", b"setsid sleep 600 & sleep 600 & echo > started; sleep 600")
    running = asyncio.ensure_future(session.exec(["sh", "script"]))
    while True:
        await asyncio.sleep(0.02)
        try: await session.read_file("started")
        except FileNotFoundError: continue
        print("running", flush=True)
        await running
asyncio.run(main())
"""


def _killed_parent(provider: str, token: str) -> None:
    """Run a program in a session of another process; SIGKILL that process."""
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, provider, token], stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"running\n"
        parent.send_signal(signal.SIGKILL)


def _found(environment: Environment, token: str) -> list[Leftover]:
    return list(asyncio.run(environment.find_leftovers([token, "another"])))


@pytest.mark.integration
def test_nothing_in_a_sandbox_outlives_a_killed_parent() -> None:
    token = f"dead{secrets.token_hex(4)}"
    _killed_parent("sandbox", token)
    deadline = time.monotonic() + 20
    while find_marked([token]) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert find_marked([token]) == []
    environment = Sandbox(SandboxParams())
    found = _found(environment, token)
    kinds = {item.description.split()[0] for item in found}
    assert kinds <= {"folder", "cgroup"}
    assert "folder" in kinds
    assert {item.token for item in found} == {token}
    asyncio.run(environment.end_leftovers(found))
    assert _found(environment, token) == []
    assert find_folders([token]) == []
    assert cgroups.find([token]) == []


@pytest.mark.integration
def test_processes_on_the_host_that_outlive_their_parent_are_found_and_ended() -> None:
    token = f"dead{secrets.token_hex(4)}"
    _killed_parent("host_process", token)
    environment = HostProcess(NoParams())
    deadline = time.monotonic() + 20  # a loaded machine lets a shell wait before its command runs
    while True:
        found = _found(environment, token)
        described = [item.description for item in found]
        if sum("sleep 600" in text for text in described) == 3 or time.monotonic() > deadline:
            break
        time.sleep(0.01)
    assert sum("sleep 600" in text for text in described) == 3, described
    assert sum(text.startswith("folder") for text in described) == 1, described
    asyncio.run(environment.end_leftovers(found))
    assert _found(environment, token) == []


@pytest.mark.integration
def test_only_the_named_tokens_are_ended() -> None:
    mine, other = f"a{secrets.token_hex(4)}", f"b{secrets.token_hex(4)}"
    with subprocess.Popen(["sleep", "600"], env={"STEELYARD_TOKEN": other, **os.environ}) as beside:
        leftovers.end([mine])
        assert beside.poll() is None
        assert [found.pid for found in find_marked([other])] == [beside.pid]
        leftovers.end([other])
        assert beside.wait(20) == -signal.SIGKILL


def test_a_folder_is_named_by_its_token(tmp_path: Path) -> None:
    assert new_folder("abc_1", base=tmp_path).name.startswith("steelyard-abc_1-")
    assert new_folder("abc", base=tmp_path) != new_folder("abc", base=tmp_path)


@pytest.mark.parametrize("token", ["", "a/b", "..", "a-b", "é", "x" * 500, "\ud800"])
def test_a_token_that_is_no_file_name_is_named_by_its_hash(token: str) -> None:
    label = label_of(token)
    assert label.startswith("h")
    assert label.isalnum()
    assert label != label_of(token + "x")
