"""Keep one Docker daemon for a test run, with its containerd: end both when nobody uses them.

Run as a program, as root, in a mount namespace of its own, with the engine's folder. As with
podman's keeper, the lock on the file `users` tells when every user has ended. Another Docker or
containerd of this machine is neither used nor touched: configuration, sockets, storage and control
groups are this one's own.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from tests.containers import keeper

CONTAINERD = """\
version = 2
root = "{folder}/containerd/root"
state = "{folder}/containerd/state"
disabled_plugins = [
  "io.containerd.grpc.v1.cri", "io.containerd.internal.v1.opt", "io.containerd.nri.v1.nri",
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs",
]
[grpc]
address = "{folder}/containerd.sock"
"""
OPTIONS = (
    "--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-forward=false",
    "--storage-driver=overlay2", "--exec-opt=native.cgroupdriver=cgroupfs", "--log-level=warn",
    "--default-ulimit=nofile=20000:20000", "--default-ulimit=nproc=4096:4096",
)  # fmt: skip
"""Works where root may not raise limits and where cgroups are hybrid; leaves the host's network."""
_END_S = 20


def keep(folder: Path) -> None:
    # The sockets of containerd's shims, wherever it is told to work, are below /run.
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)
    (folder / "containerd.toml").write_text(CONTAINERD.format(folder=folder))
    (folder / "daemon.json").write_text("{}")  # not the machine's: it may contradict our options
    started = [_started(folder, words) for words in _programs(folder)]
    with (folder / "users").open("w") as users:
        fcntl.flock(users, fcntl.LOCK_EX)
        _kill_containers(folder)
        for program, watch in reversed(started):
            _end(program)
            watch.join()
        for pid in keeper.of_folder(folder, "containerd-shim-runc-v2"):
            os.kill(pid, signal.SIGKILL)
        _remove_cgroups(folder)
        for mounted in reversed(Path("/proc/self/mounts").read_text().splitlines()):
            if mounted.split()[1].startswith(f"{folder}/"):
                subprocess.run(["umount", "-l", mounted.split()[1]], check=False)
        keeper.remove(folder)


def _programs(folder: Path) -> tuple[list[str], list[str]]:
    return (
        ["containerd", "--log-level=error", f"--config={folder}/containerd.toml"],
        [
            "dockerd", f"--host=unix://{folder}/engine.sock", f"--config-file={folder}/daemon.json",
            f"--containerd={folder}/containerd.sock", f"--data-root={folder}/data",
            f"--exec-root={folder}/exec", f"--pidfile={folder}/dockerd.pid",
            f"--cgroup-parent=/{folder.name}", *OPTIONS,
        ],
    )  # fmt: skip


def _started(folder: Path, words: list[str]) -> tuple[subprocess.Popen[bytes], threading.Thread]:
    """Start a program; a file `ended` says that it has ended by itself, its log says why."""
    program = subprocess.Popen(words, stdin=subprocess.DEVNULL, cwd=folder)

    def watch() -> None:
        program.wait()
        (folder / "ended").touch()

    watching = threading.Thread(target=watch)
    watching.start()
    return program, watching


def _end(program: subprocess.Popen[bytes]) -> None:
    program.terminate()
    try:
        program.wait(_END_S)
    except subprocess.TimeoutExpired:
        program.kill()


def cgroups(name: str) -> list[Path]:
    """List the control groups of this daemon's containers, the outermost first."""
    top = Path("/sys/fs/cgroup")
    mine = [path for path in (top / name, *top.glob(f"*/{name}")) if path.is_dir()]
    return [path for one in mine for path in (one, *sorted(one.rglob("*/")))]


def pids(name: str) -> set[int]:
    """List the processes in this daemon's containers."""
    found: set[int] = set()
    for group in cgroups(name):
        try:
            found.update(int(line) for line in (group / "cgroup.procs").read_text().split())
        except OSError:  # it has just gone
            continue
    return found - {0}


def _kill_containers(folder: Path) -> None:
    for pid in pids(folder.name):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def _remove_cgroups(folder: Path) -> None:
    deadline = time.monotonic() + _END_S
    while (left := cgroups(folder.name)) and time.monotonic() < deadline:
        _kill_containers(folder)
        for group in reversed(left):
            try:
                group.rmdir()
            except OSError:  # a process of it is still ending
                time.sleep(0.01)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for pytest; the lock tells us the rest
    keep(Path(sys.argv[1]))
