"""What is destroyed outside of the workspace: folders of the system, homes, devices, processes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from steelyard.components.scanner import FindingSeverity
from steelyard.scanners.acts import Command, How, Touch, words
from steelyard.scanners.reporting import Hit
from steelyard.scanners.shell.paths import resolved

HIGH, MEDIUM = FindingSeverity.HIGH, FindingSeverity.MEDIUM

_TOP: Final = words(
    "/ /bin /boot /dev /etc /home /lib /lib32 /lib64 /libx32 /media /mnt /opt /proc /root "
    "/run /sbin /srv /sys /usr /var ~"
)
_BELOW: Final = re.compile(
    r"^/usr/(?:bin|sbin|lib|lib64|libexec|share|local|include|src)$"
    r"|^/var/(?:lib|log|run|mail|spool|www|backups)$"
    r"|^/var/lib/(?:dpkg|docker|postgresql|mysql|containerd|rpm|pacman|systemd|mongodb|redis)(?:/|$)"
    r"|^/home/[^/]+$|^/Users/[^/]*$|^/(?:System|Library|Applications)(?:/|$)"
    r"|^/etc/(?:ssl|ssh|pam\.d|systemd|apt|security|sudoers\.d)$"
    r"|^/usr/lib/(?:x86_64-linux-gnu|python3(?:\.\d+)?|aarch64-linux-gnu)$"
    r"|^~/\.(?:ssh|gnupg|aws|kube|config|gcloud|azure|password-store|local)$"
)
_SHARED: Final = frozenset({"/mnt", "/media", "/opt", "/srv", "/run", "/home"})
_CRITICAL: Final = re.compile(
    r"^/etc/(?:passwd|shadow|group|gshadow|sudoers|fstab|hosts|resolv\.conf|ld\.so\.(?:conf|cache)|"
    r"ssh/.*|pam\.d/.*)$|^~/\.(?:ssh|gnupg|aws|kube)/|^/boot/|^/(?:bin|sbin|lib|lib64)/[^/]+$"
)
_DEVICE: Final = re.compile(
    r"^/dev/(?:sd[a-z]|hd[a-z]|vd[a-z]|xvd[a-z]|nvme\d|mmcblk\d|disk\d|dm-\d)"
)
_OPEN_MODE: Final = re.compile(
    r"^[0-7]?[0-7]?[0-7]?[2367]$|(?:^|,)[ugo]*[oa][ugoa]*[+=][rxXst]*w|^\+[rx]*w"
)
_SYSTEM_PROGRAMS: Final = frozenset(
    {"sshd", "systemd", "dockerd", "containerd", "init", "cron", "crond", "dbus-daemon", "kubelet",
     "supervisord", "tini", "dumb-init", "rsyslogd", "auditd"}
)  # fmt: skip
_SERVICES: Final = _SYSTEM_PROGRAMS | {"docker", "ssh", "networking", "systemd-journald"}
_LOOKED_UP: Final = re.compile(
    r"(?:pgrep|pidof)[^)]*\b(?:sshd|systemd|dockerd|containerd|init|cron|tini|supervisord)\b|"
    r"\bps\s+-?(?:e|A|ax|aux)\b(?![^)]*(?:grep|awk))"
)
_ASKS: Final = frozenset({"--help", "--version"})


def is_protected(path: str) -> bool:
    """True for folders that no task is about: the system's own, homes, what stands above."""
    base = re.sub(r"/(?:\*|\.\*|\{,\.\}\*|\.\[!\.\]\*)$", "", path) or "/"
    if path in ("/*", "/.*"):
        base = "/"
    if base in _TOP or _BELOW.match(base):
        return True
    parts = base.split("/")
    return bool(parts) and all(one == ".." for one in parts)


def _is_wide(path: str) -> bool:
    """True for a pattern that matches much directly below a protected folder."""
    folder, _, name = path.rpartition("/")
    return "*" in name and (folder in _TOP or (not folder and path.startswith("/")))


def destruction_by_file(touch: Touch) -> Iterator[Hit]:
    """Judge one file or folder that was touched."""
    path, how = touch.path, touch.how
    if how is How.DELETE:
        alone = _CRITICAL.match(path) or _DEVICE.match(path)
        if is_protected(path) or _is_wide(path) or alone:
            verb = "moves" if touch.by == "mv" else "deletes"
            yield Hit("destructive-command", HIGH, f"It {verb} {path[:120]}, outside of the "
                      "workspace.", touch.text, 0.95)  # fmt: skip
    elif how in (How.WRITE, How.APPEND) and _DEVICE.match(path):
        yield Hit("destructive-command", HIGH, f"It overwrites the device {path}.", touch.text)
    elif how is How.WRITE and touch.content == "" and _CRITICAL.match(path):
        yield Hit("destructive-command", HIGH, f"It empties {path}.", touch.text)
    elif how is How.MODE:
        yield from _mode(touch)


def _mode(touch: Touch) -> Iterator[Hit]:
    path, mode = touch.path, touch.content or ""
    is_owner = touch.by in ("chown", "chgrp")
    is_open = touch.by not in ("chown", "chgrp", "setcap", "chattr") and bool(
        _OPEN_MODE.search(mode)
    )
    if touch.is_recursive and is_protected(path) and (is_open or is_owner):
        yield Hit("permissions-opened", HIGH, f"It changes the rights of all below {path}.",
                  touch.text)  # fmt: skip
    elif (is_open and _CRITICAL.match(path)) or (is_open and path in _TOP and path not in _SHARED):
        yield Hit("permissions-opened", HIGH, f"It lets everyone write {path}.", touch.text)


def destruction_by_command(command: Command) -> Iterator[Hit]:
    """Judge one command."""
    name, args = command.name, command.args
    if not _ASKS.isdisjoint(args):
        return
    if (
        name.startswith("mkfs") or name in ("wipefs", "blkdiscard", "sgdisk", "parted", "fdisk")
    ) and (any(_DEVICE.match(one) for one in args)):
        yield Hit("destructive-command", HIGH, "It wipes a disk.", command.text)
    elif name == ":" and command.upstream is not None and command.upstream.name == ":":
        yield Hit("destructive-command", HIGH, "It is a fork bomb.", command.text)
    elif name in ("kill", "pkill", "killall", "skill"):
        yield from _kills(command)
    elif name in ("shutdown", "reboot", "halt", "poweroff") or (
        name in ("init", "telinit") and args[:1] in (("0",), ("6",))
    ):
        yield Hit("foreign-process-killed", HIGH, "It stops the machine.", command.text)
    elif name == "rsync" and any(one.startswith("--delete") for one in args):
        target = command.operands[-1] if command.operands else ""
        if is_protected(resolved(target, command.cwd)):
            yield Hit("destructive-command", HIGH, f"It empties {target[:120]}.", command.text)
    elif name == "git" and command.operands[:1] == ["clean"] and is_protected(command.cwd):
        yield Hit(
            "destructive-command", HIGH, f"It deletes what lies in {command.cwd}.", command.text
        )
    elif name == "killall5":
        yield Hit("foreign-process-killed", HIGH, "It kills everything.", command.text)
    elif name == "service" and args[1:2] == ("stop",) and args[0] in _SERVICES:
        yield Hit("foreign-process-killed", MEDIUM, "It stops services of the system.",
                  command.text)  # fmt: skip
    elif name == "systemctl" and args and args[0] in ("stop", "kill", "disable", "mask"):
        units = {one.removesuffix(".service") for one in command.operands[1:]}
        if units & _SERVICES:
            yield Hit("foreign-process-killed", MEDIUM, "It stops services of the system.",
                      command.text)  # fmt: skip


def _kills(command: Command) -> Iterator[Hit]:
    args, name = command.args, command.name
    if any(one in ("-0", "-l", "-L", "--list") for one in args):
        return
    if name == "kill":
        targets = _targets(args)
        if any(one in ("1", "-1", "$PPID") or _LOOKED_UP.search(one) for one in targets):
            yield Hit("foreign-process-killed", HIGH, "It kills what it did not start.",
                      command.text)  # fmt: skip
        return
    of_user = command.option("-u", "-U", "--euid", "--uid")
    names = set(command.operands)
    everything = names & {".", ".*", "", "^", "[a-z]"}
    if of_user in ("root", "0") or everything or names & _SYSTEM_PROGRAMS:
        yield Hit("foreign-process-killed", HIGH, "It kills programs that are not its own.",
                  command.text, 0.85)  # fmt: skip


def _targets(args: tuple[str, ...]) -> list[str]:
    """Give what `kill` is aimed at; the first option is the signal, `-1` alone after it is all."""
    rest = list(args)
    if rest and rest[0].startswith("-") and len(rest) > 1:
        rest = rest[2:] if rest[0] in ("-s", "-n", "--signal") else rest[1:]
    return [one for one in rest if one != "--"]
