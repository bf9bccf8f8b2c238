"""Speak to an engine: calls, streams, programs' connections. Nothing else imports its client.

aiodocker stands behind it: half the processor time of the blocking SDK for the same calls (5
against 10 ms for create, start, exec, remove) and no thread for a program that runs for an hour.
Its own archive calls hold a whole tree in memory, so streams go through its query functions.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from steelyard.components.environment import EnvironmentFault

if TYPE_CHECKING:
    import aiohttp
    from aiodocker.stream import Stream

T = TypeVar("T")

CHUNK_BYTES: Final = 1024 * 1024
_ANSWER_WAIT_S: Final = 300.0
"""No call of ours but builds, pulls and streams takes nearly as long, on any engine."""


class EngineRefusal(EnvironmentFault):
    """The engine answered, and it was a refusal."""

    def __init__(self, doing: str, status: int, message: str) -> None:
        super().__init__(f"{doing}: {message.strip()} (status {status})")
        self.status = status
        self.message = message


class EngineGone(EnvironmentFault):
    """The engine does not answer."""


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """What an engine says of itself."""

    name: str
    version: str
    is_podman: bool
    is_local: bool
    """Its processes are this machine's: sockets can be put into their networks."""
    is_rootless: bool
    has_cgroup_v2: bool
    storage_folder: str | None
    """Where its containers' files lie, where it is local."""


class Engine:
    """A client of one engine, bound to one event loop."""

    def __init__(self, host: str) -> None:
        """Take the address; nothing is connected yet."""
        import aiodocker
        import aiohttp

        self.host = host
        self._session: aiohttp.ClientSession | None = None
        if host.startswith("unix://"):
            # Without a bound: each program that runs holds one connection.
            connector = aiohttp.UnixConnector(host.removeprefix("unix://"), limit=0)
            self._session = aiohttp.ClientSession(connector=connector, read_bufsize=CHUNK_BYTES)
            host = "unix://localhost"  # what stands in a URL has no slashes
        self._client = aiodocker.Docker(url=host, session=self._session)
        self._facts: EngineFacts | None = None

    async def facts(self) -> EngineFacts:
        """Ask the engine what it is, once."""
        if self._facts is None:
            version = await self.call("GET", "version", doing="asking the engine for its version")
            info = await self.call("GET", "info", doing="asking the engine about itself")
            self._facts = _facts(self.host, version, info)
        return self._facts

    async def call(
        self,
        method: str,
        path: str,
        *,
        doing: str,
        params: Mapping[str, Any] | None = None,
        body: Any = None,
        wait_s: float | None = _ANSWER_WAIT_S,
    ) -> Any:
        """Make one call; its answer as JSON, or as text where it is none.

        Raises:
            EngineRefusal: the engine said no.
            EngineGone: it does not answer.
        """
        async with self.answer(
            method, path, doing=doing, params=params, body=body, wait_s=wait_s
        ) as response:
            return await _content(response)

    @asynccontextmanager
    async def answer(
        self,
        method: str,
        path: str,
        *,
        doing: str,
        params: Mapping[str, Any] | None = None,
        body: Any = None,
        tar: AsyncIterator[bytes] | bytes | None = None,
        wait_s: float | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Make one call; its answer to be read by the caller, piece by piece.

        Args:
            method: the HTTP method.
            path: below the API's version.
            doing: what it is for, for the fault.
            params: the query.
            body: sent as JSON.
            tar: sent as it is, in its place.
            wait_s: the most that it may take; None where it may take long.

        Raises:
            EngineRefusal: the engine said no.
            EngineGone: it does not answer.
        """
        import aiohttp
        import orjson
        from aiodocker import DockerError

        kind = "application/json" if tar is None else "application/x-tar"
        data = tar if tar is not None else orjson.dumps(body) if body is not None else None
        response = None
        try:
            # aiodocker's own call wants a body in every refusal, and HEAD has none.
            await self._client._check_version()
            response = await self._client.session.request(
                method,
                self._client._canonicalize_url(path),
                params=dict(params or {}),
                data=data,
                headers={"Content-Type": kind},
                timeout=aiohttp.ClientTimeout(total=wait_s),
            )
            if response.status >= 400:
                raise EngineRefusal(doing, response.status, await _refusal(response))
            yield response
        except (aiohttp.ClientError, TimeoutError, DockerError) as error:
            raise EngineGone(f"{doing}: {self._broke_off(error)}") from error
        finally:
            if response is not None:
                # What was not read is not waited for; a read-out connection is used again.
                if response.content.at_eof():
                    response.release()
                else:
                    response.close()

    @asynccontextmanager
    async def program(self, exec_id: str) -> AsyncIterator[Connection]:
        """Start a prepared program; its streams.

        Raises:
            EngineRefusal: it cannot be started.
            EngineGone: the engine does not answer.
        """
        import aiodocker
        import aiohttp
        from aiodocker.execs import Exec

        doing = "starting a program"
        stream = Exec(self._client, exec_id, tty=False).start(detach=False)
        try:
            await stream.__aenter__()
            yield Connection(stream)
        except aiodocker.DockerError as error:
            raise EngineRefusal(doing, error.status, str(error.message)) from error
        except (aiohttp.ClientError, ConnectionError) as error:
            raise EngineGone(f"{doing}: {self._broke_off(error)}") from error
        finally:
            if stream._resp is not None and not stream._closed and stream._resp.connection is None:
                stream._closed = True  # lost already; its own `close` would stumble
            transport = None if stream._closed else _transport(stream)
            await stream.close()
            if transport is not None:
                # Closed alone it would wait, beyond the loop's end, to send what nobody reads:
                # Docker leaves the connection open for that as long as the container is there.
                transport.abort()

    def _broke_off(self, error: Exception) -> str:
        return f"the engine at {self.host} does not answer: {error or type(error).__name__}"

    async def close(self) -> None:
        """Close every connection."""
        await self._client.close()
        if self._session is not None:
            await self._session.close()


class Connection:
    """The streams of one program."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    async def read(self) -> tuple[int, bytes] | None:
        """Read what comes next: 1 or 2 for the stream, and bytes; None at the end."""
        message = await self._stream.read_out()
        return None if message is None else (message.stream, message.data)

    async def write(self, data: bytes) -> None:
        """Send the program's whole input, then its end. A program that has ended is no fault."""
        try:
            for start in range(0, len(data), CHUNK_BYTES):
                await self._stream.write_in(data[start : start + CHUNK_BYTES])
            transport = _transport(self._stream)
            # aiodocker can only close both ways at once: the answer would be lost.
            if transport is not None and transport.can_write_eof():
                transport.write_eof()
        except (ConnectionError, RuntimeError, AssertionError):
            return


def _transport(stream: Stream) -> asyncio.Transport | None:
    connection = None if stream._resp is None else stream._resp.connection
    return None if connection is None else connection.transport


async def _refusal(response: aiohttp.ClientResponse) -> str:
    """Give the reason of a refusal."""
    said = await _content(response)
    if isinstance(said, dict) and said.get("message"):
        # Podman puts what it was doing in front, and the reason into `cause` as well.
        return str(said["message"])
    return str(said or response.reason or "no reason given")


async def _content(response: aiohttp.ClientResponse) -> Any:
    import orjson

    raw = await response.read()
    if not raw:
        return None
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        return raw.decode("utf-8", "replace")


def _facts(host: str, version: Mapping[str, Any], info: Mapping[str, Any]) -> EngineFacts:
    names = [str(part.get("Name", "")) for part in version.get("Components") or ()]
    is_podman = any("podman" in name.lower() for name in names)
    security = [str(option) for option in info.get("SecurityOptions") or ()]
    is_local = host.startswith("unix://") and "desktop" not in str(info.get("OperatingSystem", ""))
    return EngineFacts(
        name="podman" if is_podman else "docker",
        version=str(version.get("Version", "?")),
        is_podman=is_podman,
        is_local=is_local,
        is_rootless=bool(info.get("Rootless")) or any("rootless" in one for one in security),
        has_cgroup_v2=str(info.get("CgroupVersion")) == "2",
        storage_folder=str(info["DockerRootDir"])
        if is_local and info.get("DockerRootDir")
        else None,
    )


async def finished(work: Coroutine[Any, Any, T]) -> T:
    """Wait for work that must come to its end, even where whoever waits is cancelled.

    A container that is being created when we are cancelled is one that somebody must remove.
    """
    future = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        if not future.done():
            await asyncio.wait({future})
        if not future.cancelled():
            future.exception()  # seen, or the loop would report it
        raise
