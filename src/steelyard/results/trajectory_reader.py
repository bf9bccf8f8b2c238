"""Read trajectories back: steps out of an ATIF document, as they come, in bounded memory.

A small document is parsed at once. A large one is mapped, and cut into its steps by its brackets,
so that no more than one step is held. What does not match its record is not used.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

import orjson

from steelyard.components.analyzer import TrajectoryUnreadable
from steelyard.components.model import ToolCall
from steelyard.components.steps import Step, ToolResult

WHOLE_BYTES: Final = 1024 * 1024
"""Up to this a document is parsed at once."""
MAX_BYTES: Final = 512 * 1024 * 1024
"""Above this a document is not read."""
MAX_STEP_BYTES: Final = 8 * 1024 * 1024
"""Above this a step of a large document stands for itself with its size alone."""

_TOKEN: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[{}\[\]]', re.DOTALL)


def read_steps(root: Path, trajectory: Mapping[str, Any] | None) -> Iterator[Step]:
    """Iterate over the steps that a record's `trajectory` names; empty where it is None.

    Raises:
        TrajectoryUnreadable: it is missing, damaged, too large, or leads out of the run.
    """
    if trajectory is None:
        return
    path = _inside(root, trajectory.get("path"))
    with _opened(path) as file:
        fd = file.fileno()
        size = os.fstat(fd).st_size
        if size > MAX_BYTES:
            raise TrajectoryUnreadable(f"{path.name}: {size} bytes are too many to be read")
        try:
            if size <= WHOLE_BYTES:
                data = file.read(WHOLE_BYTES + 1)
                _check(data, trajectory, path)
                yield from _steps_of_whole(data, path)
                return
            with mmap.mmap(fd, size, access=mmap.ACCESS_READ) as mapped:
                _check(mapped, trajectory, path)
                yield from _steps_of_large(mapped, path)
        except (OSError, ValueError) as error:
            if isinstance(error, orjson.JSONDecodeError):
                raise TrajectoryUnreadable(f"{path.name}: not JSON: {error}") from error
            raise TrajectoryUnreadable(f"{path.name}: {error}") from error


def read_text(root: Path, relative: str, *, max_bytes: int) -> str | None:
    """Give the beginning of an attempt's text file; None where it cannot be read."""
    try:
        with _opened(_inside(root, relative)) as file:
            return file.read(max_bytes).decode("utf-8", "replace")
    except (OSError, TrajectoryUnreadable):
        return None


def step_of(data: Any) -> Step:
    """Read one step of an ATIF document; what is of another form is read as text, or left out."""
    if not isinstance(data, dict):
        raise TrajectoryUnreadable("a step is no object")
    observation = data.get("observation")
    results = observation.get("results") if isinstance(observation, dict) else None
    extra = data.get("extra")
    reasoning = data.get("reasoning_content")
    model = data.get("model_name")
    return Step(
        _text(data.get("source")),
        _text(data.get("message")),
        extra if isinstance(extra, dict) else {},
        tuple(_call(call) for call in _objects(data.get("tool_calls"))),
        tuple(
            ToolResult(_id(one.get("source_call_id")), _text(one.get("content")))
            for one in _objects(results)
        ),
        reasoning if isinstance(reasoning, str) else None,
        model if isinstance(model, str) else None,
    )


def _opened(path: Path) -> BinaryIO:
    """Open a regular file: no link, no folder, nothing that blocks."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise TrajectoryUnreadable(f"{path.name}: {error.strerror or error}") from error
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise TrajectoryUnreadable(f"{path.name}: it is no regular file")
    return os.fdopen(fd, "rb")


def _inside(root: Path, relative: Any) -> Path:
    if not isinstance(relative, str) or not relative or "\0" in relative:
        raise TrajectoryUnreadable("its record names no path")
    if Path(relative).is_absolute() or ".." in Path(relative).parts:
        raise TrajectoryUnreadable(f"{relative!r} leads out of the run")
    return root / relative


def _check(data: bytes | mmap.mmap, trajectory: Mapping[str, Any], path: Path) -> None:
    expected = trajectory.get("sha256")
    if isinstance(expected, str) and hashlib.sha256(data).hexdigest() != expected:
        raise TrajectoryUnreadable(f"{path.name}: its content is not what its record says")


def _steps_of_whole(data: bytes, path: Path) -> Iterator[Step]:
    document = orjson.loads(data)
    steps = document.get("steps") if isinstance(document, dict) else None
    if not isinstance(steps, list):
        raise TrajectoryUnreadable(f"{path.name}: it has no steps")
    for step in steps:
        yield step_of(step)


def _steps_of_large(data: mmap.mmap, path: Path) -> Iterator[Step]:
    """Find the objects of the array under `steps` by counting brackets outside of strings."""
    depth, begins = 0, 0
    has_key = is_inside = has_steps = False
    for token in _TOKEN.finditer(data):
        first = data[token.start()]
        if first == 0x22:  # a string
            has_key = depth == 1 and token.group() == b'"steps"'
            continue
        if first in b"{[":
            if depth == 1 and has_key and first == 0x5B:
                is_inside = has_steps = True
            elif is_inside and depth == 2:
                begins = token.start()
            depth += 1
        else:
            depth -= 1
            if is_inside and depth == 2:
                yield _large_step(data, begins, token.end())
            elif is_inside and depth == 1:
                is_inside = False
        has_key = False
    if depth or not has_steps:
        raise TrajectoryUnreadable(f"{path.name}: it is cut off, or has no steps")


def _large_step(data: mmap.mmap, begins: int, ends: int) -> Step:
    if ends - begins > MAX_STEP_BYTES:
        return Step("system", f"[a step of {ends - begins} bytes is not read]")
    return step_of(orjson.loads(data[begins:ends]))


def _call(data: dict[str, Any]) -> ToolCall:
    arguments = data.get("arguments")
    if isinstance(arguments, dict) and set(arguments) == {"raw"}:
        # What was no JSON object stands as `raw`: see `results.trajectory`.
        written = _text(arguments["raw"])
    else:
        written = (
            arguments if isinstance(arguments, str) else orjson.dumps(arguments or {}).decode()
        )
    return ToolCall(_id(data.get("tool_call_id")) or "", _text(data.get("function_name")), written)


def _objects(data: Any) -> Iterator[dict[str, Any]]:
    return (item for item in data if isinstance(item, dict)) if isinstance(data, list) else iter(())


def _id(data: Any) -> str | None:
    return data if isinstance(data, str) else None


def _text(data: Any) -> str:
    if isinstance(data, str):
        return data
    if data is None:
        return ""
    if isinstance(data, list):  # ATIF allows parts: their texts are what there is to read
        return "\n".join(_text(part.get("text")) for part in _objects(data))
    return orjson.dumps(data).decode()
