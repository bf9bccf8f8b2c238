"""Keep one container engine for a test run: start podman's service, end it when nobody uses it.

Run as a program with the engine's folder. Whoever uses the engine holds a shared lock on its file
`users`; when this program gets that lock for itself, every user has ended, however it ended. Then
all containers are removed, the service is ended by its id, and the folder goes.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from tests.containers import engines

SETTINGS = """\
[containers]
default_ulimits=["nofile=20000:20000","nproc=4096:4096"]
netns="none"
[engine]
runtime="runc"
cgroup_manager="cgroupfs"
events_logger="file"
"""
"""Works where root may not raise limits and where cgroups are hybrid."""


def podman(folder: Path) -> list[str]:
    """Give the words that begin every podman command on the engine of a folder."""
    program = shutil.which("podman")
    assert program, "podman is missing: apt-get install podman runc"
    roots = ["--root", str(folder / "root"), "--runroot", str(folder / "run")]
    return [program, *roots, "--tmpdir", str(folder / "libpod")]


def variables(folder: Path) -> dict[str, str]:
    """Give the variables that every podman command on this engine needs."""
    kept = {name: value for name, value in os.environ.items() if name != "DOCKER_HOST"}
    return {**kept, "CONTAINERS_CONF": str(folder / "containers.conf"), "TMPDIR": str(folder)}


def keep(folder: Path) -> None:
    (folder / "containers.conf").write_text(SETTINGS)
    with (folder / "service.log").open("ab") as log:
        service = subprocess.Popen(
            [*podman(folder), "system", "service", "--time=0", f"unix://{folder}/engine.sock"],
            env=variables(folder), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        )  # fmt: skip
    with (folder / "users").open("w") as users:
        fcntl.flock(users, fcntl.LOCK_EX)
        service.terminate()
        try:
            service.wait(20)
        except subprocess.TimeoutExpired:
            service.kill()
            service.wait()
        for words in (["rm", "-a", "-f", "-t", "0", "-v"], ["umount", "-a"]):
            subprocess.run(
                [*podman(folder), *words], env=variables(folder), capture_output=True,
                check=False, timeout=300, stdin=subprocess.DEVNULL,
            )  # fmt: skip
        # Conmon writes its last word after its container is gone.
        for pid in of_folder(folder):
            os.kill(pid, signal.SIGKILL)
        # The storage's own mounts go with the last; a lazy one leaves nothing to remove.
        subprocess.run(["umount", "-l", str(folder / "root" / "overlay")],
                       capture_output=True, check=False)  # fmt: skip
        remove(folder)


def remove(folder: Path) -> None:
    """Remove an engine's folder, the file `users` last: until then nobody can join it."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        elif path.name != "users":
            path.unlink()
    (folder / "users").unlink()
    folder.rmdir()
    # A user that was killed has left it.
    with engines.one_at_a_time(folder.with_suffix(".lock")) as lock:
        lock.unlink()


def of_folder(folder: Path, program: str = "conmon") -> list[int]:
    """List the helpers of this engine, by default podman's: their words name its folder."""
    found = []
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        names_it = any(os.fsencode(folder) in word for word in words)
        if words[0].endswith(program.encode()) and names_it:
            found.append(int(process.name))
    return found


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for pytest; the lock tells us the rest
    keep(Path(sys.argv[1]))
