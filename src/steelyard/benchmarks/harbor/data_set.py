"""Task data under `data_dir`: brought in once from where the user says, pinned by its content.

    <data_dir>/<benchmark>/<sha256 of the content>/…      the files
    <data_dir>/<benchmark>/from-<digest>.json             what an archive or remote brought

Nothing is fetched that the user did not name. What is there is used without a network.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from steelyard.benchmarks.harbor.folder import find_tasks
from steelyard.benchmarks.harbor.git_tree import FetchFailed, GitTree, is_remote, without_user
from steelyard.benchmarks.harbor.trees import (
    Planting,
    TreeRefused,
    large_file_pointers,
    plant_archive,
    plant_blobs,
    plant_folder,
    remove,
)
from steelyard.benchmarks.pack.digest import folder_digest
from steelyard.benchmarks.pack.paths import PathProblem
from steelyard.config.errors import BadInput, Where

_DIGEST_CHARS: Final = 64


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which data a request wants."""

    source: str | None = None
    """A folder, an archive, or a Git remote; None: what is there."""
    revision: str | None = None
    """Of a Git remote."""
    sha256: str | None = None
    """Of the content: any other is refused."""


class DataSet:
    """The folder of one data set."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = name

    @property
    def folder(self) -> Path:
        """Where its versions lie."""
        return self._folder

    def versions(self) -> list[str]:
        """List the digests of what is there."""
        try:
            names = os.listdir(self._folder)  # noqa: PTH208 — names alone
        except OSError:
            return []
        return sorted(name for name in names if len(name) == _DIGEST_CHARS and name.isalnum())

    def found(self, wanted: Wanted) -> Path | None:
        """Give the folder of what is wanted, where it is there already. Reads no file of it.

        Raises:
            BadInput: several versions are there, and nothing says which.
        """
        versions = self.versions()
        if wanted.source is not None:
            noted = self._noted(wanted).get("sha256")
            return self._folder / noted if noted in versions else None
        if wanted.sha256 is not None:
            return self._folder / wanted.sha256 if wanted.sha256 in versions else None
        if len(versions) > 1:
            raise BadInput(
                f"{len(versions)} versions of {self._name} are in {self._folder}",
                where=Where(field="benchmark.sha256"),
                remedy="name one: " + " or ".join(f"`sha256: {one}`" for one in versions[:5]),
            )
        return self._folder / versions[0] if versions else None

    def checked(self, wanted: Wanted) -> Path | None:
        """Give the folder of what is wanted, brought in where a source is named. Blocking.

        Returns:
            None where it is not there and no source is named.

        Raises:
            BadInput: it cannot be had, is not safe, or has another content than it should.
        """
        if wanted.source is not None and not is_remote(wanted.source):
            return self._local(wanted, Path(wanted.source).expanduser())
        path = self.found(wanted)
        if path is None and wanted.source is not None:
            path = self._remote(wanted, wanted.source)
        if path is None:
            return None
        try:
            digest = folder_digest(path)
        except (PathProblem, OSError) as error:
            raise self._damaged(path, str(error)) from error
        if digest != path.name:
            raise self._damaged(path, f"its content has the digest {digest}")
        self._check_pin(wanted, digest)
        return path

    def _damaged(self, path: Path, why: str) -> BadInput:
        return BadInput(
            f"the data of {self._name} is not what it was: {why}",
            where=Where(str(path)),
            remedy=f"remove the folder {path} and bring it in again with `source`",
        )

    def _check_pin(self, wanted: Wanted, digest: str) -> None:
        if wanted.sha256 is not None and digest != wanted.sha256:
            raise BadInput(
                f"the data of {self._name} is not the one that is pinned: its digest is {digest}",
                where=Where(field="benchmark.sha256"),
                remedy="name another source, or this digest",
            )

    def _local(self, wanted: Wanted, source: Path) -> Path:
        """Bring in a folder or an archive; one that is the same as before costs its digest."""
        where = Where(field="benchmark.source")
        if wanted.revision is not None:
            raise BadInput(
                "revision belongs to a Git remote",
                where=Where(field="benchmark.revision"),
                remedy="take it out",
            )
        if not source.exists():
            raise BadInput(
                f"there is no {source}",
                where=where,
                remedy="name a folder, a tar or zip archive, or a Git remote (https://…, ssh://…)",
            )
        plant = plant_folder if source.is_dir() else plant_archive
        return self._brought(wanted, str(source), lambda planting: plant(source, planting), {})

    def _remote(self, wanted: Wanted, source: str) -> Path:
        note: dict[str, Any] = {"source": without_user(source), "revision": wanted.revision}

        def plant(planting: Planting) -> None:
            work = Path(tempfile.mkdtemp(prefix=".git-", dir=self._folder))
            try:
                tree = GitTree(work)
                commit = note["commit"] = tree.fetch(source, wanted.revision)
                plant_blobs(tree.blobs(commit), planting)
            finally:
                remove(work)

        return self._brought(wanted, without_user(source), plant, note)

    def _brought(self, wanted: Wanted, shown: str, plant: Any, note: dict[str, Any]) -> Path:
        """Fill a new folder, check it, give it its digest's name."""
        where = Where(field="benchmark.source")
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            new = Path(tempfile.mkdtemp(prefix=".new-", dir=self._folder))
        except OSError as error:
            raise BadInput(
                f"{self._folder} cannot be written: {error.strerror}",
                remedy="name another folder as runtime.data_dir",
            ) from error
        try:
            planting = Planting(new)
            plant(planting)
            planting.finish()
            pointers = list(large_file_pointers(new))
            if pointers:
                raise TreeRefused(
                    f"{len(pointers)} files, {pointers[0]!r} among them, are only pointers of Git "
                    "LFS: clone it with Git LFS and name that folder"
                )
            if not find_tasks(new):
                raise TreeRefused("there is no task folder in it")
            digest = folder_digest(new)
            self._check_pin(wanted, digest)
            target = self._folder / digest
            new.chmod(0o755)
            with suppress(FileExistsError, OSError):  # somebody else brought the same
                new.rename(target)
            if not target.is_dir():
                raise BadInput(f"{target} cannot be made", where=where)
            if note:
                self._note(wanted, {**note, "sha256": digest})
            return target
        except (TreeRefused, FetchFailed) as error:
            raise BadInput(
                f"{shown} cannot be brought in: {error}",
                where=where,
                remedy="name a folder, a tar or zip archive, or a Git remote of task folders",
            ) from error
        except OSError as error:
            raise BadInput(f"{shown} cannot be brought in: {error}", where=where) from error
        finally:
            remove(new)

    def _note_path(self, wanted: Wanted) -> Path:
        key = json.dumps([without_user(wanted.source or ""), wanted.revision])
        return self._folder / f"from-{hashlib.sha256(key.encode()).hexdigest()[:16]}.json"

    def _noted(self, wanted: Wanted) -> dict[str, Any]:
        try:
            found = json.loads(self._note_path(wanted).read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def _note(self, wanted: Wanted, note: dict[str, Any]) -> None:
        path = self._note_path(wanted)
        new = path.with_suffix(f".{os.getpid()}.new")
        new.write_text(json.dumps(note, indent=2) + "\n", "utf-8")
        new.replace(path)
