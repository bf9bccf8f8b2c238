"""One process a run: import `harbor` once, then fork for each attempt that the driver sends.

A message of the driver is nine bytes: `A` and a number, with the attempt's socket beside it, or
`K` and a number: that attempt is over, and its process is killed. Where the driver's end closes,
all are killed.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import select
import shutil
import signal
import socket
import warnings
from pathlib import Path

MESSAGE_BYTES = 9
_REAP_S = 1.0


def main(control_fd: int, folder: Path) -> None:
    """Serve attempts until the driver lets go; then the folder goes as well."""
    control = socket.socket(fileno=control_fd)
    children: dict[int, int] = {}
    try:
        _import(control)
        _serve(control, folder, children)
    finally:
        if os.getpid() == _SERVER:
            for pid in children.values():
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            shutil.rmtree(folder, ignore_errors=True)


_SERVER = os.getpid()


def _import(control: socket.socket) -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    from importlib.metadata import version

    # The version first: where it is another one, nobody waits for the rest.
    control.sendall(json.dumps({"harbor": version("harbor")}).encode() + b"\n")
    import litellm

    from . import agent as _agent  # noqa: F401 — what every attempt needs is imported here

    litellm.disable_hf_tokenizer_download = True  # tokens are counted without a network
    gc.collect()
    gc.freeze()  # pages that the forks share stay shared
    control.sendall(b"{}\n")


def _serve(control: socket.socket, folder: Path, children: dict[int, int]) -> None:
    while True:
        _reap(children)
        if not select.select([control], [], [], _REAP_S if children else None)[0]:
            continue
        message, given = _message(control)
        if not message:
            return
        number = int.from_bytes(message[1:], "big")
        if message[:1] == b"K":
            if pid := children.pop(number, 0):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            continue
        pid = os.fork()
        if pid == 0:
            control.close()
            _attempt(given[0], folder)
        os.close(given[0])
        children[number] = pid


def _attempt(fd: int, folder: Path) -> None:
    """Be one attempt's process, and nothing else."""
    status = 1
    try:
        from . import agent, link

        agent.work(link.Link(socket.socket(fileno=fd)), folder)
        status = 0
    finally:
        os._exit(status)


def _message(control: socket.socket) -> tuple[bytes, list[int]]:
    data, given, _flags, _address = socket.recv_fds(control, MESSAGE_BYTES, 1)
    while data and len(data) < MESSAGE_BYTES:
        more = control.recv(MESSAGE_BYTES - len(data))
        if not more:
            return b"", given
        data += more
    return data, given


def _reap(children: dict[int, int]) -> None:
    for number, pid in list(children.items()):
        if os.waitpid(pid, os.WNOHANG)[0]:
            del children[number]
