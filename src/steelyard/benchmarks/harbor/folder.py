"""A task folder: which files there are, what they say, and a digest of each part.

    task.toml  instruction.md  environment/  tests/  solution/  steps/<name>/…

The content is somebody else's: no link may lead out of it, and nothing of it runs here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

import orjson

from steelyard.benchmarks.harbor.document import (
    FILE,
    LEAVE_OUT,
    TaskDocument,
    read_document,
    refusals,
)
from steelyard.benchmarks.harbor.schema import StepTable, TaskTable
from steelyard.benchmarks.pack.digest import folder_digest
from steelyard.benchmarks.pack.paths import PathProblem
from steelyard.config.errors import Problem, Where

MAX_INSTRUCTION_BYTES: Final = 1024 * 1024
TEST_SCRIPT: Final = "test.sh"
SOLVE_SCRIPT: Final = "solve.sh"
SETUP_SCRIPT: Final = "setup.sh"
COMPOSE_FILES: Final = (
    "docker-compose.yaml",
    "docker-compose.yml",
    "compose.yaml",
    "compose.yml",
)
_MAX_DEPTH: Final = 3
"""How deep below a folder of tasks their folders are looked for."""


@dataclass(frozen=True)
class Part:
    """What is shown, worked on and scored as one: the whole task, or one of its steps."""

    name: str
    """The step's; empty for a task without steps."""
    instruction: str
    tests: tuple[Path, ...]
    """Folders laid over one another, the task's own first."""
    solution: Path | None
    """The folder that holds `solve.sh`."""
    files: Path | None = None
    """Laid over the working folder before the step begins."""
    step: StepTable | None = None


@dataclass(frozen=True)
class TaskFolder:
    """A task in order."""

    id: str
    root: Path
    document: TaskDocument
    parts: tuple[Part, ...]
    digests: Mapping[Path, str]
    """Of the content of each folder, computed when it was read."""
    refusals: tuple[Problem, ...] = ()
    """Why this version cannot run it, though it is in order."""

    @property
    def table(self) -> TaskTable:
        """What `task.toml` says."""
        return self.document.table

    @property
    def has_steps(self) -> bool:
        """True where the agent is sent to work more than once."""
        return bool(self.table.steps)

    @property
    def environment(self) -> Path:
        """The folder that the agent's image is built from."""
        return self.root / "environment"

    @property
    def environment_digest(self) -> str:
        """Of all that the image's build sees."""
        return self.digests.get(self.environment, "")

    @cached_property
    def tests_digest(self) -> str:
        """Of every tests folder, each step's among them."""
        return _digest(
            [[part.name, [self.digests[folder] for folder in part.tests]] for part in self.parts]
        )

    @cached_property
    def shown_digest(self) -> str:
        """Of what the agent is shown and given: instructions and the files of steps."""
        return _digest(
            [
                [part.name, part.instruction, self.digests[part.files] if part.files else ""]
                for part in self.parts
            ]
        )


def _digest(data: object) -> str:
    return hashlib.sha256(orjson.dumps(data)).hexdigest()


def find_tasks(root: Path) -> list[Path]:
    """Find the task folders at and below a folder, in the order of their paths.

    Raises:
        OSError: a folder cannot be read.
    """
    if (root / FILE).is_file():
        return [root]
    return sorted(_below(root, 1))


def _below(folder: Path, depth: int) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.name.startswith(".") or path.is_symlink() or not path.is_dir():
            continue
        if (path / FILE).is_file():
            yield path
        elif depth < _MAX_DEPTH:
            yield from _below(path, depth + 1)


def read_task(root: Path, *, shown: str) -> tuple[TaskFolder | None, list[Problem]]:
    """Read one task.

    Args:
        root: its folder.
        shown: how messages name it.

    Returns:
        The task, None where something is wrong; and all that is.
    """
    document, problems = read_document(root / FILE, shown=f"{shown}/{FILE}")
    if document is None:
        return None, problems
    refused = list(refusals(document))
    reader = _Reader(root, shown, document, problems, refused)
    parts = reader.parts()
    if problems:
        return None, problems
    return TaskFolder(root.name, root, document, parts, reader.digests, tuple(refused)), []


class _Reader:
    """Looks at a folder, noting what is wrong."""

    def __init__(
        self,
        root: Path,
        shown: str,
        document: TaskDocument,
        problems: list[Problem],
        refused: list[Problem],
    ) -> None:
        self._root = root
        self._shown = shown
        self._document = document
        self._problems = problems
        self._refused = refused
        self.digests: dict[Path, str] = {}

    def parts(self) -> tuple[Part, ...]:
        table = self._document.table
        self._check_environment()
        solution = self._solution(self._root)
        shared = self._folder(self._root / "tests")
        if not table.steps:
            self._check_prior(self._root)
            part = Part(
                "",
                self._instruction(self._root),
                self._tests([shared], table.verifier.mode == "separate"),
                solution,
            )
            return (part,)
        return tuple(self._step(step, shared, solution) for step in table.steps)

    def _step(self, step: StepTable, shared: Path | None, solution: Path | None) -> Part:
        root = self._root / "steps" / step.name
        if self._folder(root) is None:
            self._wrong(f"steps/{step.name}", "the step's folder is missing", "make it")
            return Part(step.name, "", (), None, step=step)
        self._check_prior(root)
        self._check_single(root / "tests")
        mode = step.verifier.mode or self._document.table.verifier.mode
        environment = step.verifier.environment
        named = environment is not None and environment.docker_image is not None
        return Part(
            step.name,
            self._instruction(root),
            self._tests([shared, self._folder(root / "tests")], mode == "separate", named),
            self._solution(root) or solution,
            self._folder(root / "workdir"),
            step,
        )

    def _wrong(self, relative: str, message: str, remedy: str | None = None) -> None:
        self._problems.append(Problem(message, Where(f"{self._shown}/{relative}"), remedy))

    def _refuse(self, relative: str, message: str) -> None:
        where = Where(f"{self._shown}/{relative}")
        self._refused.append(Problem(f"{message} in this version", where, LEAVE_OUT))

    def _relative(self, path: Path) -> str:
        return path.relative_to(self._root).as_posix()

    def _folder(self, path: Path) -> Path | None:
        """Give a folder whose content is safe to copy; None where there is none."""
        if not path.is_dir():
            return None
        if path.is_symlink() or any(
            up.is_symlink() for up in path.parents if up != self._root and self._root in up.parents
        ):
            self._wrong(self._relative(path), "the folder is a link", "put the files there")
            return None
        try:
            self.digests[path] = folder_digest(path)
        except PathProblem as error:
            self._wrong(self._relative(path), str(error), "keep to files of the task")
            return None
        if (path / ".harborignore").exists():
            self._refuse(
                f"{self._relative(path)}/.harborignore",
                "leaving files out by .harborignore is not available",
            )
        return path

    def _check_environment(self) -> None:
        folder = self._root / "environment"
        self._check_single(folder)
        self._check_single(self._root / "tests")
        self._folder(folder)
        if not folder.is_dir() and self._document.table.environment.docker_image is None:
            self._problems.append(
                self._document.problem(
                    "the task has no environment: neither a folder environment/ nor an image",
                    "environment",
                    remedy="add environment/Dockerfile, or write docker_image",
                )
            )

    def _check_single(self, folder: Path) -> None:
        for name in COMPOSE_FILES:
            if (folder / name).exists():
                self._refuse(
                    self._relative(folder / name),
                    "tasks of several services (compose) are not available",
                )

    def _check_prior(self, root: Path) -> None:
        if (root / "trajectory.json").exists():
            self._refuse(
                self._relative(root / "trajectory.json"),
                "beginning with an earlier trajectory is not available",
            )

    def _instruction(self, root: Path) -> str:
        path = root / "instruction.md"
        relative = self._relative(path)
        if path.is_symlink() or not path.is_file():
            self._wrong(relative, "the instruction is missing", "write what the agent is to do")
            return ""
        if path.stat().st_size > MAX_INSTRUCTION_BYTES:
            self._wrong(relative, f"larger than {MAX_INSTRUCTION_BYTES // 2**20} MiB")
            return ""
        try:
            text = without_canary(path.read_text("utf-8"))
        except UnicodeDecodeError:
            self._wrong(relative, "not UTF-8 text", "save it as UTF-8")
            return ""
        if not text.strip():
            self._wrong(relative, "the instruction is empty", "write what the agent is to do")
        return text

    def _tests(
        self, folders: Sequence[Path | None], is_separate: bool, names_image: bool = False
    ) -> tuple[Path, ...]:
        found = tuple(folder for folder in folders if folder is not None)
        has_script = any((folder / TEST_SCRIPT).is_file() for folder in found)
        # A verifier's image of its own may bring its tests with it.
        is_bundled = is_separate and (
            any((folder / "Dockerfile").is_file() for folder in found)
            or names_image
            or self._names_verifier_image()
        )
        if not has_script and not is_bundled:
            place = "tests" if not self._document.table.steps else "steps/<name>/tests"
            self._wrong(
                f"tests/{TEST_SCRIPT}",
                "the test script is missing",
                f"write {place}/{TEST_SCRIPT}; it leaves its verdict in /logs/verifier/reward.txt",
            )
        return found

    def _names_verifier_image(self) -> bool:
        environment = self._document.table.verifier.environment
        return environment is not None and environment.docker_image is not None

    def _solution(self, root: Path) -> Path | None:
        folder = self._folder(root / "solution")
        if folder is None:
            return None
        if not (folder / SOLVE_SCRIPT).is_file():
            self._wrong(
                f"{self._relative(folder)}/{SOLVE_SCRIPT}",
                "the solution has no script",
                f"write {SOLVE_SCRIPT}, or take the folder out",
            )
        return folder


def without_canary(text: str) -> str:
    """Leave out the marks that begin a text so that it can be found in training data."""
    lines = text.split("\n")
    start = 0
    while start < len(lines) and _is_canary(lines[start]):
        start += 1
    while start and start < len(lines) and not lines[start].strip():
        start += 1
    return "\n".join(lines[start:])


def _is_canary(line: str) -> bool:
    # No pattern: the line is somebody else's, and may be made to take one for ever.
    text = line.strip().lower()
    is_comment = text.startswith("#") or (text.startswith("<!--") and text.endswith("-->"))
    return is_comment and "canary" in text
