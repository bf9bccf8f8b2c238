"""Find or make an interpreter that has the package `harbor`, which needs Python 3.12.

Ours, where it is new enough and has it. Else one of its own below the data folder, made once by
`steelyard agent install terminus2`: exactly what the lock beside this file names, hashes checked.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from steelyard.components.extras import install_command
from steelyard.components.installed_agents import (
    MANIFEST,
    agents_folder,
    alone_with,
    default_data_dir,
)
from steelyard.config.errors import Fault
from steelyard.harnesses.terminus2.params import VERSION

ID: Final = "terminus2"
PACKAGE: Final = "harbor"
LOCK: Final = Path(__file__).with_name("lock.txt")
"""Of `VERSION` with all it needs; other versions are resolved anew."""
FLOOR: Final = (3, 12)
_SCHEMA: Final = "agent-install/1"
_LOOK_S: Final = 20.0
_SAY: Final = "import sys; print(*sys.version_info[:2])"


class NotInstalled(Fault):
    """No interpreter with the package could be made."""


@dataclass(frozen=True, slots=True)
class Home:
    """Where an interpreter of one version of the package lies, or will."""

    version: str
    data_dir: Path | None

    @property
    def parent(self) -> Path:
        """The folder of all versions."""
        return agents_folder((self.data_dir or default_data_dir()).absolute()) / ID

    @property
    def folder(self) -> Path:
        """The folder of this one, named by all that decides what it holds."""
        lock = LOCK.read_bytes() if self.version == VERSION else b""
        digest = hashlib.sha256(lock + self.version.encode()).hexdigest()[:12]
        return self.parent / f"{self.version}-{platform.machine()}-{digest}"

    @property
    def python(self) -> Path:
        """The interpreter."""
        return self.folder / "bin" / "python"

    @property
    def is_installed(self) -> bool:
        """True once it was made to the end."""
        return (self.folder / MANIFEST).is_file() and self.python.exists()


def find_python(home: Home) -> Path | None:
    """Give an interpreter that has the package in the version asked for; None without one."""
    if sys.version_info[:2] >= FLOOR and own_version() == home.version:
        return Path(sys.executable)
    return home.python if home.is_installed else None


def own_version() -> str | None:
    """Give the version of the package that our own interpreter has; nothing is imported."""
    try:
        return importlib.metadata.version(PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        return None


def lacking(home: Home) -> str | None:
    """Say that there is no interpreter with the package, and the command that makes one."""
    if find_python(home) is not None:
        return None
    words = ["steelyard", "agent", "install", ID]
    if home.version != VERSION:
        words += ["--version", home.version]
    if home.data_dir is not None:
        words += ["--data-dir", str(home.data_dir)]
    remedy = shlex.join(words)
    if sys.version_info[:2] >= FLOOR:
        if home.version == VERSION:
            remedy += f", or {install_command('terminus2')}"
    else:
        here = ".".join(map(str, sys.version_info[:2]))
        remedy += f" (this Python is {here}, the package needs 3.12: it gets one of its own"
        remedy += ")" if next(new_pythons(), None) else f"; first {_NO_PYTHON})"
    return f"the package {PACKAGE} {home.version} is not installed: {remedy}"


_NO_PYTHON: Final = "install Python 3.12 or newer, say by `uv python install 3.12`"


def new_pythons() -> Iterator[Path]:
    """Give interpreters that are new enough, likely ones first. Blocking.

    Looked at are our own, those on the search path, those of pyenv and those that uv knows.
    """
    if sys.version_info[:2] >= FLOOR:
        yield Path(sys.executable)
    names = [f"python3.{minor}" for minor in (12, 13, 14)]
    found = [Path(path) for name in names if (path := shutil.which(name))]
    found += [
        one
        for root in _pyenv_roots()
        for name in names
        for one in sorted(root.glob(f"versions/*/bin/{name}"))
    ]
    seen: set[Path] = set()
    for known in found:
        # pyenv's shims are there for versions that are not.
        if known.resolve() not in seen and _is_new(known):
            seen.add(known.resolve())
            yield known
    if uv := shutil.which("uv"):
        told = _said([uv, "python", "find", "--no-python-downloads", ">=3.12"])
        if told and Path(told) not in seen and _is_new(Path(told)):
            yield Path(told)


def _pyenv_roots() -> list[Path]:
    """Where pyenv keeps its versions: as it says, or at home and beside shims on the path."""
    if named := os.environ.get("PYENV_ROOT"):
        return [Path(named)]
    shims = [Path(path) for path in os.get_exec_path() if Path(path).name == "shims"]
    return list(dict.fromkeys([Path.home() / ".pyenv", *(one.parent for one in shims)]))


def install(home: Home, *, timeout_s: float) -> Path:
    """Make an interpreter with the package, or wait for whoever does. Blocking, minutes.

    Raises:
        NotInstalled: there is no Python new enough, or the installer failed.
    """
    home.parent.mkdir(parents=True, exist_ok=True)
    with alone_with(home.parent):
        if home.is_installed:
            return home.python
        python = next(new_pythons(), None)
        if python is None:
            raise NotInstalled(
                f"{ID} needs Python 3.12 or newer beside this one, and there is none",
                remedy=_NO_PYTHON,
            )
        # A virtual environment knows its own place, so it is made where it stays: what says that
        # it is whole is the manifest, written last.
        shutil.rmtree(home.folder, ignore_errors=True)
        try:
            _fill(home, python, timeout_s)
        except BaseException:
            shutil.rmtree(home.folder, ignore_errors=True)
            raise
        manifest = {"schema": _SCHEMA, "agent": ID, "version": home.version}
        with tempfile.NamedTemporaryFile("w", dir=home.folder, delete=False) as file:
            file.write(json.dumps(manifest, indent=2) + "\n")
        Path(file.name).rename(home.folder / MANIFEST)
    return home.python


def _fill(home: Home, python: Path, timeout_s: float) -> None:
    asked = [f"{PACKAGE}=={home.version}"]
    if home.version == VERSION:
        asked = ["--require-hashes", "--no-deps", "-r", str(LOCK)]
    binary = ["--only-binary", ":all:"]
    if uv := shutil.which("uv"):
        _run([uv, "venv", "--quiet", "--python", str(python), str(home.folder)], timeout_s)
        words = [uv, "pip", "install", "--quiet", "--compile-bytecode", "--python"]
        _run([*words, str(home.python), *binary, *asked], timeout_s)
        return
    _run([str(python), "-m", "venv", str(home.folder)], timeout_s)
    words = [str(home.python), "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
    _run([*words, "--quiet", *binary, *asked], timeout_s)


def _run(words: list[str], timeout_s: float) -> None:
    try:
        done = subprocess.run(  # noqa: S603 — an argument vector; the version was checked
            words, capture_output=True, text=True, errors="replace", timeout=timeout_s,
            check=False, stdin=subprocess.DEVNULL, cwd="/",
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotInstalled(f"{PACKAGE} could not be installed: {error}", remedy=_AGAIN) from error
    if done.returncode != 0:
        last = "\n".join((done.stderr or done.stdout).strip().splitlines()[-6:])[-2000:]
        raise NotInstalled(
            f"{PACKAGE} could not be installed (exit status {done.returncode}): {last}",
            remedy=_AGAIN,
        )


_AGAIN: Final = (
    "see that the package registry can be reached, then try again; once installed, no network is "
    "needed"
)


def _is_new(python: Path) -> bool:
    told = re.fullmatch(r"(\d+) (\d+)", _said([str(python), "-I", "-c", _SAY]) or "")
    return told is not None and (int(told[1]), int(told[2])) >= FLOOR


def _said(words: list[str]) -> str | None:
    try:
        done = subprocess.run(  # noqa: S603 — an argument vector of paths that were found
            words, capture_output=True, text=True, errors="replace", timeout=_LOOK_S, check=False,
            stdin=subprocess.DEVNULL, cwd="/",
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
