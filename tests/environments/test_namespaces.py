"""A socket that listens in another network namespace, made by thread or by helper."""

from __future__ import annotations

import asyncio
import os
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from steelyard.environments import namespaces
from tests.environments.people import NOBODY, run_python

pytestmark = pytest.mark.integration


def unshared(prefix: Sequence[str] = ()) -> subprocess.Popen[bytes]:
    """Start a shell in a user and network namespace of its own, whose loopback is down."""
    child = subprocess.Popen(
        [*prefix, "unshare", "-Urn", "sh", "-c", "echo ready; read go"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    return child


def own_namespace() -> str:
    return str(Path("/proc/thread-self/ns/net").readlink())


@pytest.mark.parametrize("way", ["_by_thread", "_by_helper"])
def test_both_ways_listen_inside_while_the_loopback_is_down(way: str) -> None:
    if os.geteuid() != 0 and way == "_by_thread":
        way = "_by_helper"  # an ordinary user's thread may not; that is what the helper is for
    child = unshared()
    before, threads = own_namespace(), threading.active_count()
    try:
        with getattr(namespaces, way)(child.pid, 8377) as listener:
            assert listener.getsockname() == ("127.0.0.1", 8377)
            inside = subprocess.run(
                ["nsenter", "-t", str(child.pid), "-U", "-n", "--preserve-credentials",
                 "cat", "/proc/net/tcp"],
                capture_output=True, text=True, check=True,
            )  # fmt: skip
            assert "0100007F:20B9" in inside.stdout
            assert "0100007F:20B9" not in _listening_here()
    finally:
        child.communicate(b"go\n")
    assert own_namespace() == before
    assert threading.active_count() == threads


def _listening_here() -> str:
    return Path("/proc/thread-self/net/tcp").read_text()


WITHOUT_CAPABILITIES = """
import sys
from steelyard.environments import namespaces
with namespaces._listen_inside(int(sys.argv[1]), 8377) as listener:
    print(listener.getsockname()[1])
"""


def test_root_without_the_capability_becomes_the_sandboxs_owner() -> None:
    """As in a container; for an ordinary user the first way is the only one."""
    is_root = os.geteuid() == 0
    owner = [f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--inh-caps=-all"]
    weak = ["--bounding-set=-sys_admin,-sys_ptrace", "--inh-caps=-all"]
    child = unshared(["setpriv", *owner, "--"] if is_root else [])
    try:
        told = run_python(
            ["-c", WITHOUT_CAPABILITIES, str(child.pid)],
            prefix=["setpriv", *weak, "--"] if is_root else [],
        )
        assert told.stdout.split() == ["8377"], told.stderr
    finally:
        child.communicate(b"go\n")


def test_a_port_that_is_taken_is_said() -> None:
    child = unshared()
    try:

        async def main() -> None:
            listener = await namespaces.listen_inside(child.pid, 8377)
            with listener, pytest.raises(OSError, match="ddress already in use"):
                await namespaces.listen_inside(child.pid, 8377)

        asyncio.run(main())
    finally:
        child.communicate(b"go\n")


def test_a_process_that_is_gone_is_an_error_of_the_system() -> None:
    child = unshared()
    child.communicate(b"go\n")
    with pytest.raises(OSError, match="No such"):
        asyncio.run(namespaces.listen_inside(child.pid, 8377))
