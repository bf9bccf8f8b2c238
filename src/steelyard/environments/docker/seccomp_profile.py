"""The system-call filter of containers, as the engine takes it: allow all but what has no business.

The engines' own filters differ by version (AF_VSOCK passes the older ones) and are replaced by this
one. What they refuse for want of a capability stays refused by the kernel, as we drop it.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any, Final

import orjson

from steelyard.environments.seccomp import (
    AF_INET,
    AF_INET6,
    AF_NETLINK,
    AF_UNIX,
    EAFNOSUPPORT,
    ENOSYS,
    EPERM,
)

_ABSENT: Final = ("io_uring_setup", "io_uring_enter", "io_uring_register", "clone3")
"""Answered as by a kernel without them, so that programs fall back; `clone3` hides its flags."""
_REFUSED: Final = (
    "acct", "add_key", "bpf", "create_module", "delete_module", "fanotify_init", "finit_module",
    "fsconfig", "fsmount", "fsopen", "fspick", "get_kernel_syms", "init_module", "ioperm", "iopl",
    "kcmp", "kexec_file_load", "kexec_load", "keyctl", "lookup_dcookie", "mount", "mount_setattr",
    "move_mount", "nfsservctl", "open_by_handle_at", "open_tree", "perf_event_open", "pivot_root",
    "process_madvise", "query_module", "quotactl", "quotactl_fd", "reboot", "request_key", "setns",
    "settimeofday", "stime", "swapoff", "swapon", "syslog", "umount", "umount2", "unshare",
    "uselib", "userfaultfd", "ustat", "vhangup", "vm86", "vm86old",
)  # fmt: skip
_NEW_NAMESPACES: Final = 0x7E020000 | 0x00000080
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET; NEWTIME."""


def profile() -> dict[str, Any]:
    """Give the filter in the form of the OCI runtime specification, as engines read it."""
    calls: list[dict[str, Any]] = [
        {"names": list(_ABSENT), "action": "SCMP_ACT_ERRNO", "errnoRet": ENOSYS},
        {"names": list(_REFUSED), "action": "SCMP_ACT_ERRNO", "errnoRet": EPERM},
    ]
    # A flag is refused each by itself: a masked comparison cannot say "any of these bits".
    for bit in range(32):
        flag = 1 << bit
        if flag & _NEW_NAMESPACES & ~0xFF:
            args = [{"index": 0, "value": flag, "valueTwo": flag, "op": "SCMP_CMP_MASKED_EQ"}]
            calls.append(
                {"names": ["clone"], "action": "SCMP_ACT_ERRNO", "errnoRet": EPERM, "args": args}
            )
    allowed = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK}
    refused = [("SCMP_CMP_EQ", family) for family in range(max(allowed)) if family not in allowed]
    for comparison, family in [*refused, ("SCMP_CMP_GT", max(allowed))]:
        args = [{"index": 0, "value": family, "valueTwo": 0, "op": comparison}]
        calls.append(
            {
                "names": ["socket", "socketpair"],
                "action": "SCMP_ACT_ERRNO",
                "errnoRet": EAFNOSUPPORT,
                "args": args,
            }
        )
    machine = os.uname().machine
    architecture = {"x86_64": "SCMP_ARCH_X86_64", "aarch64": "SCMP_ARCH_AARCH64"}.get(machine)
    return {
        "defaultAction": "SCMP_ACT_ALLOW",
        # Named alone: calls of a foreign architecture would carry other numbers.
        **({"architectures": [architecture]} if architecture else {}),
        "syscalls": calls,
    }


def profile_text() -> str:
    """Give the filter as JSON."""
    return orjson.dumps(profile(), option=orjson.OPT_SORT_KEYS).decode()


def profile_file() -> Path:
    """Give a file of this machine that holds the filter, written once. Blocking.

    Podman takes a path where Docker takes the text. Named by content and never changed, so that
    nobody has to remove it.

    Raises:
        OSError: it cannot be written.
    """
    import platformdirs

    text = profile_text()
    folder = Path(platformdirs.user_cache_dir("steelyard", appauthor=False))
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / f"seccomp-{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"
    if not path.exists() or path.read_text() != text:
        unfinished = path.with_suffix(f".{os.getpid()}")
        unfinished.write_text(text)
        unfinished.replace(path)
    return path
