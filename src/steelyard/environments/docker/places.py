"""Files of a container, by the engine's archive calls: the engine finds the way, in the container.

Links are resolved by the engine inside the container's own root; nothing of the host is in reach.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import concurrent.futures
import os
import posixpath
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import orjson

from steelyard.components.artifacts import ArtifactSpec, Collected
from steelyard.components.environment import EnvironmentFault
from steelyard.environments.docker import archives
from steelyard.environments.docker.archives import Bytes, Entry
from steelyard.environments.docker.engine import Engine, EngineRefusal
from steelyard.environments.files import Owner
from steelyard.environments.local_session import in_thread

if TYPE_CHECKING:
    import aiohttp

T = TypeVar("T")

_DIR: Final = 1 << 31
_LINK: Final = 1 << 27
_SPECIAL: Final = (1 << 26) | (1 << 25) | (1 << 24) | (1 << 21) | (1 << 19)
"""Bits of Go's `FileMode`: device, FIFO, socket, character device, irregular."""
_STAT_HEADER: Final = "X-Docker-Container-Path-Stat"
_MAX_LINKS: Final = 40
_BLOCK_BYTES: Final = 2 * archives.BLOCK_BYTES


@dataclass(frozen=True, slots=True)
class Status:
    """What stands at a path."""

    path: str
    """With no link left in its last part."""
    is_folder: bool
    is_file: bool
    size: int
    is_link: bool = False
    link: str = ""


class Places:
    """The files of one container."""

    def __init__(self, engine: Engine, container: str, workdir: str, owner: Owner) -> None:
        """Take the container's id, what relative paths start from, and whom new files belong to."""
        self._engine = engine
        self._container = container
        self._workdir = workdir
        self._owner = owner

    def absolute(self, path: str) -> str:
        """Give a path from the root, its dots kept.

        Raises:
            ValueError: it is no path.
        """
        if not path or "\0" in path:
            raise ValueError(f"{path!r}: not a path")
        return path if path.startswith("/") else f"{self._workdir}/{path}"

    async def status(self, path: str) -> Status | None:
        """Look at what a path names, links followed; None where there is nothing.

        Raises:
            ValueError: its links lead in a circle, or through what is no folder.
        """
        for _ in range(_MAX_LINKS):
            found = await self._look(path)
            if found is None or not found.is_link:
                return found
            path = _joined(found.path, found.link)
        raise ValueError(f"{path}: too many links")

    async def _look(self, path: str) -> Status | None:
        try:
            async with self._archive("HEAD", path) as response:
                return _status(path, response)
        except FileNotFoundError:
            return None
        except EngineRefusal:
            # HEAD has no words to say why; the same question again has.
            async with self._archive("GET", path) as response:
                return _status(path, response)

    async def write(self, path: str, data: bytes, mode: int) -> None:
        """Write a file, making its folders.

        Raises:
            ValueError: the path names something that is not a regular file.
        """
        place = self.absolute(path)
        there = await self.status(place)
        if there is not None:
            if not there.is_file:
                raise ValueError(f"{path}: not a regular file")
            place = there.path
        elif place.endswith(("/", "/.", "/..")):
            raise ValueError(f"{path}: a folder, not a file")
        folder, name = posixpath.split(place)
        await self._put_below(folder, [Entry(name, mode, data)], shown=path)

    async def make_folder(self, path: str) -> None:
        """Make a folder that may be there.

        Raises:
            ValueError: something else stands there.
        """
        there = await self.status(path)
        if there is None:
            folder, name = posixpath.split(path.rstrip("/"))
            await self._put_below(folder, [Entry(name, 0o755)], shown=path)
        elif not there.is_folder:
            raise ValueError(f"{path}: not a folder")

    async def _put_below(self, folder: str, entries: list[Entry], *, shown: str) -> None:
        """Write entries into a folder; folders that are missing on the way are made."""
        data = archives.packed_entries(entries, self._owner)
        try:
            await self._put(folder or "/", data)
            return
        except FileNotFoundError:
            missing: list[str] = []
        while folder not in ("", "/"):
            there = await self.status(folder)
            if there is not None:
                if not there.is_folder:
                    raise ValueError(f"{shown}: {folder} is not a folder")
                break
            folder, name = posixpath.split(folder.rstrip("/"))
            if name == "..":
                raise ValueError(f"{shown}: leads through a folder that is not there")
            if name != ".":
                missing.insert(0, name)
        way = ["/".join(missing[: count + 1]) for count in range(len(missing))]
        inner = "/".join(missing)
        below = [Entry(f"{inner}/{one.name}", one.mode, one.data) for one in entries]
        made = [Entry(one, 0o755) for one in way]
        await self._put(folder or "/", archives.packed_entries([*made, *below], self._owner))

    async def read(self, path: str, max_bytes: int) -> bytes:
        """Read a regular file.

        Raises:
            FileNotFoundError: there is none.
            ValueError: it is too large, or not a regular file.
        """
        place = await self._file_or_folder(path)
        if not place.is_file:
            raise ValueError(f"{path}: not a regular file")
        if place.size > max_bytes:
            raise ValueError(f"{path}: larger than {max_bytes} bytes")
        async with self._archive("GET", place.path) as response:
            data = await _in_reader(response, archives.first_file)
        if len(data) > max_bytes:
            raise ValueError(f"{path}: larger than {max_bytes} bytes")
        return data

    async def upload(self, source: Path, path: str) -> None:
        """Copy a file or a folder's content in.

        Raises:
            FileNotFoundError: there is no such source.
            ValueError: the path names something else.
        """
        place = self.absolute(path)
        if await in_thread(source.is_dir):
            await self.make_folder(place)
            await self._put(place, pieces(archives.packed_tree(source, self._owner)))
            return
        if not await in_thread(source.is_file):
            raise FileNotFoundError(f"{source}: no such file or folder")
        there = await self.status(place)
        if there is not None and not there.is_file:
            raise ValueError(f"{path}: not a regular file")
        folder, name = posixpath.split(place if there is None else there.path)
        if await self.status(folder or "/") is None:
            await self.make_folder(folder)
        await self._put(folder or "/", pieces(archives.packed_tree(source, self._owner, name=name)))

    async def download(self, path: str, target: Path) -> None:
        """Copy a file or folder out to a new path.

        Raises:
            FileNotFoundError: there is nothing at `path`.
            FileExistsError: there is something at `target`.
            ValueError: it is neither file nor folder, too deep or too large, or the whole system.
        """
        if await in_thread(os.path.lexists, target):
            raise FileExistsError(f"{target} exists")
        place = await self._file_or_folder(path)
        if not posixpath.normpath(place.path).strip("/"):
            raise ValueError(f"{path}: the whole file system is not copied")
        # Of `FOLDER/.` engines give the content without the one root that `unpack` takes away.
        whole = re.sub(r"(/\.?)+$", "", place.path)
        async with self._archive("GET", whole) as response:
            await _in_reader(response, lambda archive: archives.unpack(archive, target))

    async def collect(self, wanted: ArtifactSpec, target: Path) -> Collected:
        """Copy what is wanted below `target`, at the same paths."""
        found, taken = Collected(), set[tuple[str, ...]]()
        for path in wanted.paths:
            try:
                place, parts = await self._look(self.absolute(path)), self._place(path)
            except ValueError:
                found.leave_out("a path that leads out or cannot be read")
                continue
            if place is None:
                continue  # as the agent left it
            if place.is_link or not (place.is_file or place.is_folder):
                found.leave_out("link" if place.is_link else "not a regular file")
                continue
            await self._collect(place.path, parts, wanted, target, found, taken, by_pattern=False)
        if wanted.globs:
            await self._collect(
                self._workdir, (), wanted, target, found, taken, by_pattern=True
            )  # fmt: skip
        return found

    async def _collect(
        self, path: str, parts: tuple[str, ...], wanted: ArtifactSpec, target: Path,
        found: Collected, taken: set[tuple[str, ...]], *, by_pattern: bool,
    ) -> None:  # fmt: skip
        try:
            async with self._archive("GET", path) as response:
                await _in_reader(
                    response,
                    lambda archive: archives.collect(
                        archive, parts, wanted, target, found, taken=taken, by_pattern=by_pattern
                    ),
                )
        except FileNotFoundError:
            return
        except ValueError as error:
            found.leave_out(str(error))

    def _place(self, path: str) -> tuple[str, ...]:
        """Give the parts under which a path is kept."""
        parts = tuple(part for part in path.split("/") if part not in ("", "."))
        workdir = tuple(part for part in self._workdir.split("/") if part)
        if ".." in parts:
            raise ValueError(f"{path}: leads out")
        if path.startswith("/") and parts[: len(workdir)] == workdir:
            return parts[len(workdir) :]
        return parts

    async def _file_or_folder(self, path: str) -> Status:
        place = await self.status(self.absolute(path))
        if place is None:
            raise FileNotFoundError(f"{path}: no such file or folder")
        if not (place.is_file or place.is_folder):
            raise ValueError(f"{path}: not a regular file")
        return place

    async def _put(self, folder: str, tar: AsyncIterator[bytes] | bytes) -> None:
        async with self._archive("PUT", folder, tar) as response:
            await response.read()

    @asynccontextmanager
    async def _archive(
        self, method: str, path: str, tar: AsyncIterator[bytes] | bytes | None = None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        doing = {"PUT": "copying files in", "GET": "copying files out"}.get(method, "looking")
        if len(path.encode("utf-8", "surrogateescape")) > 4096:
            raise ValueError("the path is too long")
        try:
            async with self._engine.answer(
                method, f"containers/{self._container}/archive", doing=f"{doing} ({path[:200]})",
                params={"path": path}, tar=tar,
            ) as response:  # fmt: skip
                yield response
        except EngineRefusal as error:
            raise _meaning(error, path) from error


def _meaning(error: EngineRefusal, path: str) -> Exception:
    """Tell a path that is not there from a container that is not."""
    said = error.message.lower()
    if "no such container" in said or "is not running" in said:
        return EnvironmentFault("the session's container is gone")
    if error.status == 404 or "no such file" in said or "could not be found" in said:
        return FileNotFoundError(f"{path}: no such file or folder")
    if any(word in said for word in ("symbolic link", "symlink", "not a directory", "name too")):
        return ValueError(f"{path}: {error.message}")
    return error


def _status(path: str, response: Any) -> Status:
    try:
        said = orjson.loads(base64.b64decode(response.headers.get(_STAT_HEADER, "")))
        mode, link = int(said["mode"]), str(said.get("linkTarget") or "")
    except (binascii.Error, ValueError, KeyError, TypeError) as error:
        raise EnvironmentFault(f"the engine does not say what {path} is") from error
    is_link = bool(mode & _LINK)
    is_folder = bool(mode & _DIR)
    return Status(
        path, is_folder, not (is_link or is_folder or mode & _SPECIAL), int(said.get("size") or 0),
        is_link, link,
    )  # fmt: skip


def _joined(path: str, link: str) -> str:
    return link if link.startswith("/") else posixpath.join(posixpath.dirname(path), link)


async def pieces(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Give a blocking iterator's pieces, each made in a thread."""
    while (piece := await in_thread(next, pieces, b"")) != b"":
        yield piece


async def _in_reader(response: aiohttp.ClientResponse, read: Callable[[Bytes], T]) -> T:
    """Read an answer's archive in a thread, a block at a time; a bad one is a `ValueError`."""
    import tarfile

    loop = asyncio.get_running_loop()
    ahead: list[concurrent.futures.Future[bytes]] = []

    async def block() -> bytes:
        parts, size = [], 0
        while size < _BLOCK_BYTES and (piece := await response.content.readany()):
            parts.append(piece)
            size += len(piece)
        return b"".join(parts)

    def next_piece() -> bytes:
        # The next block is read while this one is written.
        data = (ahead.pop() if ahead else asyncio.run_coroutine_threadsafe(block(), loop)).result()
        if data:
            ahead.append(asyncio.run_coroutine_threadsafe(block(), loop))
        return data

    try:
        return await in_thread(read, Bytes(next_piece))
    except tarfile.TarError as error:
        raise ValueError(f"the engine's archive cannot be read: {error}") from error
    finally:
        for future in ahead:
            future.cancel()
