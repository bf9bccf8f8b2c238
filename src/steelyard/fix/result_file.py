"""Read the one channel by which a benchmark says what it measured.

A regular file with one name, at most 1 MiB, strict JSON: whatever a candidate put in its place is
refused with the reason, in bounded time and memory, and nothing is followed or waited for. Read
only when no process of the trial is left.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import stat
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

MAX_BYTES: Final = 1024 * 1024
MAX_DEPTH: Final = 16
MAX_DIGITS: Final = 309
"""Of an integer: more, and no float holds it."""
MAX_TASKS: Final = 100_000

_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_BRACKETS = re.compile(rb"[\[\]{}]")


class ResultRefused(Exception):
    """There is no result, or not one that can be believed; the message says why."""


@dataclass(frozen=True, slots=True)
class ResultFile:
    """What a benchmark wrote."""

    metrics: Mapping[str, float]
    """Those that are declared, in the order of their names."""
    tasks: Mapping[str, float]
    undeclared: tuple[str, ...]
    """Metrics nobody asked for; their values are not kept."""
    sha256: str
    """Of the file's bytes."""


def read_result(folder: Path, name: str, *, metrics: Collection[str]) -> ResultFile:
    """Read a result from a folder that only the trial could write to. Blocking.

    Args:
        folder: where it should be.
        name: what it should be called.
        metrics: those that must be there.

    Raises:
        ResultRefused: it is not there, is not a plain file, or does not say what it must.
    """
    return parse_result(_content(folder, name), metrics=metrics)


def _content(folder: Path, name: str) -> bytes:
    try:
        top = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise ResultRefused(f"the folder for the result is gone: {error.strerror}") from error
    try:
        # Looked at before it is opened: opening a device or a FIFO can have effects.
        _check_plain(os.stat(name, dir_fd=top, follow_symlinks=False))
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        fd = os.open(name, flags, dir_fd=top)
    except FileNotFoundError as error:
        raise ResultRefused("the benchmark wrote no result to $STEELYARD_RESULT_PATH") from error
    except OSError as error:
        raise ResultRefused(f"the result cannot be read: {error.strerror}") from error
    finally:
        os.close(top)
    with os.fdopen(fd, "rb", buffering=0) as file:
        _check_plain(os.fstat(fd))
        content = bytearray()
        while chunk := file.read(MAX_BYTES + 1 - len(content)):
            content += chunk
            if len(content) > MAX_BYTES:
                raise ResultRefused(f"the result is larger than {MAX_BYTES} bytes")
    return bytes(content)


def _check_plain(status: os.stat_result) -> None:
    kinds = {
        stat.S_IFLNK: "a link",
        stat.S_IFDIR: "a folder",
        stat.S_IFIFO: "a FIFO",
        stat.S_IFSOCK: "a socket",
        stat.S_IFCHR: "a device",
        stat.S_IFBLK: "a device",
    }
    if not stat.S_ISREG(status.st_mode):
        raise ResultRefused(
            f"the result is {kinds.get(stat.S_IFMT(status.st_mode), 'something else')}, "
            "not a regular file"
        )
    if status.st_nlink != 1:
        raise ResultRefused("the result has more than one name (a hard link)")
    if status.st_size > MAX_BYTES:
        raise ResultRefused(f"the result is larger than {MAX_BYTES} bytes")


def parse_result(content: bytes, *, metrics: Collection[str]) -> ResultFile:
    """Read a result's bytes; pure.

    Raises:
        ResultRefused: it does not say what it must.
    """
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ResultRefused(f"the result is not UTF-8 (byte {error.start})") from error
    _check_depth(content)
    try:
        document = json.loads(
            content,
            object_pairs_hook=_without_duplicates,
            parse_constant=_no_constant,
            parse_int=_integer,
            parse_float=_finite,
        )
    except ResultRefused:
        raise
    except (ValueError, RecursionError) as error:
        raise ResultRefused(f"the result is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise ResultRefused(f"the result is {_named(document)}, not an object with `metrics`")
    said = document.get("metrics")
    if not isinstance(said, dict):
        raise ResultRefused('the result has no `metrics`: write {"metrics": {"name": number}}')
    if missing := sorted(set(metrics) - set(said)):
        raise ResultRefused(f"the result lacks declared metrics: {', '.join(missing)}")
    values = {name: _number(f"metrics.{name}", said[name]) for name in sorted(metrics)}
    undeclared = tuple(sorted(str(name)[:200] for name in set(said) - set(metrics)))
    return ResultFile(
        values, _tasks(document.get("tasks")), undeclared, hashlib.sha256(content).hexdigest()
    )


def _tasks(said: Any) -> Mapping[str, float]:
    if said is None:
        return {}
    if not isinstance(said, dict):
        raise ResultRefused(f"`tasks` is {_named(said)}, not an object of numbers")
    if len(said) > MAX_TASKS:
        raise ResultRefused(f"`tasks` has more than {MAX_TASKS} members")
    return {name: _number(f"tasks.{name}", value) for name, value in said.items()}


def _number(place: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ResultRefused(f"{place[:200]} is {_named(value)}, not a finite number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ResultRefused(f"{place[:200]} is too large for a number")
    return number


def _named(value: Any) -> str:
    names = {bool: "a boolean", str: "a text", list: "a list", dict: "an object"}
    return "null" if value is None else names.get(type(value), "a number")


def _check_depth(content: bytes) -> None:
    depth = 0
    for found in _BRACKETS.finditer(_STRINGS.sub(b'""', content)):
        depth += 1 if found[0] in b"[{" else -1
        if depth > MAX_DEPTH:
            raise ResultRefused(f"the result is nested more than {MAX_DEPTH} levels deep")


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise ResultRefused(f"the result has the key {name[:200]!r} twice")
            seen.add(name)
    return made


def _no_constant(text: str) -> NoReturn:
    raise ResultRefused(f"the result holds {text}, which is no number of JSON")


def _integer(text: str) -> int:
    if len(text.lstrip("-")) > MAX_DIGITS:
        raise ResultRefused(f"the result holds an integer of {len(text)} digits")
    return int(text)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ResultRefused(f"the result holds {text[:50]}, which is not finite")
    return number
