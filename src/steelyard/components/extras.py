"""Optional dependencies of our own package: the command that installs one, and installing it.

The command is that of this very installation, by pip or uv. What it installs, by hand or for the
user (`--auto-install-dependencies`), is exactly what the lock shipped with this version names,
hashes checked; nothing that is there already is replaced.
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from steelyard.config.errors import Fault

LOCKS: Final = Path(__file__).resolve().parent.parent / "_locks"
"""A file for each extra: what it adds to the package's own dependencies, pinned, with hashes."""
_INSTALL_S: Final = 900.0
_PINNED: Final = re.compile(r"^([A-Za-z0-9._-]+==[^\s;\\]+)", re.MULTILINE)


class NotInstalled(Fault):
    """An optional dependency that could not be installed."""


def install_command(extra: str) -> str:
    """Give the command that installs an extra of our own package into this interpreter."""
    return _shown(install_argv(extra))


def install_argv(extra: str, *, locks: Path = LOCKS) -> list[str]:
    """Give the same as words.

    Not `steelyard[EXTRA]`: where this very package came from a checkout or a wheel, an index may
    not know it, or know another one by that name. What the extra adds is pinned, hashes and all.
    """
    return [*_installer(), "--require-hashes", "--no-deps", "-r", str(locks / f"{extra}.txt")]


def install_locked(extra: str, *, locks: Path = LOCKS) -> str:
    """Install what an extra adds, at the versions of the lock. Blocking, perhaps minutes.

    Returns:
        What was done: the packages with their versions, and the command.

    Raises:
        NotInstalled: there is no lock for it, or the installer failed; its last words are given.
    """
    lock = locks / f"{extra}.txt"
    if not re.fullmatch(r"[a-z0-9-]+", extra) or not lock.is_file():
        raise NotInstalled(
            f"this version has no locked dependencies for the extra {extra!r}",
            remedy=install_command(extra),
        )
    argv = install_argv(extra, locks=locks)
    try:
        done = subprocess.run(  # noqa: S603 — a fixed argument vector
            argv, capture_output=True, text=True, timeout=_INSTALL_S, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotInstalled(
            f"the extra {extra!r} could not be installed: {error}", remedy=install_command(extra)
        ) from error
    if done.returncode != 0:
        last = "\n".join((done.stderr or done.stdout).strip().splitlines()[-3:])
        raise NotInstalled(
            f"the extra {extra!r} could not be installed (exit status {done.returncode}): {last}",
            remedy=install_command(extra),
        )
    importlib.invalidate_caches()
    pins = ", ".join(_PINNED.findall(lock.read_text()))
    return f"{pins}, by `{_shown(argv)}`"


def _installer() -> list[str]:
    """Give the words that install into this interpreter's environment, requirements to follow."""
    if not _has_pip(Path(sys.prefix)) and shutil.which("uv"):
        return ["uv", "pip", "install", "--python", sys.executable]
    return [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]


def _has_pip(prefix: Path) -> bool:
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return any((prefix / lib / version / "site-packages/pip").is_dir() for lib in ("lib", "lib64"))


def _shown(argv: list[str]) -> str:
    return " ".join(
        f"'{word}'" if any(char in word for char in " []*?$") and os.name != "nt" else word
        for word in argv
    )
