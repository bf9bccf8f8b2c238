"""A listening socket inside the network namespace of another process.

A sandbox without network has a loopback of its own that nobody outside can reach. A socket,
however, belongs to the namespace in which it was made and can be served from anywhere: so we go
in, bind, and come back with the descriptor. Nothing of ours runs inside.

Root goes in with a thread that ends afterwards: a namespace is a thread's own. An ordinary user
must enter the user namespace that owns the network first, which only a process with one thread
may do: a small program does it, and sends the descriptor back.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import socket
import sys
import threading
from contextlib import suppress
from functools import cache
from typing import Any, Final

from steelyard.environments.spawn import spawn

HELPER_WAIT_S: Final = 10.0
BACKLOG: Final = 128

_CLONE_NEWNET: Final = 0x40000000
_IP_FREEBIND: Final = 15

HELPER: Final = """
import ctypes, fcntl, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
channel = socket.socket(fileno=3)
def enter(fd, kind):
    if libc.setns(fd, kind):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
try:
    owner = fcntl.ioctl(4, 0xB701)  # NS_GET_USERNS
    enter(owner, 0x10000000)
    enter(4, 0x40000000)
    listener = socket.socket()
    listener.setsockopt(socket.IPPROTO_IP, 15, 1)
    listener.bind(("127.0.0.1", int(sys.argv[1])))
    listener.listen(int(sys.argv[2]))
    socket.send_fds(channel, [b"0"], [listener.fileno()])
except OSError as error:
    channel.send(str(error.errno or 5).encode())
"""
"""Run as `python -I -S -c`: 3 is the channel back, 4 the network namespace."""


async def listen_inside(pid: int, port: int) -> socket.socket:
    """Give a socket that listens on 127.0.0.1 in the network namespace of a process.

    The namespace's loopback need not be up yet: who connects later is served all the same.

    Args:
        pid: the process; it must not end meanwhile.
        port: a port that is free inside.

    Raises:
        OSError: the namespace cannot be entered, or the port is taken.
    """
    made = asyncio.get_running_loop().run_in_executor(None, _listen_inside, pid, port)
    try:
        return await asyncio.shield(made)
    except asyncio.CancelledError:
        if not made.done():
            await asyncio.wait({made})
        if not made.cancelled() and made.exception() is None:
            made.result().close()
        raise


def _listen_inside(pid: int, port: int) -> socket.socket:
    """Do the same, blocking."""
    namespace = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        if os.geteuid() == 0:
            with suppress(PermissionError):  # root of a container may lack the capability
                return _by_thread(namespace, port)
        return _by_helper(namespace, port)
    finally:
        os.close(namespace)


def _by_thread(namespace: int, port: int) -> socket.socket:
    made: list[socket.socket] = []
    failed: list[OSError] = []

    def enter() -> None:
        try:
            if _libc().setns(namespace, _CLONE_NEWNET):
                number = ctypes.get_errno()
                raise OSError(number, os.strerror(number))
            made.append(_listener(port))
        except OSError as error:
            failed.append(error)

    # Of its own, not of a pool: nothing else may ever run in that namespace.
    thread = threading.Thread(target=enter, name="steelyard-namespace", daemon=True)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return made[0]


def _listener(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        # Before the loopback is up the address is nobody's yet.
        listener.setsockopt(socket.IPPROTO_IP, _IP_FREEBIND, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(BACKLOG)
    except BaseException:
        listener.close()
        raise
    return listener


def _by_helper(namespace: int, port: int) -> socket.socket:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with ours:
        with theirs:
            null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
            try:
                pid = spawn(
                    sys.executable,
                    [sys.executable, "-I", "-S", "-c", HELPER, str(port), str(BACKLOG)],
                    {},
                    "/",
                    [null, null, null, theirs.fileno(), namespace],
                )
            finally:
                os.close(null)
        try:
            return _received(ours)
        finally:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            with suppress(ChildProcessError):  # whoever started us ignores SIGCHLD
                os.waitpid(pid, 0)


def _received(channel: socket.socket) -> socket.socket:
    channel.settimeout(HELPER_WAIT_S)
    said, descriptors, _, _ = socket.recv_fds(channel, 16, 1)
    if descriptors:
        return socket.socket(fileno=descriptors[0])
    number = int(said) if said.isdigit() else 0
    reason = os.strerror(number) if number else "the helper ended without a word"
    raise OSError(number or 5, f"its network namespace cannot be entered: {reason}")


@cache
def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)
