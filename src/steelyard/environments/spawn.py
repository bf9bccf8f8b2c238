"""Start one program without holding the interpreter's lock.

`subprocess` keeps the lock while the child gets its first turn on a processor: 20 ms a start on a
busy machine, and the event loop stands still for each. `posix_spawn`, called through ctypes, lets
the lock go, so a thread of a small pool starts the program while the loop runs on. The pool's
threads live as long as the process: `--die-with-parent` means the thread that started it.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from typing import Any, Final

STARTERS: Final = ThreadPoolExecutor(8, thread_name_prefix="steelyard-start")
"""Where `spawn` is called; never shut down before the interpreter ends."""

_SETSIGDEF, _SETSIGMASK, _SETSID = 0x04, 0x08, 0x80
_ATTRIBUTES_BYTES, _ACTIONS_BYTES, _SIGSET_BYTES = 1024, 512, 256  # more than any libc takes
_LIFTED_FROM: Final = 100
"""Descriptors are lifted above the numbers they will get, so that none is overwritten."""


@cache
def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=False)


def find_program(program: str, path: str, cwd: str) -> str:
    """Find a program as the session would: along its own search path, from its own folder.

    Raises:
        FileNotFoundError: it is nowhere on the path.
        ValueError: the name holds a NUL byte.
    """
    if "/" in program:
        return program
    for folder in path.split(os.pathsep) if program else ():
        candidate = os.path.join(cwd, folder, program)  # noqa: PTH118 — any text may come
        if os.access(candidate, os.X_OK) and not os.path.isdir(candidate):  # noqa: PTH112
            return candidate
    raise FileNotFoundError(2, "No such file or directory", program)


def spawn(
    program: str,
    argv: Sequence[str],
    env: Mapping[str, str],
    cwd: str,
    descriptors: Sequence[int],
    *,
    is_behind_us: bool = True,
) -> int:
    """Start a program in a session of its own; its process id. Blocking.

    Args:
        program: its path.
        argv: its words, the first one its name.
        env: all of its variables.
        cwd: the folder it starts in.
        descriptors: what it gets as 0, 1, 2, …; it gets no others.
        is_behind_us: where processors are short, this process goes first.

    Raises:
        OSError: it could not be started.
        ValueError: a word that cannot be passed on.
    """
    libc = _libc()
    words = _vector(argv)
    variables = _vector([f"{name}={value}" for name, value in env.items()])
    path, folder = _bytes(program), _bytes(cwd)
    attributes = ctypes.create_string_buffer(_ATTRIBUTES_BYTES)
    actions = ctypes.create_string_buffer(_ACTIONS_BYTES)
    lifted: list[int] = []
    _check(libc.posix_spawnattr_init(attributes))
    try:
        _check(libc.posix_spawn_file_actions_init(actions))
        try:
            _set_attributes(libc, attributes)
            _check(libc.posix_spawn_file_actions_addchdir_np(actions, folder))
            lifted += [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _LIFTED_FROM) for fd in descriptors]
            for number, fd in enumerate(lifted):
                _check(libc.posix_spawn_file_actions_adddup2(actions, fd, number))
            _close_others(libc, actions, len(lifted))
            pid = ctypes.c_int()
            _check(
                libc.posix_spawn(ctypes.byref(pid), path, actions, attributes, words, variables),
                argv[0],
            )
            if is_behind_us:
                _behind_us(pid.value)
            return pid.value
        finally:
            for fd in lifted:
                os.close(fd)
            libc.posix_spawn_file_actions_destroy(actions)
    finally:
        libc.posix_spawnattr_destroy(attributes)


def _behind_us(pid: int) -> None:
    """Let the event loop go first where processors are short; a courtesy, refused by some systems.

    A program in a session of its own is, to Linux, a group that weighs as much as all of ours.
    """
    with suppress(OSError):
        fd = os.open(f"/proc/{pid}/autogroup", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(fd, b"10")
        finally:
            os.close(fd)


def _set_attributes(libc: Any, attributes: Any) -> None:
    """Ask for an own session, no blocked signals, and the defaults of those Python ignores."""
    none = ctypes.create_string_buffer(_SIGSET_BYTES)
    ignored = ctypes.create_string_buffer(_SIGSET_BYTES)
    libc.sigemptyset(none)
    libc.sigemptyset(ignored)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        libc.sigaddset(ignored, int(number))
    _check(libc.posix_spawnattr_setsigmask(attributes, none))
    _check(libc.posix_spawnattr_setsigdefault(attributes, ignored))
    flags = ctypes.c_short(_SETSIGDEF | _SETSIGMASK | _SETSID)
    _check(libc.posix_spawnattr_setflags(attributes, flags))


def _close_others(libc: Any, actions: Any, first: int) -> None:
    """Let nothing through that this process holds by accident without close-on-exec."""
    if hasattr(libc, "posix_spawn_file_actions_addclosefrom_np"):
        _check(libc.posix_spawn_file_actions_addclosefrom_np(actions, first))
        return
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 — numbers, not paths
        fd = int(name)
        try:
            inheritable = fd >= first and os.get_inheritable(fd)
        except OSError:
            continue  # the listing's own
        if inheritable:
            _check(libc.posix_spawn_file_actions_addclose(actions, fd))


def _vector(words: Sequence[str]) -> Any:
    encoded = [_bytes(word) for word in words]
    return (ctypes.c_char_p * (len(encoded) + 1))(*encoded, None)


def _bytes(text: str) -> bytes:
    data = os.fsencode(text)
    if b"\0" in data:  # C would end the word there
        raise ValueError("embedded null byte")
    return data


def _check(error: int, name: str | None = None) -> None:
    if error:
        raise OSError(error, os.strerror(error), name)
