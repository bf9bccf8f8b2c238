"""A rootless engine, used by the ordinary user whom it belongs to: the gateway reaches in as well.

The user has no range of other users' ids, as on many machines: everything inside is one user.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from tests.containers import images, keeper
from tests.environments.people import NOBODY, ordinary_user, run_python

STORAGE = """\
[storage]
driver="vfs"
runroot="{home}/run/containers"
graphroot="{home}/storage"
[storage.options]
ignore_chown_errors="true"
"""
PROGRAM = """
import asyncio, sys
from pathlib import Path
from steelyard.components.environment import OpenRequest
from steelyard.environments.docker.params import DockerParams
from steelyard.environments.docker.provider import Docker
from steelyard.testing.fake_gate import FakeGate

async def main():
    environment = Docker(DockerParams(image_tar=Path(sys.argv[1])))
    print(await environment.describe_engine())
    async with FakeGate() as gate:
        session = await environment.open(OpenRequest("rootless", gate=gate))
        try:
            await session.write_file("a/b", b"written")
            script = 'cat a/b; echo; wget -q -O - "$0/"; echo; sleep 600 & '
            print((await session.exec(["sh", "-c", script, session.model_url])).stdout_text)
            print((await session.exec(["sleep", "9"], timeout_s=0.3)).timed_out)
        finally:
            await session.close()
    print(list(await environment.find_leftovers(["rootless"])))
    await environment.close()

asyncio.run(main())
"""


@pytest.mark.integration
def test_a_rootless_engine_serves_its_user(tmp_path: Path) -> None:
    with ordinary_user() as (prefix, variables):
        home = Path(variables["HOME"])
        (home / "run").mkdir(mode=0o700)
        (home / "containers.conf").write_text(keeper.SETTINGS)
        (home / "storage.conf").write_text(STORAGE.format(home=home))
        tar = home / "image.tar"
        tar.write_bytes(images.busybox_tar().read_bytes())
        if os.geteuid() == 0:
            for path in (home / "run", tar):
                os.chown(path, NOBODY, NOBODY)
        own = {
            **variables,
            "XDG_RUNTIME_DIR": str(home / "run"),
            "CONTAINERS_CONF": str(home / "containers.conf"),
            "CONTAINERS_STORAGE_CONF": str(home / "storage.conf"),
            "DOCKER_HOST": f"unix://{home}/run/e.sock",
        }
        service = subprocess.Popen(
            [*prefix, "podman", "system", "service", "--time=0", own["DOCKER_HOST"]],
            env={name: value for name, value in own.items() if name != "DOCKER_HOST"},
            cwd=home, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip
        with service:
            try:
                deadline = time.monotonic() + 30
                while not (home / "run" / "e.sock").exists():
                    assert service.poll() is None, service.communicate()[1]
                    assert time.monotonic() < deadline, "podman's service does not start"
                    time.sleep(0.05)
                told = run_python(["-c", PROGRAM, str(tar)], prefix=prefix, env=own)
            finally:
                # The service itself is a child that podman made in its user namespace.
                for child in psutil.Process(service.pid).children(recursive=True):
                    child.kill()
                service.terminate()
                # Rootless podman leaves a process that holds its user namespace.
                for pause in (home / "run").rglob("pause.pid"):
                    os.kill(int(pause.read_text()), signal.SIGKILL)
    assert told.returncode == 0, told.stderr[-3000:]
    lines = told.stdout.splitlines()
    assert "rootless" in lines[0], lines
    assert lines[1:3] == ["written", "reached"], lines
    assert lines[-2:] == ["True", "[]"], lines
