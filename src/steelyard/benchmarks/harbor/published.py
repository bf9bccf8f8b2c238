"""The published sets of Harbor tasks: Terminal-Bench 2 and its later versions.

Their data ships with nobody's package: the user brings it in once, `data_set.py` keeps it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import BaseModel, Field, ValidationInfo, field_validator

from steelyard.benchmarks.harbor.benchmark import TaskFolders, TaskParams
from steelyard.benchmarks.harbor.data_set import DataSet, Wanted
from steelyard.benchmarks.harbor.git_tree import is_remote
from steelyard.components.installed_agents import default_data_dir
from steelyard.components.path_params import WrittenPath
from steelyard.config.errors import BadInput


class PublishedParams(TaskParams):
    """Parameters of a published set."""

    source: Annotated[str | None, WrittenPath(lambda text: not is_remote(text))] = Field(
        default=None, min_length=1
    )
    """Where its tasks are brought in from, once: a folder, a tar or zip archive, a Git remote."""
    revision: str | None = Field(default=None, min_length=1)
    """A branch, a tag or a commit of the Git remote."""
    sha256: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$")
    """The digest of its content; any other is refused."""

    @field_validator("source")
    @classmethod
    def _from_base(cls, source: str | None, info: ValidationInfo) -> str | None:
        base = (info.context or {}).get("base_dir")
        if source is None or base is None or is_remote(source):
            return source
        return str(Path(base) / Path(source).expanduser())


class Published(TaskFolders):
    """A set of tasks that somebody publishes."""

    Params: ClassVar[type[BaseModel]] = PublishedParams
    params: PublishedParams
    published_as: ClassVar[str]
    """Where people find it, in words."""
    example_source: ClassVar[str]
    """A source that could be named."""

    @property
    def _data(self) -> DataSet:
        base = self.data_dir if self.data_dir is not None else default_data_dir()
        return DataSet(base.absolute() / "benchmarks" / self.id, self.id)

    @property
    def _wanted(self) -> Wanted:
        return Wanted(self.params.source, self.params.revision, self.params.sha256)

    def root(self) -> Path:
        """Give the folder of the tasks, brought in where the request names a source."""
        found = self._data.checked(self._wanted)
        if found is None:
            raise BadInput(f"{self._absent()}: {self.published_as}", remedy=self._remedy())
        return found

    def task_ids(self) -> Sequence[str] | None:
        """Give the names of the task folders, where they need not be brought in first."""
        if self.params.source is not None or self.lacking() is not None:
            return None
        return super().task_ids()

    def lacking(self) -> str | None:
        """Say that the tasks are not there, and how they come there."""
        if self.params.source is not None or self._data.found(self._wanted) is not None:
            return None
        return f"{self._absent()} ({self.published_as}); {self._remedy()}"

    def _absent(self) -> str:
        which = f" with the digest {self.params.sha256}" if self.params.sha256 else ""
        return f"the tasks of {self.id}{which} are not in {self._data.folder}"

    def _remedy(self) -> str:
        place = f" --data-dir {self.data_dir}" if self.data_dir is not None else ""
        return (
            "bring them in once, from a folder, an archive or a Git remote: "
            f"steelyard run {self.id} oracle none --env docker{place} "
            f"-P benchmark.source={self.example_source}"
        )


class TerminalBench2(Published):
    """Terminal-Bench 2.0."""

    id: ClassVar[str] = "terminal_bench_2"
    published_as: ClassVar[str] = "89 tasks, the repository terminal-bench-2 of its authors"
    example_source: ClassVar[str] = "https://github.com/laude-institute/terminal-bench-2.git"


class TerminalBench21(Published):
    """Terminal-Bench 2.1."""

    id: ClassVar[str] = "terminal_bench_2_1"
    published_as: ClassVar[str] = (
        "`harbor datasets download terminal-bench/terminal-bench-2-1 -o FOLDER` gets them"
    )
    example_source: ClassVar[str] = "FOLDER"


class TerminalBench2Verified(Published):
    """Terminal-Bench 2.0 with repaired environments and instructions."""

    id: ClassVar[str] = "terminal_bench_2_verified"
    published_as: ClassVar[str] = (
        "89 tasks, published by Z.ai as the data set terminal-bench-2-verified; clone it with "
        "Git LFS into FOLDER"
    )
    example_source: ClassVar[str] = "FOLDER"
