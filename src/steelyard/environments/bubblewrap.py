"""Put together a bubblewrap command, and say what a machine lacks to run one.

`docs/design/sandbox.md` says, flag by flag, what each one closes.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from steelyard.components.catalog import reference_folders
from steelyard.components.environment import Mount
from steelyard.environments import seccomp

INSIDE_UID: Final = 65534
"""Whom programs think they are; nobody."""
DROP_TO_ID: Final = 65534
"""Whom they are outside where root calls: else the mapped user would be root for files."""
WORKDIR: Final = "/workspace"
TMP: Final = "/tmp"  # noqa: S108 — a folder of the session, not of the host

_PROBE_WAIT_S: Final = 20.0
_INSTALL: Final = (
    "install bubblewrap 0.8 or newer: `apt-get install bubblewrap` (Debian, Ubuntu), "
    "`dnf install bubblewrap` (Fedora), `pacman -S bubblewrap` (Arch)"
)


@dataclass(frozen=True, slots=True)
class Tools:
    """The programs that start a sandbox on this machine."""

    bwrap: str
    setpriv: str | None
    """Where this process is root and can become another user; None for an ordinary user."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What one program in the sandbox sees."""

    workdir: Path
    tmp: Path
    etc: Path
    python: Path
    scratch_bytes: int
    network_open: bool
    mounts: tuple[Mount, ...] = ()


def drops_privileges() -> bool:
    """True where this process is root and user `DROP_TO_ID` exists in its user namespace."""
    if os.geteuid() != 0:
        return False
    for file in ("/proc/self/uid_map", "/proc/self/gid_map"):
        spans = [line.split() for line in Path(file).read_text().splitlines()]
        if not any(int(a) <= DROP_TO_ID < int(a) + int(count) for a, _, count in spans):
            return False
    return True


@cache
def find_tools() -> Tools | str:
    """Find the programs; else the reason and the remedy. Blocking."""
    if sys.platform != "linux":
        return "the sandbox needs Linux; on macOS and Windows use a container engine"
    if not seccomp.supports():
        return (
            f"the sandbox has no system-call filter for {platform.machine()}; "
            "it runs on x86-64 and arm64: use a container engine here"
        )
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        return f"bubblewrap (`bwrap`) is not installed; {_INSTALL}"
    shown = subprocess.run(  # noqa: S603 — a fixed argument vector
        [bwrap, "--help"], capture_output=True, text=True, timeout=_PROBE_WAIT_S, check=False
    )
    text = shown.stdout + shown.stderr
    if "--disable-userns" not in text or "--json-status-fd" not in text:
        return f"{bwrap} is too old (it knows no --disable-userns); {_INSTALL}"
    setpriv = None
    if drops_privileges():
        setpriv = shutil.which("setpriv")
        if setpriv is None:
            return (
                "root needs `setpriv` to start the sandbox as an unprivileged user; "
                "install util-linux, or run as an ordinary user"
            )
    return Tools(bwrap, setpriv)


@cache
def unavailable() -> str | None:
    """Say why no sandbox can be started here, and the remedy; None where one was. Blocking."""
    limit = _number("/proc/sys/user/max_user_namespaces")
    if limit == 0:
        return (
            "user namespaces are off (user.max_user_namespaces is 0); as root: "
            "`sysctl -w user.max_user_namespaces=15000`"
        )
    tools = find_tools()
    if isinstance(tools, str):
        return tools
    argv = [*prefix(tools), *_walls(network_open=False), "--ro-bind", "/", "/", "--", "/bin/true"]
    try:
        tried = subprocess.run(  # noqa: S603 — a fixed argument vector
            argv,
            capture_output=True,
            text=True,
            timeout=_PROBE_WAIT_S,
            check=False,
            env={},
            cwd="/",
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap cannot be run: {error}"
    if tried.returncode == 0:
        return None
    said = tried.stderr.strip()[:300]
    return f"bubblewrap starts no sandbox here ({said}); {_remedy()}"


def _remedy() -> str:
    if _number("/proc/sys/kernel/unprivileged_userns_clone") == 0:
        return "user namespaces are off: `sysctl -w kernel.unprivileged_userns_clone=1` as root"
    if _number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == 1:
        return (
            "AppArmor restricts user namespaces (Ubuntu 24.04): install a profile that grants "
            "`userns` to bwrap (package apparmor-profiles, bwrap-userns-restrict), or as root "
            "`sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`"
        )
    if Path("/.dockerenv").exists() or Path("/run/.containerenv").exists():
        return (
            "this is a container: start it with `--security-opt seccomp=unconfined "
            "--security-opt systempaths=unconfined`, or run outside of one"
        )
    return "allow unprivileged user namespaces on this machine (see `sysctl user`)"


def _number(path: str) -> int | None:
    try:
        return int(Path(path).read_text())
    except (OSError, ValueError):
        return None


def prefix(tools: Tools) -> list[str]:
    """Give the words before bubblewrap's own options."""
    if tools.setpriv is None:
        return [tools.bwrap]
    return [
        tools.setpriv,
        f"--reuid={DROP_TO_ID}",
        f"--regid={DROP_TO_ID}",
        "--clear-groups",
        "--inh-caps=-all",
        "--",
        tools.bwrap,
    ]


def _walls(*, network_open: bool) -> list[str]:
    return [
        "--unshare-all",
        *(["--share-net"] if network_open else []),
        "--unshare-user",  # --unshare-all alone only tries, and root inside is then root
        *("--uid", str(INSIDE_UID), "--gid", str(INSIDE_UID)),
        *("--cap-drop", "ALL"),
        "--disable-userns",
        "--die-with-parent",
        "--new-session",
        "--clearenv",
        *("--hostname", "sandbox"),
    ]


def options(
    layout: Layout,
    variables: Mapping[str, str],
    *,
    chdir: str,
    seccomp_fd: int,
    status_fd: int,
    block_fd: int,
) -> bytes:
    """Write bubblewrap's options in the form of `--args FD`: no other user of the host sees them.

    Args:
        layout: what is bound where.
        variables: all that the program's environment holds.
        chdir: an absolute folder inside.
        seccomp_fd: the filter is read from it.
        status_fd: told the id of the sandbox's first process, later its exit code.
        block_fd: the program starts when something can be read from it.

    Raises:
        ValueError: a variable or folder that cannot be passed on. A NUL byte would end its word
            and let the rest of a hostile value be read as bubblewrap's own options.
    """
    words = _walls(network_open=layout.network_open)
    for name, value in variables.items():
        words += ["--setenv", name, value]
    words += _system()
    words += _etc(layout)
    words += ["--proc", "/proc", "--dev", "/dev"]
    words += ["--size", str(layout.scratch_bytes), "--perms", "1777", "--tmpfs", "/dev/shm"]  # noqa: S108
    words += ["--remount-ro", "/dev"]
    words += ["--bind", str(layout.tmp), TMP, "--bind", str(layout.workdir), WORKDIR]
    words += _python(layout.python)  # after /tmp: it may lie below
    for mount in layout.mounts:
        words += ["--ro-bind", str(mount.source), mount.target]
    words += _covered(layout)
    words += ["--remount-ro", "/"]  # last: bubblewrap's own root is a tmpfs that can be written
    words += ["--chdir", chdir]
    words += ["--seccomp", str(seccomp_fd), "--json-status-fd", str(status_fd)]
    words += ["--block-fd", str(block_fd)]
    encoded = [os.fsencode(word) for word in words]
    if any(b"\0" in word for word in encoded):
        raise ValueError("a NUL byte in a variable or folder")
    return b"\0".join(encoded) + b"\0"


def _system() -> list[str]:
    words = ["--ro-bind", "/usr", "/usr"]
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        folder = Path("/", name)
        if folder.is_symlink():
            words += ["--symlink", str(folder.readlink()), str(folder)]
        elif folder.is_dir():
            words += ["--ro-bind", str(folder), str(folder)]
    return words


def _python(python: Path) -> list[str]:
    if Path("/usr") in (python, *python.parents):
        return []
    return ["--ro-bind", str(python), str(python)]


def _covered(layout: Layout) -> list[str]:
    """Lay an empty folder over our own packs and task data, where a bound folder holds them.

    Installed into the system's Python, references and hidden files lie below `/usr`: an agent
    that looks around would find them.
    """
    bound = {str(path): path for path in (Path("/usr"), layout.python)}
    bound |= {mount.target: mount.source for mount in layout.mounts}
    covered = {
        str(Path(shown) / folder.relative_to(source.resolve()))
        for folder in _reference_folders()
        for shown, source in bound.items()
        if folder.is_relative_to(source.resolve())
    }
    words = []
    for inside in sorted(covered):
        words += ["--size", "4096", "--perms", "0555", "--tmpfs", inside, "--remount-ro", inside]
    return words


@cache
def _reference_folders() -> tuple[Path, ...]:
    return tuple(folder.resolve() for folder in reference_folders())


def _etc(layout: Layout) -> list[str]:
    words = []
    for file in sorted(layout.etc.iterdir()):
        words += ["--ro-bind", str(file), f"/etc/{file.name}"]
    shared = ["ld.so.cache", "alternatives"]
    if layout.network_open:
        shared += ["resolv.conf", "ssl/certs", "ca-certificates", "pki", "services", "protocols"]
    for name in shared:
        words += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    return words


ETC_FILES: Final[Mapping[str, str]] = {
    "passwd": f"sandbox:x:{INSIDE_UID}:{INSIDE_UID}:sandbox:{WORKDIR}:/bin/sh\n",
    "group": f"sandbox:x:{INSIDE_UID}:\n",
    "hosts": "127.0.0.1 localhost sandbox\n::1 localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}
"""The sandbox's own `/etc`."""

_NOT_STARTED = re.compile(rb"^bwrap: execvp [^\n]*: (?P<why>[^:\n]+)\n?$")


def refusal_of_program(stderr: bytes) -> tuple[int, str] | None:
    """Read bubblewrap's last words where it could not start the program: exit code, reason.

    Only to be asked where bubblewrap reported no exit code: nothing but itself has then written.
    None where the sandbox itself failed.
    """
    last = stderr.strip().rsplit(b"\n", 1)[-1]
    if found := _NOT_STARTED.match(last):
        why = found["why"].decode("utf-8", "replace")
        return (127 if "No such file" in why else 126), why
    if last.startswith(b"bwrap: Can't chdir"):
        return 127, "no such folder"
    return None


def search_path(python: Path, folders: Sequence[str] = ()) -> str:
    """Give the search path inside: the Python that scores first."""
    return ":".join(
        [*folders, str(python / "bin"), "/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin"]
    )
