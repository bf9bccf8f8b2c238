"""Install an agent from PyPI beside a copy of this Python, so that any environment can run it.

Layout: `python/` holds the copy with the packages among its own, `libraries/` the shared libraries
it needs that an image may lack, `run-python` starts it. The libraries are named to the loader by
words, not by a variable: what the agent starts never sees them.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from steelyard.harnesses.cli_agent.installer import NotInstalled, run_installer
from steelyard.harnesses.cli_agent.sources import PyPI

_LEFT_OUT: Final = (
    "site-packages", "dist-packages", "test", "tests", "idlelib", "idle_test", "tkinter",
    "turtledemo", "ensurepip", "lib2to3", "__pycache__", "config-*", "*.a",
)  # fmt: skip
_OF_GLIBC: Final = re.compile(r"(ld-linux|libc|libm|libdl|libpthread|librt|libutil|libresolv)\b")
_LIBRARY: Final = re.compile(r"^\s*(?P<name>\S+) => (?P<path>/\S+) \(", re.MULTILINE)
_LOADER: Final = re.compile(r"^\s*(?P<path>/\S*/ld-linux\S*) \(", re.MULTILINE)
_SITE: Final = """import os.path
import site

site.addsitedir(os.path.join(os.path.dirname(__file__), "site-packages"))
"""
_LAUNCHER: Final = """#!/bin/sh
here=$(cd "$(dirname "$0")" && pwd)
exec {loader} --library-path "$here/libraries" "$here/python/bin/python3" -I "$@"
"""


def install_pypi(
    folder: Path, source: PyPI, version: str, *, timeout_s: float
) -> Mapping[str, str]:
    """Install the package and all it needs. Blocking.

    Returns:
        Package → version.

    Raises:
        NotInstalled: this Python cannot be copied, or the installer is missing or failed.
    """
    if not sys.platform.startswith("linux"):
        raise NotInstalled(
            f"{source.package} needs a Python of Linux, and this machine has none to copy",
            remedy="give `install: environment` and an image that brings it",
        )
    home = folder / "python"
    site = _copy_python(home)
    loader = _copy_libraries(home, folder / "libraries")
    launcher = folder / "run-python"
    launcher.write_text(_LAUNCHER.format(loader=loader))
    launcher.chmod(0o755)
    what = f"{source.package}=={version}"
    lock = source.lock_of(version)
    asked = [what] if lock is None else ["--require-hashes", "--no-deps", "-r", str(lock)]
    words = [*_installer(), "--only-binary", ":all:", "--target", str(site), *asked]
    run_installer(words, folder, what=what, timeout_s=timeout_s)
    shutil.rmtree(site / "bin", ignore_errors=True)
    _compile(launcher, site)
    return {
        info.name.removesuffix(".dist-info").partition("-")[0]: info.name.removesuffix(
            ".dist-info"
        ).partition("-")[2]
        for info in sorted(site.glob("*.dist-info"))
    }


def _installer() -> list[str]:
    """Take pip of this very environment, else uv."""
    if importlib.util.find_spec("pip") is not None:
        return [
            sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-input",
            "--no-compile",
        ]  # fmt: skip
    return ["uv", "pip", "install", "--python", sys.executable]


def _copy_python(home: Path) -> Path:
    """Copy this interpreter with its standard library, and nothing else; give its packages."""
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    standard = Path(sysconfig.get_path("stdlib"))
    program = Path(sys.base_prefix, "bin", name)
    if not program.exists() or not standard.is_dir():
        raise NotInstalled(
            f"there is no {program} to copy for the agent",
            remedy="use another Python, or `install: environment`",
        )
    (home / "bin").mkdir(parents=True)
    shutil.copyfile(program.resolve(), home / "bin" / "python3")
    (home / "bin" / "python3").chmod(0o755)
    target = home / "lib" / name
    ignore = shutil.ignore_patterns(*_LEFT_OUT)
    shutil.copytree(standard, target, ignore=ignore, symlinks=False)
    site = target / "site-packages"
    site.mkdir()
    # Debian's Python looks for packages elsewhere.
    (target / "sitecustomize.py").write_text(_SITE)
    return site


def _copy_libraries(home: Path, target: Path) -> str:
    """Copy the shared libraries that are not glibc's; give the path of the loader.

    Raises:
        NotInstalled: nobody can say which they are.
    """
    target.mkdir()
    program = home / "bin" / "python3"
    loader: str | None = None
    for binary in (program, *sorted(home.glob("lib/*/lib-dynload/*.so"))):
        try:
            shown = subprocess.run(  # noqa: S603 — a fixed argument vector
                ["/usr/bin/ldd", str(binary)], capture_output=True, text=True, timeout=60,
                check=False,
            ).stdout  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NotInstalled(
                f"the libraries of Python cannot be told: {error}",
                remedy="install `ldd`, or use `install: environment`",
            ) from error
        for found in _LIBRARY.finditer(shown):
            if not _OF_GLIBC.match(found["name"]):
                shutil.copyfile(found["path"], target / found["name"])
        if binary == program and (named := _LOADER.search(shown)):
            loader = named["path"]
    if loader is None:
        raise NotInstalled(
            f"{program} is not a program of glibc", remedy="use `install: environment`"
        )
    return loader


def _compile(launcher: Path, site: Path) -> None:
    """Compile all to bytecode: nobody can write it where the folder is mounted."""
    library = site.parent
    words = ["-m", "compileall", "-q", "-j", "2", str(library)]
    subprocess.run(  # noqa: S603 — a fixed argument vector
        [str(launcher), *words], capture_output=True, timeout=900, check=False
    )
