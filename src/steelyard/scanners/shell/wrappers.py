"""Programs that run other programs: what they run, and how it is to be read."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from steelyard.scanners.acts import Command
from steelyard.scanners.shell.paths import resolved
from steelyard.scanners.shell.printing import is_decoder

SHELLS: Final = frozenset({"sh", "bash", "zsh", "dash", "ksh", "ash", "busybox-sh", "rbash"})
_ASSIGNED: Final = re.compile(r"[A-Za-z_]\w*=")


@dataclass(frozen=True, slots=True)
class Inner:
    """What a command wraps: words of other commands, or a script."""

    via: tuple[str, ...]
    argvs: tuple[list[str], ...] = ()
    script: str | None = None
    env: tuple[tuple[str, str], ...] = ()
    shares_state: bool = False
    """True where its folder and variables outlast it: `eval`."""
    takes_stdin: bool = False
    """True where the wrapper, not what it wraps, reads the input."""
    cwd: str | None = None


_VALUED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "sudo": "ugpCcDhrtTU", "doas": "uC", "nice": "n", "ionice": "cnp", "timeout": "sk",
        "stdbuf": "ioe", "nohup": "", "setsid": "", "time": "fo", "command": "", "builtin": "",
        "exec": "a", "unbuffer": "", "strace": "eopsPu", "ltrace": "eopsu", "watch": "nd",
        "chroot": "", "unshare": "", "flock": "wE", "chronic": "", "catchsegv": "", "proot": "rbw",
        "setarch": "", "taskset": "", "caffeinate": "", "firejail": "", "script": "",
        "faketime": "f",
    }
)  # fmt: skip
"""Wrappers whose words after their options are a command; the letters take a value."""
_SKIPPED: Final[Mapping[str, int]] = MappingProxyType(
    {"timeout": 1, "chroot": 1, "flock": 1, "taskset": 1, "setarch": 0, "faketime": 1}
)
"""How many operands stand before the command."""


def unwrapped(command: Command) -> Inner | None:
    """Say what a command runs in its turn; None where it is no wrapper."""
    name = command.name
    special = _SPECIAL.get(name)
    if special is not None:
        return special(command)
    if name in SHELLS:
        return _shell(command)
    if name in _VALUED:
        argv = _after_options(list(command.args), _VALUED[name], _SKIPPED.get(name, 0))
        return Inner((name,), (argv,)) if argv else None
    return None


def _after_options(args: list[str], valued: str, skipped: int) -> list[str]:
    while args and args[0].startswith("-") and args[0] != "-":
        option = args.pop(0)
        if option == "--":
            break
        if not option.startswith("--") and option[-1] in valued and len(option) == 2 and args:
            args.pop(0)
    while args and _ASSIGNED.match(args[0]):
        args.pop(0)
    return args[skipped:]


def _shell(command: Command) -> Inner | None:
    args = list(command.args)
    while args and args[0][:1] in "-+" and args[0] not in ("-", ""):
        option = args.pop(0)
        if option in ("-o", "+o", "-O", "--rcfile", "--init-file") and args:
            args.pop(0)
        elif not option.startswith("--") and "c" in option:
            while args and args[0].startswith("-"):
                args.pop(0)
            return Inner((command.name,), script=args[0], env=command.env) if args else None
    if (not args or args[0] in ("-", "/dev/stdin")) and command.stdin is not None:
        source = command.upstream
        via = ("base64",) if source is not None and is_decoder(source) else (command.name,)
        return Inner(via, script=command.stdin, env=command.env)
    return None


def _env(command: Command) -> Inner | None:
    args, env = list(command.args), []
    while args:
        if args[0] in ("-u", "-C", "--unset", "--chdir"):
            args = args[2:]
        elif args[0] in ("-S", "--split-string") and len(args) > 1:
            return Inner(("env",), script=args[1])
        elif _ASSIGNED.match(args[0]):
            name, _, value = args.pop(0).partition("=")
            env.append((name, value))
        elif args[0].startswith("-"):
            args.pop(0)
        else:
            return Inner(("env",), (args,), env=tuple(env))
    return None


def _eval(command: Command) -> Inner | None:
    text = " ".join(command.args)
    return Inner(("eval",), script=text, shares_state=True) if text else None


def _xargs(command: Command) -> Inner | None:
    args = list(command.args)
    place: str | None = None
    while args and args[0].startswith("-"):
        option = args.pop(0)
        if option in ("-I", "-n", "-P", "-L", "-d", "-s", "-a", "-E") and args:
            value = args.pop(0)
            place = value if option == "-I" else place
        elif option.startswith("-I"):
            place = option[2:]
    if not args:
        return None
    fed = (command.stdin or "").split()[:50] or _found_by(command.upstream)
    if place:
        argvs = tuple([one.replace(place, item) for one in args] for item in fed[:12] or ["{}"])
    else:
        argvs = ([*args, *fed],)
    return Inner(("xargs",), argvs, takes_stdin=True)


def _found_by(upstream: Command | None) -> list[str]:
    """Give the folders that an upstream `find` or `ls` lists, as patterns."""
    if upstream is None:
        return []
    if upstream.name == "ls" and upstream.has("d", "--directory"):
        return upstream.operands
    return [_find_target(upstream)] if upstream.name == "find" else []


def _find_target(command: Command) -> str:
    folder = command.args[0] if command.args and not command.args[0].startswith("-") else "."
    pattern = command.option("-name", "-iname") or command.option("-path", "-wholename")
    if pattern is None:
        # Everything below, without the folder: `find x -mindepth 1 …`.
        return f"{folder.rstrip('/')}/*" if command.option("-mindepth") else folder
    return f"{folder.rstrip('/')}/{pattern.lstrip('*/') if '/' in pattern else pattern}"


def _find(command: Command) -> Inner | None:
    args = list(command.args)
    argvs = []
    target = _find_target(command)
    while True:
        place = next(
            (n for n, one in enumerate(args) if one in ("-exec", "-execdir", "-ok", "-okdir")), None
        )
        if place is None:
            break
        rest = args[place + 1 :]
        end = next((n for n, one in enumerate(rest) if one in (";", "+", "\\;")), len(rest))
        if rest[:end]:
            argvs.append([one.replace("{}", target) for one in rest[:end]])
        args = rest[end + 1 :]
    if "-delete" in command.args:
        argvs.append(["rm", "-r", target])
    return Inner(("find",), tuple(argvs)) if argvs else None


def _su(command: Command) -> Inner | None:
    script = command.option("-c", "--command")
    if script is not None:
        return Inner((command.name,), script=script)
    if command.name == "runuser":
        argv = _after_options(list(command.args), "ugsG", 0)
        return Inner(("runuser",), (argv,)) if argv else None
    return None


def _ssh(command: Command) -> Inner | None:
    argv = _after_options(list(command.args), "bcDEeFIiJLlmOopQRSWw", 1)
    return Inner(("ssh",), script=" ".join(argv), takes_stdin=True) if argv else None


def _container(command: Command) -> Inner | None:
    args = list(command.args)
    if not args or args[0] not in ("exec", "run"):
        return None
    argv = _after_options(args[1:], "euwvpl", 1)
    return Inner((command.name,), (argv,)) if argv else None


def _busybox(command: Command) -> Inner | None:
    return Inner(("busybox",), (list(command.args),)) if command.args else None


def _nsenter(command: Command) -> Inner | None:
    args = list(command.args)
    args = args[args.index("--") + 1 :] if "--" in args else _after_options(args, "tSGrw", 0)
    return Inner(("nsenter",), (args,)) if args else None


def _script(command: Command) -> Inner | None:
    script = command.option("-c", "--command")
    return Inner(("script",), script=script) if script is not None else None


def _git_dir(command: Command) -> Inner | None:
    """`git -C dir …` and `make -C dir …` run in another folder."""
    folder = command.option("-C")
    if folder is None or command.args[:1] != ("-C",):
        return None
    return Inner(("-C",), ([command.name, *command.args[2:]],), cwd=resolved(folder, command.cwd))


_SPECIAL: Final[Mapping[str, Callable[[Command], Inner | None]]] = MappingProxyType(
    {
        "env": _env, "eval": _eval, "xargs": _xargs, "parallel": _xargs, "find": _find, "su": _su,
        "runuser": _su, "ssh": _ssh, "docker": _container, "podman": _container,
        "busybox": _busybox, "nsenter": _nsenter, "script": _script, "git": _git_dir,
    }
)  # fmt: skip
