"""Folders of the host that a sandbox is asked to show are seen inside, and cannot be changed."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path

import pytest

from steelyard.components.environment import (
    EnvironmentFault,
    ExecResult,
    Mount,
    OpenRequest,
)
from steelyard.environments.sandbox import Sandbox

pytestmark = pytest.mark.integration


def ran_with(mounts: tuple[Mount, ...], *argv: str) -> ExecResult:
    async def run() -> ExecResult:
        environment = Sandbox(Sandbox.Params())
        session = await environment.open(OpenRequest(f"mounts-{uuid.uuid4().hex}", mounts=mounts))
        try:
            return await session.exec(argv)
        finally:
            await session.close()
            await environment.close()

    return asyncio.run(run())


@pytest.fixture
def closed(tmp_path: Path) -> Path:
    """A folder below one that its owner alone may enter, as an agent's below root's home is."""
    folder = tmp_path / "closed" / "agent"
    (folder / "bin").mkdir(parents=True)
    tool = folder / "bin" / "tool"
    tool.write_text("#!/bin/sh\necho from the mount\n")
    tool.chmod(0o755)
    for path in (folder, folder / "bin"):
        path.chmod(0o755)
    (tmp_path / "closed").chmod(0o700)
    (tmp_path / "closed" / "secret").write_text("not shown")
    return folder


def test_a_program_of_a_closed_folder_runs_inside(closed: Path) -> None:
    ended = ran_with((Mount(closed, "/opt/agent"),), "/opt/agent/bin/tool")
    assert ended.stdout == b"from the mount\n", ended.stderr_text


def test_what_is_mounted_cannot_be_changed(closed: Path) -> None:
    ended = ran_with(
        (Mount(closed, "/opt/agent"),), "sh", "-c", "echo x >/opt/agent/bin/tool; rm -r /opt/agent"
    )
    assert ended.exit_code != 0
    assert (closed / "bin" / "tool").read_text().startswith("#!/bin/sh")


def test_nothing_beside_a_mounted_folder_is_shown(closed: Path) -> None:
    ended = ran_with(
        (Mount(closed, "/opt/agent"),), "sh", "-c", f"ls -a /opt; ls {closed.parent} 2>&1"
    )
    assert b"secret" not in ended.stdout
    assert ended.stdout.startswith(b".\n..\nagent\n")


def test_several_mounts_and_single_files_are_seen_together(closed: Path, tmp_path: Path) -> None:
    other = tmp_path / "closed" / "other.txt"
    other.write_text("second")
    other.chmod(0o644)
    mounts = (Mount(closed, "/opt/agent"), Mount(other, "/opt/other.txt"))
    ended = ran_with(mounts, "sh", "-c", "/opt/agent/bin/tool; cat /opt/other.txt")
    assert ended.stdout == b"from the mount\nsecond", ended.stderr_text


@pytest.mark.parametrize("target", ["relative", "/workspace/agent", "/usr/agent", "/", "/a/../b"])
def test_a_place_that_is_the_sandboxs_own_is_refused(closed: Path, target: str) -> None:
    with pytest.raises(EnvironmentFault, match=r"mount"):
        ran_with((Mount(closed, target),), "true")


def test_a_folder_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault, match=r"there is no .*/gone to mount at /opt/x"):
        ran_with((Mount(tmp_path / "gone", "/opt/x"),), "true")


def test_views_leave_no_descriptor_behind(closed: Path) -> None:
    ran_with((Mount(closed, "/opt/agent"),), "true")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        ran_with((Mount(closed, "/opt/agent"),), "true")
    assert len(list(Path("/proc/self/fd").iterdir())) == before
