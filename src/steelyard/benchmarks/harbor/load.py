"""Load a folder of tasks, with all that is wrong in any of them at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from steelyard.benchmarks.harbor.dockerfile import NeedsImage, PlainImage, read_plain
from steelyard.benchmarks.harbor.document import FILE, LEAVE_OUT
from steelyard.benchmarks.harbor.folder import TaskFolder, find_tasks, read_task
from steelyard.benchmarks.harbor.inputs import NotBelow, carried_paths
from steelyard.benchmarks.harbor.layout import IN_FOLDER
from steelyard.benchmarks.harbor.needs import missing_variables
from steelyard.benchmarks.pack.document import shown_path
from steelyard.config.errors import BadInput, Problem, Where

_MAX_PROBLEMS: Final = 200


@dataclass(frozen=True, slots=True)
class LoadedTask:
    """A task, and what stands in for its image where that is left out."""

    folder: TaskFolder
    plain: PlainImage | None = None
    """None: the task's image is used."""
    refusals: tuple[Problem, ...] = ()
    """Why it is not run: each attempt at it says so."""


def load_folder(
    root: Path, variables: Mapping[str, str], *, with_images: bool
) -> dict[str, LoadedTask]:
    """Load every task at and below a folder.

    Args:
        root: a folder of tasks, or one task.
        variables: what the tasks' `${NAME}` stand for.
        with_images: False where the programs of the environment are to do without.

    Raises:
        BadInput: there is none, or something is wrong with one.
    """
    shown = shown_path(root)
    if not root.is_dir():
        raise BadInput(
            "there is no such folder" if not root.exists() else "this is a file, not a folder",
            where=Where(shown),
            remedy=f"name a folder with {FILE}, or one of such folders",
        )
    try:
        found = find_tasks(root)
    except OSError as error:
        raise BadInput(f"cannot be read: {error.strerror}", where=Where(shown)) from error
    if not found:
        raise BadInput(
            f"there is no task in it: no folder with {FILE}",
            where=Where(shown),
            remedy="name a folder of task folders, or one of them",
        )
    tasks: dict[str, LoadedTask] = {}
    problems: list[Problem] = []
    for path in found:
        task, faults = read_task(path, shown=shown_path(path))
        problems += faults
        if task is None:
            continue
        if task.id in tasks:
            first = shown_path(tasks[task.id].folder.root)
            problems.append(
                Problem(f"there are two tasks {task.id!r}: {first} too", Where(shown_path(path)))
            )
            continue
        problems += missing_variables(task.document, variables)
        if with_images:
            problems += _without_image(task)
        tasks[task.id] = _loaded(task, with_images)
    if problems:
        count = len(problems) - _MAX_PROBLEMS
        more = [Problem(f"and {count} more")] if count > 0 else []
        raise BadInput.of([*problems[:_MAX_PROBLEMS], *more])
    return tasks


def _loaded(task: TaskFolder, with_images: bool) -> LoadedTask:
    refused = [*task.refusals]
    if with_images:
        return LoadedTask(task, None, tuple(refused))
    plain = PlainImage()
    dockerfile = task.environment / "Dockerfile"
    if dockerfile.is_file():
        try:
            plain = read_plain(task.environment, dockerfile)
        except NeedsImage as error:
            what = f"the task cannot do without its image: {error}"
            remedy = f"take `images: none` out and name an environment with images, or {LEAVE_OUT}"
            refused.append(Problem(what, Where(shown_path(dockerfile)), remedy))
    for part in task.parts:
        try:
            carried_paths(task, part, IN_FOLDER, plain.workdir)
        except NotBelow as error:
            remedy = "take `images: none` out"
            refused.append(
                task.document.problem(f"without its image {error}", "artifacts", remedy=remedy)
            )
    return LoadedTask(task, plain, tuple(refused))


def _without_image(task: TaskFolder) -> Iterator[Problem]:
    """A task must say which image it wants, unless it is to do without."""
    if task.table.environment.docker_image is not None:
        return
    if not (task.environment / "Dockerfile").is_file():
        yield Problem(
            "the task names no image: there is no Dockerfile, and task.toml has no docker_image",
            Where(f"{shown_path(task.root)}/environment"),
            "write one of them, or run it without an image: `images: none`",
        )
