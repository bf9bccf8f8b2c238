"""What a verifier in an environment of its own is given of the agent's."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import Any

from steelyard.benchmarks.harbor.folder import Part, TaskFolder
from steelyard.benchmarks.harbor.layout import IN_IMAGE, Layout
from steelyard.benchmarks.harbor.needs import verifier_of
from steelyard.benchmarks.harbor.schema import ArtifactTable

_RUN_EACH = """for command in "$@"; do
    /bin/sh -c "$command" || { echo "exit code $?: $command" >&2; failed=1; }
done
exit ${failed:-0}
"""


class NotBelow(ValueError):
    """A path outside what a session without an image has; its words are for people."""


def carried_paths(task: TaskFolder, part: Part, layout: Layout, workdir: str) -> tuple[str, ...]:
    """Give the paths that are carried over: what the agent published, and the task's artifacts.

    Args:
        task: the task.
        part: the part that is verified.
        layout: where things lie inside.
        workdir: the working folder as the task knows it.

    Raises:
        NotBelow: without an image, one of them lies outside the working folder.
    """
    paths = [layout.artifacts]
    paths += [_inside(artifact.source, layout, workdir) for artifact in _artifacts(task, part)]
    return tuple(dict.fromkeys(paths))


def excluded_patterns(
    task: TaskFolder, part: Part, layout: Layout, workdir: str
) -> list[tuple[str, str]]:
    """Give the patterns of what is not to be carried over, each with its folder."""
    return [
        (_inside(artifact.source, layout, workdir), pattern)
        for artifact in _artifacts(task, part)
        for pattern in artifact.exclude
    ]


def steps_artifacts(task: TaskFolder) -> dict[str, Any]:
    """Give, for the identity, what single steps name beside the task's artifacts."""
    found = [
        [one.model_dump() for one in part.step.artifacts] if part.step is not None else []
        for part in task.parts
    ]
    return {"step_artifacts": found} if any(found) else {}


def _artifacts(task: TaskFolder, part: Part) -> Iterator[ArtifactTable]:
    yield from task.table.artifacts
    if part.step is not None:
        yield from part.step.artifacts


def _inside(source: str, layout: Layout, workdir: str) -> str:
    path = posixpath.normpath(source)
    if layout is IN_IMAGE or not path.startswith("/"):
        return path
    if path == IN_IMAGE.logs or path.startswith(f"{IN_IMAGE.logs}/"):
        return layout.logs + path.removeprefix(IN_IMAGE.logs)
    relative = posixpath.relpath(path, workdir)
    if workdir == "/" or relative.startswith(".."):
        raise NotBelow(f"the artifact {source!r} lies outside the working folder {workdir}")
    return relative


def collect_command(task: TaskFolder, part: Part) -> tuple[str, ...] | None:
    """Give the one command that runs all of `[[verifier.collect]]`; None where there is none."""
    hooks = verifier_of(task, part).collect
    if not hooks:
        return None
    return ("/bin/sh", "-c", _RUN_EACH, "sh", *(hook.command for hook in hooks))


def collect_seconds(task: TaskFolder, part: Part) -> float:
    """Give what all of `[[verifier.collect]]` may take together, in seconds."""
    return sum(hook.timeout_sec for hook in verifier_of(task, part).collect)
