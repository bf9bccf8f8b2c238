"""Agents' programs installed on this machine: where they lie, what is there, taking one away.

`harnesses/cli_agent/cache.py` installs them. A folder counts once its manifest is in it.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import platformdirs

MANIFEST: Final = "steelyard-agent.json"


@dataclass(frozen=True, slots=True)
class InstalledAgent:
    """One version of an agent's program."""

    id: str
    version: str
    """Empty where the folder does not say."""
    folder: Path

    def bytes(self) -> int:
        """Add up the sizes of its files. Blocking."""
        return sum(
            Path(root, name).lstat().st_size
            for root, _folders, files in os.walk(self.folder)
            for name in files
        )


def default_data_dir() -> Path:
    """Give the folder for data where `runtime.data_dir` names none: the user's own."""
    return Path(platformdirs.user_data_dir("steelyard", appauthor=False))


def agents_folder(data_dir: Path) -> Path:
    """Give the folder of all installed agents; a folder for each id lies in it."""
    return data_dir / "agents"


def installed_agents(data_dir: Path) -> list[InstalledAgent]:
    """List what is installed, by id and folder. Blocking."""
    return [
        InstalledAgent(file.parent.parent.name, _version(file), file.parent)
        for file in sorted(agents_folder(data_dir).glob(f"*/*/{MANIFEST}"))
    ]


def remove_agent(agent: InstalledAgent) -> None:
    """Take one away: its manifest first, so that nobody mounts half of it.

    A run that has it mounted loses it.
    """
    with alone_with(agent.folder.parent):
        (agent.folder / MANIFEST).unlink(missing_ok=True)
        shutil.rmtree(agent.folder, ignore_errors=True)


@contextmanager
def alone_with(home: Path) -> Iterator[None]:
    """Hold the lock of one agent's folder; it goes with its process. Blocking."""
    fd = os.open(home / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _version(manifest: Path) -> str:
    try:
        found = json.loads(manifest.read_bytes())
    except (OSError, ValueError):
        return ""
    version = found.get("version") if isinstance(found, dict) else None
    return version if isinstance(version, str) else ""
