"""Agents installed on this machine: one folder for each version and recipe, made whole or not.

An install is made beside its place and renamed; a lock in the same folder lets one process make
it while others wait. Its last file tells what was installed; what changed since is seen by it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from steelyard.components.installed_agents import MANIFEST, agents_folder, alone_with
from steelyard.config.errors import Fault
from steelyard.harnesses.cli_agent.agent import Agent
from steelyard.harnesses.cli_agent.npm import install_npm
from steelyard.harnesses.cli_agent.pypi import install_pypi
from steelyard.harnesses.cli_agent.sources import Files, Npm

SCHEMA: Final = "agent-install/1"
_PARTIAL: Final = ".partial-"


class DamagedInstall(Fault):
    """An installed folder that is not what was installed."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """One version of an agent in one data folder."""

    agent: Agent
    version: str
    data_dir: Path

    @property
    def folder(self) -> Path:
        """Where it lies once it is installed.

        Raises:
            UnsupportedMachine: there is no program for this machine.
        """
        recipe = self.agent.source.recipe(self.version)
        digest = hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()[:12]
        name = f"{self.version}-{self.agent.source.kind()}-{digest}"
        return self.home / name

    @property
    def home(self) -> Path:
        """Where all versions of the agent lie."""
        return agents_folder(self.data_dir) / self.agent.id


def is_installed(wanted: Wanted) -> bool:
    """True where it is there; its content is looked at by `installed`."""
    return (wanted.folder / MANIFEST).is_file()


def installed(wanted: Wanted) -> Path | None:
    """Give the folder of an installed agent; None where it is not installed. Blocking.

    Raises:
        DamagedInstall: files were added, removed or changed since.
    """
    folder = wanted.folder
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise DamagedInstall(
            f"{folder / MANIFEST} cannot be read: {error}", remedy=f"remove {folder}"
        ) from error
    told = manifest if isinstance(manifest, dict) else {}
    if told.get("schema") != SCHEMA or told.get("tree") != tree_digest(folder):
        raise DamagedInstall(
            f"{folder} is no longer what was installed: files were changed, added or removed",
            remedy=f"remove it (steelyard agent remove {wanted.agent.id}), then install it again",
        )
    return folder


def install(wanted: Wanted, *, timeout_s: float) -> Path:
    """Install an agent, or wait for whoever does, and give its folder. Blocking, minutes.

    No script of a package is run. What is there already is left as it is.

    Args:
        wanted: what to install.
        timeout_s: for the installer.

    Raises:
        NotInstalled: the installer is missing or failed, or found another package.
        DamagedInstall: as `installed`.
        UnsupportedMachine: there is no program for this machine.
    """
    wanted.home.mkdir(parents=True, exist_ok=True)
    with alone_with(wanted.home):
        found = installed(wanted)
        if found is not None:
            return found
        for left in wanted.home.glob(f"{_PARTIAL}*"):  # of processes that were killed
            shutil.rmtree(left, ignore_errors=True)
        partial = Path(tempfile.mkdtemp(prefix=_PARTIAL, dir=wanted.home))
        try:
            packages = _fill(partial, wanted, timeout_s)
            _open_to_all(partial)
            manifest = {
                "schema": SCHEMA,
                "agent": wanted.agent.id,
                "version": wanted.version,
                "packages": dict(sorted(packages.items())),
                "tree": tree_digest(partial),
            }
            target = partial / MANIFEST
            target.write_text(json.dumps(manifest, indent=2) + "\n")
            target.chmod(0o644)
            partial.rename(wanted.folder)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
    return wanted.folder


def tree_digest(folder: Path) -> str:
    """Digest names, sizes, kinds and modes of all that a folder holds but its manifest.

    Not the contents: the installer checked those against the packages' own sums, and reading
    hundreds of MB before every run finds nothing that matters to honest people.
    """
    digest = hashlib.sha256()
    for root, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(files + folders):
            path = Path(root, name)
            place = path.relative_to(folder).as_posix()
            if place == MANIFEST:
                continue
            status = path.lstat()
            size = status.st_size if stat.S_ISREG(status.st_mode) else 0
            digest.update(f"{place}\0{status.st_mode}\0{size}\0".encode("utf-8", "replace"))
    return digest.hexdigest()


def _fill(folder: Path, wanted: Wanted, timeout_s: float) -> Mapping[str, str]:
    """Put the program into a folder; give what each package's version and sum were."""
    source, version = wanted.agent.source, wanted.version
    if isinstance(source, Npm):
        return install_npm(folder, source, version, timeout_s=timeout_s)
    if isinstance(source, Files):
        shutil.copytree(
            source.folder,
            folder,
            symlinks=True,
            dirs_exist_ok=True,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
        return {"files": source.recipe(version)["files"]}
    return install_pypi(folder, source, version, timeout_s=timeout_s)


def _open_to_all(folder: Path) -> None:
    """Let every user read: sessions run as another one."""
    for root, folders, files in os.walk(folder):
        for path in (Path(root), *(Path(root, name) for name in (*folders, *files))):
            if not path.is_symlink():
                mode = path.stat().st_mode
                runs = path.is_dir() or mode & stat.S_IXUSR
                path.chmod((stat.S_IMODE(mode) | (0o555 if runs else 0o444)) & 0o755)
