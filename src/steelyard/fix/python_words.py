"""Put our own program in front of a Python benchmark or check, and protect pytest's settings. Pure.

What is no Python, or is given as `-c`, runs as it stands: nothing then tells its own end from
somebody's `exit`, and the result says so.
"""

from __future__ import annotations

import posixpath
import re
import shlex
import sys
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from steelyard.fix.manifest import TreeManifest
from steelyard.fix.sealing import PathRules

_PYTHON: Final = re.compile(r"^(?:.*/)?python(?:3(?:\.\d+)?)?$")
_PLAIN: Final = re.compile(r"^-[bBdEIOPqRsSuvx]+$")
_VALUED: Final = frozenset({"-W", "-X", "--check-hash-based-pycs"})
_CONFIGS: Final = ("pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
PYTEST_NOTHING_PROVEN: Final = frozenset({2, 3, 4, 5})
"""Exit codes of pytest that say nothing of a test: interrupted, internal, usage, none collected."""


@dataclass(frozen=True, slots=True)
class PythonCommand:
    """A command that starts Python on a script or a module."""

    before: tuple[str, ...]
    """The interpreter and its options."""
    kind: str
    """`--` for a script, `-m` for a module."""
    rest: tuple[str, ...]

    def started_by(self, program: str, words: str) -> tuple[str, ...]:
        """Give the command with a program in front."""
        return (*self.before, program, words, self.kind, *self.rest)

    @property
    def is_pytest(self) -> bool:
        """True for `python -m pytest`."""
        return self.kind == "-m" and self.rest[0] == "pytest"


def python_command(argv: Sequence[str]) -> PythonCommand | None:
    """Read a command; None where it is no Python, or is one that nothing can be put in front of."""
    if not _PYTHON.match(argv[0]):
        return None
    at = 1
    while at < len(argv) and argv[at].startswith("-") and argv[at] != "-":
        if argv[at] == "-m" and at + 1 < len(argv):
            return PythonCommand(tuple(argv[:at]), "-m", tuple(argv[at + 1 :]))
        if argv[at] in _VALUED:
            at += 2
        elif _PLAIN.match(argv[at]) or (argv[at][:2] in _VALUED and len(argv[at]) > 2):
            at += 1
        else:
            return None
    if at >= len(argv) or argv[at] == "-":
        return None
    return PythonCommand(tuple(argv[:at]), "--", tuple(argv[at:]))


def own_modules(trees: Iterable[TreeManifest], rules: PathRules) -> list[str]:
    """List names of the standard library that a tree uses for modules nobody can edit."""
    names = sys.stdlib_module_names
    found = set()
    for tree in trees:
        for entry in tree.entries:
            if not entry.path.endswith(".py"):
                continue
            folder, _, file = entry.path.rpartition("/")
            name = folder.rpartition("/")[2] if file == "__init__.py" else file[:-3]
            if name in names and not rules.is_editable(entry.path):
                found.add(name)
    return sorted(found)


def is_pytest(argv: Sequence[str]) -> bool:
    """True where a command starts pytest by its own name or as a module."""
    command = python_command(argv)
    return PurePosixPath(argv[0]).name in ("pytest", "py.test") or (
        command is not None and command.is_pytest
    )


@dataclass(frozen=True, slots=True)
class PytestShield:
    """What keeps a candidate from telling pytest how to judge it."""

    wants_config: bool
    """True where the candidate could edit the configuration that pytest would find."""
    confcutdir: str | None
    """Within the tree: `conftest.py` files above it are not read."""

    def options(self, *, config: str, root: str) -> str:
        """Write `PYTEST_ADDOPTS`.

        Args:
            config: the file to use in place of the candidate's.
            root: the tree.
        """
        words = ["-p", "no:cacheprovider"]
        if self.wants_config:
            words += ["-c", config, "--rootdir", root]
        if self.confcutdir is not None:
            words += ["--confcutdir", posixpath.join(root, self.confcutdir)]
        return shlex.join(words)


def pytest_shield(
    argv: Sequence[str], cwd: str, paths: Collection[str], rules: PathRules
) -> PytestShield:
    """Find out what of a candidate's tree would steer pytest.

    Args:
        argv: the check's command.
        cwd: where it starts, within the tree.
        paths: all files of the tree.
        rules: what the candidate may edit.
    """
    words = argv[1:]
    if (command := python_command(argv)) is not None:
        words = command.rest[1:]
    named = [
        posixpath.normpath(posixpath.join(cwd, w.split("::")[0])) for w in words if w[:1] != "-"
    ]
    asked = [one for one in named if one in paths or any(p.startswith(one + "/") for p in paths)]
    places = {folder for one in asked or [posixpath.normpath(cwd)] for folder in _upwards(one)}
    editable = {path for path in paths if rules.is_editable(path)}
    configs = {_joined(folder, name) for folder in places for name in _CONFIGS}
    conftests = {_joined(folder, "conftest.py") for folder in places}
    confcutdir = None
    if editable & conftests:
        safe = [one if not one.endswith(".py") else posixpath.dirname(one) for one in asked]
        confcutdir = posixpath.commonpath(safe) if safe else posixpath.normpath(cwd)
    return PytestShield(bool(editable & configs), confcutdir)


def _upwards(path: str) -> list[str]:
    pure = PurePosixPath(path)
    return [str(folder) for folder in (pure, *pure.parents)]


def _joined(folder: str, name: str) -> str:
    return name if folder == "." else f"{folder}/{name}"
