"""Try the sandbox's walls from the inside, before anyone is told that it is tight."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

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
found["uid"] = os.getuid()
remount, bind = 32, 4096
found["remount"] = error_of(libc.mount(b"none", b"/usr", None, remount | bind, None))
found["mount"] = error_of(libc.mount(b"none", b"/tmp", b"tmpfs", 0, None))
found["unshare"] = error_of(libc.unshare(0x10000000))
attempt("vsock", lambda: socket.socket(40, socket.SOCK_STREAM, 0))
attempt("write_usr", lambda: open("/usr/steelyard-probe", "w"))
attempt("write_root", lambda: open("/steelyard-probe", "w"))
attempt("write_dev", lambda: open("/dev/steelyard-probe", "w"))
attempt("write_sysctl", lambda: open("/proc/sys/kernel/hostname", "w"))
attempt("read_canary", lambda: open(sys.argv[1]))
attempt("read_shadow", lambda: open("/etc/shadow"))
found["interfaces"] = sorted(name for _, name in socket.if_nameindex())
found["first_process"] = open("/proc/1/comm").read().strip()
found["descriptors"] = []
for name in os.listdir("/proc/self/fd"):
    try:
        if int(name) > 2:
            found["descriptors"].append(os.readlink("/proc/self/fd/" + name))
    except OSError:
        pass  # the listing's own
found["root"] = sorted(os.listdir("/"))
with open("/workspace/.probe", "w") as file:
    file.write("")
print(json.dumps(found))
"""
"""Run with the path of a file of the host that nothing inside may see."""

REFUSED: Final = frozenset({"EPERM", "EACCES", "ENOENT", "EROFS", "ENOSYS", "ENOSPC"})
_REFUSED_ATTEMPTS: Final = (
    "remount",
    "mount",
    "unshare",
    "write_usr",
    "write_root",
    "write_dev",
    "write_sysctl",
    "read_canary",
    "read_shadow",
)
_ROOT: Final = frozenset(
    {"bin", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "sbin", "tmp", "usr"}
    | {"workspace"}
)


def weaknesses(output: bytes, *, network_open: bool, python: Path) -> list[str]:
    """Judge what the probe printed; a list of what is not tight, empty where all is.

    Pure. Anything that cannot be read counts as a weakness.
    """
    try:
        found: Mapping[str, Any] = json.loads(output)
        return _judge(found, network_open, python)
    except (ValueError, KeyError, TypeError) as error:
        return [f"the probe said nothing that can be read ({type(error).__name__}: {error})"]


def walls_that_gave(
    found: Mapping[str, Any], attempts: Iterable[str], refused: Collection[str]
) -> list[str]:
    """Say what a probe within namespaces could do that nothing in them may; mostly nothing.

    Args:
        found: what the probe said: capabilities, `NoNewPrivs`, `Seccomp`, `uid`, `first_process`,
            and the answer to each attempt.
        attempts: what it tried.
        refused: the answers that are refusals.
    """
    weak = [
        f"{name} is {found[name]:#x}, not 0"
        for name in ("CapEff", "CapPrm", "CapBnd", "CapInh", "CapAmb")
        if found[name]
    ]
    if found["NoNewPrivs"] != "1":
        weak.append("new privileges can be gained")
    if found["Seccomp"] != "2":
        weak.append("no system-call filter is loaded")
    if found["uid"] == 0:
        weak.append("programs are root inside")
    weak += [
        f"{name} was answered {found[name]}, not refused"
        for name in attempts
        if found[name] not in refused
    ]
    if found["first_process"] != "bwrap":
        weak.append(f"process 1 is {found['first_process']}: no process namespace of its own")
    return weak


def _judge(found: Mapping[str, Any], network_open: bool, python: Path) -> list[str]:
    weak = walls_that_gave(found, _REFUSED_ATTEMPTS, REFUSED)
    if found["vsock"] != "EAFNOSUPPORT":
        weak.append(f"a vsock socket was answered {found['vsock']}")
    if not network_open and found["interfaces"] != ["lo"]:
        weak.append(f"network interfaces are visible: {', '.join(found['interfaces'])}")
    if found["descriptors"]:
        weak.append(f"descriptors of ours leak in: {', '.join(found['descriptors'])}")
    unknown = set(found["root"]) - _ROOT - {python.parts[1]}
    if unknown:
        weak.append(f"the root holds {', '.join(sorted(unknown))}")
    return weak
