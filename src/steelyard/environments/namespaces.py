"""A listening socket inside the network namespace of another process.

A sandbox without network has a loopback of its own that nobody outside can reach. A socket,
however, belongs to the namespace in which it was made and can be served from anywhere: so we go
in, bind, and come back with the descriptor. Nothing of ours runs inside.

Root goes in with a thread that ends afterwards: a namespace is a thread's own. An ordinary user
must enter the user namespace that owns the network first, which only a process with one thread
may do: a small program does it, and sends the descriptor back. Where root lacks the capability,
as in most containers, that program becomes the user who owns the sandbox first.
"""

from __future__ import annotations

import asyncio
import ctypes
import errno
import os
import signal
import socket
import sys
import threading
from contextlib import suppress
from functools import cache
from typing import Any, Final

from steelyard.environments.bubblewrap import DROP_TO_ID
from steelyard.environments.spawn import spawn

HELPER_WAIT_S: Final = 10.0
BACKLOG: Final = 128

_CLONE_NEWNET: Final = 0x40000000
_IP_FREEBIND: Final = 15

HELPER: Final = """
import ctypes, fcntl, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
channel = socket.socket(fileno=3)
pid, port, backlog, owner_id = map(int, sys.argv[1:])
def enter(fd, kind):
    if libc.setns(fd, kind):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
def go_in():
    network = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    owner = fcntl.ioctl(network, 0xB701)  # NS_GET_USERNS
    enter(owner, 0x10000000)
    enter(network, 0x40000000)
try:
    try:
        go_in()
    except PermissionError:
        if os.geteuid() != 0:
            raise
        os.setgroups([])
        os.setresgid(owner_id, owner_id, owner_id)
        os.setresuid(owner_id, owner_id, owner_id)
        go_in()
    listener = socket.socket()
    listener.setsockopt(socket.IPPROTO_IP, 15, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(backlog)
    socket.send_fds(channel, [b"0"], [listener.fileno()])
except OSError as error:
    channel.send(str(error.errno or 5).encode())
"""
"""Run as `python -I -S -c PROGRAM PID PORT BACKLOG OWNER`; 3 is the channel back."""


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
    if os.geteuid() == 0:
        with suppress(PermissionError):  # root of a container may lack the capability
            return _by_thread(pid, port)
    return _by_helper(pid, port)


def _by_thread(pid: int, port: int) -> socket.socket:
    made: list[socket.socket] = []
    failed: list[OSError] = []
    namespace = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)

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
    try:
        thread.start()
        thread.join()
    finally:
        os.close(namespace)
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


def _by_helper(pid: int, port: int) -> socket.socket:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with ours:
        with theirs:
            null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
            try:
                numbers = map(str, (pid, port, BACKLOG, DROP_TO_ID))
                helper = spawn(
                    sys.executable,
                    [sys.executable, "-I", "-S", "-c", HELPER, *numbers],
                    {},
                    "/",
                    [null, null, null, theirs.fileno()],
                )
            finally:
                os.close(null)
        try:
            return _received(ours)
        finally:
            with suppress(ProcessLookupError):
                os.kill(helper, signal.SIGKILL)
            with suppress(ChildProcessError):  # whoever started us ignores SIGCHLD
                os.waitpid(helper, 0)


def _received(channel: socket.socket) -> socket.socket:
    channel.settimeout(HELPER_WAIT_S)
    said, descriptors, _, _ = socket.recv_fds(channel, 16, 1)
    if descriptors:
        return socket.socket(fileno=descriptors[0])
    number = int(said) if said.isdigit() else 0
    reason = os.strerror(number) if number else "the helper ended without a word"
    said_text = f"its network namespace cannot be entered: {reason}"
    raise OSError(number or errno.EIO, said_text)


@cache
def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)
