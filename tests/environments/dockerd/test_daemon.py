"""The daemon of a test run goes with it, and says why where it does not start."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.containers import docker_keeper

pytestmark = pytest.mark.integration

REPOSITORY = Path(__file__).parents[3]
KILLED = """
import asyncio, os, signal

from steelyard.components.environment import OpenRequest
from steelyard.environments.docker.params import DockerParams
from steelyard.environments.docker.provider import Docker
from tests.containers import docker_keeper

def test_inner(container_engine, busybox_image, docker_host):
    print("FOLDER", container_engine.folder, flush=True)

    async def killed():
        await Docker(DockerParams(image=busybox_image)).open(OpenRequest("killed-run"))
        print("PROCESSES", len(docker_keeper.pids(container_engine.folder.name)), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

    asyncio.run(killed())
"""
FAILS = """
def test_inner(container_engine):
    pass
"""
REFUSING = """\
#!/bin/sh
echo "failed to start daemon: this machine does not let it" >&2
exit 1
"""


def _ran(tmp_path: Path, text: str, path: str) -> subprocess.CompletedProcess[str]:
    """Run one test in a test run of its own."""
    test = Path(__file__).with_name(f"test_inner_{tmp_path.name}.py")
    test.write_text(text)
    kept = {name: value for name, value in os.environ.items() if "XDIST" not in name}
    try:
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", str(test)],
            cwd=REPOSITORY, env={**kept, "PATH": path}, capture_output=True, text=True,
            timeout=120, check=False,
        )  # fmt: skip
    finally:
        test.unlink()


def test_the_daemon_of_a_test_run_that_was_killed_leaves_nothing(tmp_path: Path) -> None:
    ran = _ran(tmp_path, KILLED, os.environ["PATH"])
    assert ran.returncode == -9, ran.stdout
    folder = Path(ran.stdout.split("FOLDER ", 1)[1].split()[0])
    assert int(ran.stdout.split("PROCESSES ", 1)[1]) > 0, "no container ran when it was killed"
    deadline = time.monotonic() + 60
    while folder.exists() or folder.with_suffix(".lock").exists():
        assert time.monotonic() < deadline, f"{folder} stays"
        time.sleep(0.1)
    assert docker_keeper.cgroups(folder.name) == []
    assert str(folder) not in Path("/proc/mounts").read_text()
    time.sleep(0.5)  # the keeper's own end
    named = [one for one in psutil.process_iter(["cmdline"]) if str(folder) in _words(one)]
    assert named == []


def _words(process: psutil.Process) -> str:
    return " ".join(process.info["cmdline"] or ())


def test_where_the_daemon_does_not_start_its_tests_fail_with_its_last_lines(
    tmp_path: Path,
) -> None:
    program = tmp_path / "dockerd"
    program.write_text(REFUSING)
    program.chmod(0o755)
    ran = _ran(tmp_path, FAILS, f"{tmp_path}:{os.environ['PATH']}")
    assert ran.returncode == pytest.ExitCode.TESTS_FAILED, ran.stdout
    assert "dockerd has ended: " in ran.stdout
    assert "this machine does not let it" in ran.stdout
