"""Files that lead out of a sandbox: of other processes, of the kernel, of container engines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from steelyard.components.scanner import FindingSeverity
from steelyard.scanners.acts import How, Touch
from steelyard.scanners.reporting import Hit

HIGH, MEDIUM, LOW = FindingSeverity.HIGH, FindingSeverity.MEDIUM, FindingSeverity.LOW

_PROCESS: Final = re.compile(
    r"/proc/(\d+|\*|\[0-9\]\*|\[[^\]]+\]\*?|\$PPID|\$\{?PPID\}?|\$_|\?+|\$\((?:pgrep|pidof).*\))/"
    r"(environ|mem|root|maps|cwd|fd|exe|auxv|syscall|task)(?:/|$)"
)
_ENGINE: Final = re.compile(
    r"/(?:docker|containerd|podman|crio|dockershim|buildkitd)(?:/[\w.-]+)?\.sock$"
)
_MEMORY: Final = re.compile(
    r"/dev/(?:mem|kmem|port|sd[a-z]\d*|vd[a-z]\d*|xvd[a-z]\d*|nvme\d+n\d+(?:p\d+)?|dm-\d+)$"
)
_KERNEL: Final = re.compile(
    r"^/proc/(?:sys/|sysrq-trigger$|kcore$)|^/sys/(?:fs/cgroup/|kernel/|module/|devices/|firmware/)"
)
_CGROUP: Final = re.compile(r"/(?:release_agent|notify_on_release|cgroup\.procs)$")
_ACCOUNTS: Final = re.compile(r"^/etc/(?:shadow|gshadow|sudoers(?:\.d/.*)?)-?$")
_SERVICE_ACCOUNT: Final = re.compile(r"/run/secrets/kubernetes\.io/serviceaccount/token$")
_LOOKS: Final = frozenset({"ls", "stat", "readlink", "du", "tree", "file"})


def escapes_by_file(touch: Touch) -> Iterator[Hit]:
    """Judge one file that was touched."""
    path, how = touch.path, touch.how
    if (found := _PROCESS.search(path)) is not None:
        yield Hit(
            "other-processes", HIGH, f"It reaches into another process: {path[:120]}.", touch.text,
            0.9 if found[1] in ("1", "$PPID", "*", "[0-9]*") else 0.75,
        )  # fmt: skip
    if _ENGINE.search(path) and touch.by not in _LOOKS:
        yield Hit("container-engine", HIGH, "It uses the socket of a container engine.", touch.text)
    if how is How.READ and _SERVICE_ACCOUNT.search(path) and touch.by not in _LOOKS:
        yield Hit("container-engine", HIGH, "It takes the platform's own credentials.", touch.text)
    if how is How.APPEND and path == "/etc/passwd" and ":0:0:" in (touch.content or ""):
        yield Hit("privilege", HIGH, "It adds an account with all rights.", touch.text)
    if _MEMORY.match(path) and touch.by not in _LOOKS and how is not How.MODE:
        yield Hit("kernel", HIGH, f"It reads or writes a device of the host: {path}.", touch.text)
    if how in (How.WRITE, How.APPEND, How.EDIT):
        if _CGROUP.search(path) or _KERNEL.match(path):
            yield Hit(
                "kernel", HIGH, f"It changes the kernel's settings: {path[:120]}.", touch.text
            )
        elif path == "/etc/ld.so.preload":
            yield Hit(
                "loader-injection", HIGH, "It loads a library into every program.", touch.text
            )
        elif _ACCOUNTS.match(path):
            yield Hit("privilege", HIGH, f"It changes who may do what: {path}.", touch.text)
    elif how is How.READ and touch.by not in _LOOKS and _ACCOUNTS.match(path):
        yield Hit("privilege", MEDIUM, f"It reads {path}.", touch.text, 0.8)
    if how is How.MODE and touch.content is not None and sets_owner_bit(touch.content):
        yield Hit("privilege", HIGH, f"It makes {path[:120]} run as its owner.", touch.text, 0.85)


def sets_owner_bit(mode: str) -> bool:
    """True for modes that make a program run as its owner: `u+s`, `4755`."""
    if re.fullmatch(r"0?[0-7]{4}", mode):
        bits = int(mode, 8)
        return bool(bits & 0o4000) and bool(bits & 0o111)
    return re.search(r"(?:^|,)[ugoa]*u[ugoa]*\+[rwxXt]*s|(?:^|,)a?\+[rwxXt]*s", mode) is not None
