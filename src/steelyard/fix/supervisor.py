"""End every process a program started, where no namespace does it: a program of its own.

It adopts whatever its descendants leave behind (PR_SET_CHILD_SUBREAPER), so that a process with a
session of its own stays below it, and ends only when none is left. It ends them all when the
program ends, the time is over, there are too many, or whoever started it is gone.

    python supervisor.py STATUS_FD CONTROL_FD WORDS   (WORDS: a JSON object; see `main`)
"""
# a small program that starts in front of every command: no pathlib
# ruff: noqa: PTH123, PTH208

from __future__ import annotations

import ctypes
import errno
import json
import os
import resource
import select
import signal
import sys
import time
from contextlib import suppress
from typing import Any

PR_SET_CHILD_SUBREAPER = 36


def descendants(pid: int) -> list[int]:
    """List all that live below a process, threads' children too."""
    found: list[int] = []
    ahead = [pid]
    while ahead:
        current = ahead.pop()
        try:
            threads = os.listdir(f"/proc/{current}/task")
        except OSError:
            continue
        for thread in threads:
            try:
                with open(f"/proc/{current}/task/{thread}/children") as file:
                    children = [int(word) for word in file.read().split()]
            except (OSError, ValueError):
                continue
            found += children
            ahead += children
    return found


def reap() -> bool:
    """Take the ends of children; True while there are any."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if pid == 0:
            return True


def end_all(patience_s: float) -> bool:
    """Stop, then kill, until nothing is left; True where nothing is."""
    until = time.monotonic() + patience_s
    while True:
        below = descendants(os.getpid())
        for number in (signal.SIGSTOP, signal.SIGKILL):  # stopped first: no new ones meanwhile
            for pid in below:
                with suppress(OSError):
                    os.kill(pid, number)
        if not reap() and not below:
            return True
        if time.monotonic() > until:
            return False
        time.sleep(0.002)


def limit(limits: dict[str, int]) -> None:
    """Set the rlimits of what is about to start."""
    for name, value in limits.items():
        what = getattr(resource, name)
        _, hard = resource.getrlimit(what)
        bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(what, (bound, bound))


def start(words: dict[str, Any], status_fd: int, control_fd: int) -> tuple[int, str | None]:
    """Start the program; its id, or the reason why not."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(read)
            os.close(status_fd)
            os.close(control_fd)
            os.setsid()
            for number in (signal.SIGPIPE, signal.SIGXFSZ):
                signal.signal(number, signal.SIG_DFL)
            os.chdir(words["cwd"])
            limit(words["rlimits"])
            os.set_inheritable(write, False)
            os.execvpe(words["argv"][0], words["argv"], os.environ)  # noqa: S606 — no shell is the point
        except OSError as error:
            os.write(write, str(error.errno or errno.EIO).encode())
        finally:
            os._exit(127)
    os.close(write)
    said = os.read(read, 16)
    os.close(read)
    return pid, (os.strerror(int(said)) if said else None)


def main() -> None:
    """Run the program to its end, then everything it started."""
    status_fd, control_fd = int(sys.argv[1]), int(sys.argv[2])
    words = json.loads(sys.argv[3])
    for fd in (status_fd, control_fd):
        os.set_inheritable(fd, False)
    if ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        os.write(status_fd, b'{"fault": "this system has no subreapers"}')
        return
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    began = time.monotonic()
    pid, refusal = start(words, status_fd, control_fd)
    watched = select.poll()
    pidfd = os.pidfd_open(pid)
    watched.register(pidfd, select.POLLIN)
    watched.register(control_fd, select.POLLIN | select.POLLHUP)
    why: str | None = None
    code: int | None = None
    deadline = began + words["timeout_s"]
    while why is None:
        left_s = deadline - time.monotonic()
        ready = dict(watched.poll(max(0, min(100, 1 + left_s * 1000))))
        if pidfd in ready:
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            break
        if control_fd in ready:
            why = "request"
        elif time.monotonic() >= deadline:
            why = "time"
        elif len(descendants(os.getpid())) > words["processes"]:
            why = "processes"
    took_s = time.monotonic() - began
    is_empty = end_all(words["patience_s"])
    said = {"exit_code": code, "why": why, "refusal": refusal, "duration_s": took_s}
    os.write(status_fd, json.dumps({**said, "is_empty": is_empty}).encode())


if __name__ == "__main__":
    main()
