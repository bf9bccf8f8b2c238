"""A socket that listens in another network namespace, made by thread or by helper."""

from __future__ import annotations

import asyncio
import os
import subprocess
import threading
from pathlib import Path

import pytest

from steelyard.environments import namespaces

pytestmark = pytest.mark.integration


def unshared() -> subprocess.Popen[bytes]:
    """Start a shell in a user and network namespace of its own, whose loopback is down."""
    child = subprocess.Popen(
        ["unshare", "-Urn", "sh", "-c", "echo ready; read go"],
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
        fd = os.open(f"/proc/{child.pid}/ns/net", os.O_RDONLY)
        try:
            with getattr(namespaces, way)(fd, 8377) as listener:
                assert listener.getsockname() == ("127.0.0.1", 8377)
                inside = subprocess.run(
                    ["nsenter", "-t", str(child.pid), "-U", "-n", "--preserve-credentials",
                     "cat", "/proc/net/tcp"],
                    capture_output=True, text=True, check=True,
                )  # fmt: skip
                assert "0100007F:20B9" in inside.stdout
                assert "0100007F:20B9" not in _listening_here()
        finally:
            os.close(fd)
    finally:
        child.communicate(b"go\n")
    assert own_namespace() == before
    assert threading.active_count() == threads


def _listening_here() -> str:
    return Path("/proc/thread-self/net/tcp").read_text()


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
