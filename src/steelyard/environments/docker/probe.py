"""Try a container's walls from the inside, before anyone is told that it is tight."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any, Final

from steelyard.environments.docker.limits import CAPABILITIES

PROGRAM: Final = r"""
import ctypes, errno, json, os, socket, sys

libc = ctypes.CDLL(None, use_errno=True)
found = {}

def error_of(result):
    return errno.errorcode.get(ctypes.get_errno(), "?") if result != 0 else "done"

def attempt(name, action):
    try:
        action()
    except OSError as error:
        found[name] = errno.errorcode.get(error.errno, str(error.errno))
    else:
        found[name] = "done"

with open("/proc/self/status") as file:
    status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
for name in ("CapEff", "CapPrm", "CapBnd", "CapInh", "CapAmb"):
    found[name] = int(status[name].strip(), 16)
found["NoNewPrivs"] = status["NoNewPrivs"].strip()
found["Seccomp"] = status["Seccomp"].strip()
found["remount"] = error_of(libc.mount(b"none", b"/proc", None, 32 | 4096, None))
found["mount"] = error_of(libc.mount(b"none", b"/tmp", b"tmpfs", 0, None))
found["unshare"] = error_of(libc.unshare(0x10000000))
for name, family in (("vsock", 40), ("packet", 17), ("alg", 38)):
    attempt(name, lambda: socket.socket(family, socket.SOCK_STREAM, 0))
attempt("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
attempt("write_sysctl", lambda: open("/proc/sys/kernel/hostname", "w"))
groups = "/sys/fs/cgroup/pids" if os.path.isdir("/sys/fs/cgroup/pids") else "/sys/fs/cgroup"
attempt("write_cgroup", lambda: os.mkdir(groups + "/steelyard-probe"))
attempt("write_trigger", lambda: open("/proc/sysrq-trigger", "w"))
attempt("device", lambda: os.mknod("/tmp/.steelyard-probe", 0o60600, os.makedev(8, 0)))
found["interfaces"] = sorted(name for _, name in socket.if_nameindex())
found["processes"] = sum(name.isdigit() for name in os.listdir("/proc"))
found["pids_limit"] = "max"
for path in ("/sys/fs/cgroup/pids.max", "/sys/fs/cgroup/pids/pids.max"):
    try:
        found["pids_limit"] = open(path).read().strip()
    except OSError:
        pass
print(json.dumps(found))
"""

_REFUSED: Final = frozenset({"EPERM", "EACCES", "ENOENT", "EROFS", "ENOSYS", "ENODEV"})
_ATTEMPTS: Final = (
    "remount", "mount", "unshare", "raw", "write_sysctl", "write_cgroup", "write_trigger",
    "device",
)  # fmt: skip
_NUMBERS: Final[Mapping[str, int]] = {
    "CHOWN": 0, "DAC_OVERRIDE": 1, "FOWNER": 3, "FSETID": 4, "KILL": 5, "SETGID": 6, "SETUID": 7,
    "NET_BIND_SERVICE": 10,
}  # fmt: skip
"""The kernel's `uapi/linux/capability.h`."""
_MOST_PROCESSES: Final = 20
"""More than a fresh container has, far less than a host."""


def weaknesses(output: bytes, *, network_open: bool) -> list[str]:
    """Judge what the probe printed; a list of what is not tight, empty where all is.

    Pure. Anything that cannot be read counts as a weakness.
    """
    try:
        return _judge(json.loads(output), network_open, CAPABILITIES)
    except (ValueError, KeyError, TypeError) as error:
        return [f"the probe said nothing that can be read ({type(error).__name__}: {error})"]


def _judge(found: Mapping[str, Any], network_open: bool, allowed: Collection[str]) -> list[str]:
    held = sum(1 << _NUMBERS[name] for name in allowed)
    weak = [
        f"{name} is {found[name]:#x}, more than {held:#x}"
        for name in ("CapEff", "CapPrm", "CapBnd", "CapInh", "CapAmb")
        if found[name] & ~held
    ]
    if found["NoNewPrivs"] != "1":
        weak.append("new privileges can be gained")
    if found["Seccomp"] != "2":
        weak.append("no system-call filter is loaded")
    weak += [
        f"{name} was answered {found[name]}, not refused"
        for name in _ATTEMPTS
        if found[name] not in _REFUSED
    ]
    weak += [
        f"a socket of the family {name} was answered {found[name]}"
        for name in ("vsock", "packet", "alg")
        if found[name] != "EAFNOSUPPORT"
    ]
    if not network_open and found["interfaces"] != ["lo"]:
        weak.append(f"network interfaces are visible: {', '.join(found['interfaces'])}")
    if found["processes"] > _MOST_PROCESSES:
        weak.append("processes of others are visible: no process namespace of its own")
    if not str(found["pids_limit"]).isdigit():
        weak.append("the number of processes is not held")
    return weak
