"""What a Dockerfile asks for, where it only brings files: then a sandbox can do without its image.

Understood are FROM, WORKDIR, COPY of the folder's own files, and ENV with plain values. Anything
else, RUN above all, means that the image is needed.
"""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from steelyard.benchmarks.pack.paths import PathProblem, relative_parts

_SILENT: Final = frozenset({"CMD", "ENTRYPOINT", "LABEL", "EXPOSE", "MAINTAINER", "STOPSIGNAL"})
"""Instructions that change nothing for a session, whose programs are named by others."""


class NeedsImage(Exception):
    """The Dockerfile does what only a build can; its words are for people."""


@dataclass(frozen=True, slots=True)
class Copy:
    """A file or folder of the build's folder, and where it goes."""

    source: Path
    target: str
    """Relative to the working folder; `.` for a folder's content laid over it."""


@dataclass(slots=True)
class PlainImage:
    """All that a plain Dockerfile brings."""

    workdir: str = "/"
    copies: list[Copy] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)


def read_plain(context: Path, dockerfile: Path) -> PlainImage:
    """Read a Dockerfile that only brings files.

    Args:
        context: the folder that its COPY names files of.
        dockerfile: the file.

    Raises:
        NeedsImage: it does more, or puts files outside its working folder.
    """
    found = PlainImage()
    copies: list[tuple[list[str], str, str]] = []
    stages = 0
    for word, rest in _instructions(dockerfile.read_text("utf-8", "replace")):
        if word == "FROM":
            stages += 1
            if stages > 1:
                raise NeedsImage("its Dockerfile has several stages")
        elif word == "WORKDIR":
            found.workdir = posixpath.normpath(posixpath.join(found.workdir, _plain(rest)))
        elif word == "ENV":
            found.env.update(_variables(rest))
        elif word == "COPY":
            words = [part for part in _split(rest) if not part.startswith("--chown=")]
            if len(words) < 2 or any(part.startswith(("--", "[")) for part in words):
                raise NeedsImage(f"its Dockerfile has `COPY {rest}`")
            copies.append((words[:-1], _plain(words[-1]), found.workdir))
        elif word not in _SILENT:
            raise NeedsImage(f"its Dockerfile has {word}")
    for sources, target, here in copies:
        found.copies += _copied(context, sources, target, here, found.workdir)
    return found


def _instructions(text: str) -> Iterator[tuple[str, str]]:
    lines = (line for line in text.split("\n") if not line.lstrip().startswith("#"))
    whole = "\n".join(lines).replace("\\\r\n", " ").replace("\\\n", " ")
    for line in whole.split("\n"):
        word, _, rest = line.strip().partition(" ")
        if word:
            yield word.upper(), rest.strip()


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise NeedsImage(f"a line of its Dockerfile cannot be read: {error}") from error


def _plain(text: str) -> str:
    if "$" in text:
        raise NeedsImage(f"its Dockerfile has a variable in {text!r}")
    return text


def _variables(text: str) -> dict[str, str]:
    words = _split(_plain(text))
    if words and "=" not in words[0]:
        return {words[0]: " ".join(words[1:])}
    return dict(word.partition("=")[::2] for word in words)


def _copied(
    context: Path, sources: list[str], target: str, here: str, workdir: str
) -> Iterator[Copy]:
    absolute = posixpath.normpath(posixpath.join(here, target))
    inside = posixpath.relpath(absolute, workdir)
    if inside.startswith(".."):
        raise NeedsImage(f"its Dockerfile copies to {absolute}, outside {workdir}")
    is_folder = target.endswith(("/", "/.")) or target in (".", "./") or absolute == workdir
    found = [path for source in sources for path in _sources(context, source)]
    for path in found:
        if path.is_dir():
            yield Copy(path, inside)
        elif is_folder or len(found) > 1:
            yield Copy(path, posixpath.normpath(posixpath.join(inside, path.name)))
        else:
            yield Copy(path, inside)


def _sources(context: Path, source: str) -> list[Path]:
    if "**" in source:
        raise NeedsImage(f"its Dockerfile copies {source!r}")
    source = _plain(source).removeprefix("/").removeprefix("./").rstrip("/")
    if source in ("", "."):
        return [context]
    try:
        relative_parts(source)
    except PathProblem as error:
        raise NeedsImage(f"its Dockerfile copies {source!r}: {error}") from error
    found = sorted(context.glob(source)) if any(c in source for c in "*?[") else [context / source]
    if not found or not all(path.exists() for path in found):
        raise NeedsImage(f"its Dockerfile copies {source!r}, which is not there")
    return found
