"""How this very installation is added to: the command for pip, uv or pipx, as it was made."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path


def install_command(extra: str) -> str:
    """Give the command that installs an extra of our own package into this interpreter."""
    return " ".join(_quoted(word) for word in install_argv(extra))


def install_argv(extra: str) -> list[str]:
    """Give the same as words.

    `pipx` and `uv tool` own their environments: what is put in by hand is lost at an upgrade.
    """
    requirement = f"steelyard[{extra}]"
    prefix = Path(sys.prefix)
    if (prefix / "uv-receipt.toml").is_file():
        return ["uv", "tool", "install", "--reinstall-package", "steelyard", requirement]
    if "pipx" in prefix.parts:
        return ["pipx", "install", "--force", requirement]
    if not _has_pip(prefix) and shutil.which("uv"):
        return ["uv", "pip", "install", "--python", sys.executable, requirement]
    return [sys.executable, "-m", "pip", "install", requirement]


def _has_pip(prefix: Path) -> bool:
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return any((prefix / lib / version / "site-packages/pip").is_dir() for lib in ("lib", "lib64"))


def _quoted(word: str) -> str:
    return f"'{word}'" if any(char in word for char in " []*?$") and os.name != "nt" else word
