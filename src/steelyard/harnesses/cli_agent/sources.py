"""Where an agent's program comes from: packages with exact versions, or files that are there.

Values only; `cache.py` installs them. Each gives a recipe: what, besides the version, decides
what an installed folder holds.
"""

from __future__ import annotations

import hashlib
import json
import platform
import stat
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from steelyard.config.errors import Fault

LAYOUT: Final = 2
"""Of what is installed from PyPI: how the copy of Python is made."""


class UnsupportedMachine(Fault):
    """A machine that the agent has no program for."""


def machine() -> str:
    """Name this machine's kind as npm does, with the system that sessions run: Linux.

    Raises:
        UnsupportedMachine: it is neither x86-64 nor arm64.
    """
    name = platform.machine().lower()
    kind = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}.get(name)
    if kind is None:
        raise UnsupportedMachine(
            f"agents are installed for x86-64 and arm64, and this machine is {name}",
            remedy="give `install: environment` and an environment that brings the program",
        )
    return f"linux-{kind}"


@dataclass(frozen=True, slots=True)
class Npm:
    """Packages of npm, installed without any script of theirs."""

    packages: tuple[str, ...]
    """`NAME@VERSION`, with `{version}` and `{machine}` (`linux-x64`, `linux-arm64`). An agent in
    JavaScript names a package that holds node itself beside its own."""
    integrity: Mapping[str, str] = field(default_factory=dict)
    """Package as asked for → the `sha512-…` that npm must have found: of the default version."""

    def asked(self, version: str) -> tuple[str, ...]:
        """Give the packages with their versions, for this machine."""
        values = {"{version}": version, "{machine}": machine()}
        words = self.packages
        for name, value in values.items():
            words = tuple(word.replace(name, value) for word in words)
        return words

    def recipe(self, version: str) -> dict[str, Any]:
        """Give what decides the folder's content."""
        asked = self.asked(version)
        pins = {name: self.integrity[name] for name in asked if name in self.integrity}
        return {"npm": list(asked), "integrity": pins}

    def kind(self) -> str:
        """Name the kind of machine that an installed folder is for."""
        return machine()


@dataclass(frozen=True, slots=True)
class PyPI:
    """A package of PyPI with all it needs, beside a copy of the Python that runs it."""

    package: str
    lock: Path | None = None
    """Requirements with hashes, of `locked_version` alone; other versions are resolved anew."""
    locked_version: str | None = None

    def lock_of(self, version: str) -> Path | None:
        """Give the lock of a version; None where there is none."""
        return self.lock if version == self.locked_version else None

    def recipe(self, version: str) -> dict[str, Any]:
        """Give what decides the folder's content."""
        lock = self.lock_of(version)
        digest = None if lock is None else hashlib.sha256(lock.read_bytes()).hexdigest()
        return {"pypi": f"{self.package}=={version}", "lock": digest, "layout": LAYOUT}

    def kind(self) -> str:
        """Name the kind of machine that an installed folder is for."""
        return f"{machine()}-py{sys.version_info.major}{sys.version_info.minor}"


@dataclass(frozen=True, slots=True)
class Files:
    """A folder that is there already: an agent that its own package brings."""

    folder: Path

    def recipe(self, version: str) -> dict[str, Any]:
        """Give what decides the folder's content: all of it."""
        digest = hashlib.sha256()
        for path in sorted(self.folder.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                name = path.relative_to(self.folder).as_posix()
                runs = bool(path.stat().st_mode & stat.S_IXUSR)
                content = hashlib.sha256(path.read_bytes()).hexdigest()
                digest.update(json.dumps([name, runs, content]).encode())
        return {"files": digest.hexdigest()}

    def kind(self) -> str:
        """Name the kind of machine that an installed folder is for: any."""
        return "any"
