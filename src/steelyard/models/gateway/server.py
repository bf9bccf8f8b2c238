"""The gateway's listeners, and who is let in.

One gateway serves one request's endpoint, on the event loop of the process that runs its
attempts: it stands in the endpoint's own queue, and the key stays where it was revealed.
"""

from __future__ import annotations

import asyncio
import resource
import socket
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final

from steelyard.components.clock import AgentTimer
from steelyard.components.issues import AttemptFault, IssueCode
from steelyard.components.private_folders import PrivateFolder
from steelyard.components.steps import Step
from steelyard.config.errors import Fault
from steelyard.models.allowance import Allowance
from steelyard.models.client import Endpoint
from steelyard.models.gateway.connection import Connection
from steelyard.models.gateway.cover import Secrets
from steelyard.models.gateway.recording import Recorder
from steelyard.models.gateway.relay import ModelCall
from steelyard.models.gateway.requests import Bounds, Head, Reply, Work
from steelyard.models.gateway.routes import (
    Kind,
    error_reply,
    local_reply,
    route_of,
    stranger,
    tokens_of,
)
from steelyard.models.gateway.tickets import Ticket, Tickets

FOLDER_PREFIX: Final = "steelyard-gw-"
MAX_CONNECTIONS: Final = 1024
"""At one listener."""
MAX_OPEN: Final = 64 * MAX_CONNECTIONS
"""At all listeners, where the system has no bound on descriptors."""
MAX_STEP_BYTES: Final = 64 * 1024
BACKLOG: Final = 1024


_CLOSED: Final = "the model gateway was closed while the agent was at work"


class GatewayFault(Fault):
    """The gateway could not listen."""


class Gateway:
    """Serves one endpoint to the programs of many attempts; a `ModelGate`.

    Made by `start`, ended by `close`.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        redact: Callable[[bytes], bytes],
        max_step_bytes: int,
        bounds: Bounds,
    ) -> None:
        self._endpoint = endpoint
        self._redact = redact
        self._max_step_bytes = max_step_bytes
        self._bounds = bounds
        self._secrets = Secrets(endpoint.settings.secrets)
        self._tickets = Tickets()
        self._tasks: set[asyncio.Task[None]] = set()
        self._ends: list[Callable[[], None]] = []
        self._open: list[set[Connection]] = []
        # No session's programs may use up the descriptors that all attempts need.
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        self._max_open = MAX_OPEN if files == resource.RLIM_INFINITY else files // 2
        self._folder: PrivateFolder | None = None
        self._is_open = True
        self._host_url: str | None = None
        self._opening = asyncio.Lock()

    @classmethod
    async def start(
        cls,
        endpoint: Endpoint,
        *,
        redact: Callable[[bytes], bytes],
        max_step_bytes: int = MAX_STEP_BYTES,
        bounds: Bounds = Bounds(),  # noqa: B008 — frozen
    ) -> Gateway:
        """Start to listen, on a Unix socket of its own.

        Args:
            endpoint: what calls go to; it is not closed with the gateway.
            redact: applied to every text of a step.
            max_step_bytes: of one text in a step; the rest is cut.
            bounds: of requests.

        Raises:
            GatewayFault: no socket could be made.
        """
        made = cls(endpoint, redact=redact, max_step_bytes=max_step_bytes, bounds=bounds)
        try:
            made._folder = folder = PrivateFolder.make(FOLDER_PREFIX, endpoint.clock)
            path = str(folder.socket_path)
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                listener.bind(path)
            except OSError:
                listener.close()
                raise
            await made.serve(listener)
            # The folder keeps others out; bound into a sandbox, the socket alone is seen, perhaps
            # by another user id.
            folder.socket_path.chmod(0o666)
        except OSError as error:
            made._remove_folder()
            raise GatewayFault(
                f"the model gateway cannot listen on a Unix socket: {error}",
                remedy="set TMPDIR to a short path of a writable folder",
            ) from error
        return made

    @property
    def is_open(self) -> bool:
        """False once it is closed: nothing is served any more, by no listener."""
        return self._is_open

    @property
    def socket_path(self) -> Path:
        """The Unix socket, in a private folder."""
        if self._folder is None:
            raise RuntimeError("the gateway is closed")
        return self._folder.socket_path

    async def serve(self, listener: socket.socket) -> Callable[[], None]:
        """Serve what connects to a listening socket, until what is returned is called.

        The socket is the gateway's from here on, and closed by the call that ends it.

        Raises:
            GatewayFault: the gateway is closed.
        """
        if not self._is_open:
            listener.close()
            raise GatewayFault("the model gateway is closed")
        connections: set[Connection] = set()
        is_tcp = listener.family != socket.AF_UNIX
        entrance = _Entrance(self, connections, is_tcp=is_tcp)
        loop = asyncio.get_running_loop()
        make = loop.create_server if is_tcp else loop.create_unix_server
        try:
            server: asyncio.Server = await make(
                lambda: Connection(entrance, connections, self._bounds),
                sock=listener,
                backlog=BACKLOG,
            )
        except BaseException:
            listener.close()
            raise

        def end() -> None:
            server.close()
            for connection in list(connections):
                connection.abort()
            if end in self._ends:
                self._ends.remove(end)
                self._open = [one for one in self._open if one is not connections]

        self._ends.append(end)
        self._open.append(connections)
        return end

    async def host_url(self) -> str:
        """Give the address on this host's loopback, as `http://127.0.0.1:PORT`; opened once.

        Raises:
            GatewayFault: the gateway is closed.
        """
        async with self._opening:
            if self._host_url is None or not self._is_open:
                listener = socket.create_server(("127.0.0.1", 0), backlog=BACKLOG)
                port = listener.getsockname()[1]
                await self.serve(listener)
                self._host_url = f"http://127.0.0.1:{port}"
        return self._host_url

    def admit(
        self,
        *,
        timer: AgentTimer,
        allowance: Allowance,
        on_step: Callable[[Step], None],
        on_fault: Callable[[AttemptFault], None],
        seed: int | None = None,
    ) -> Ticket:
        """Make an attempt's ticket; valid until it is revoked.

        Args:
            timer: the attempt's.
            allowance: what it may spend; shared with its driver-side client.
            on_step: told each step as it happens.
            on_fault: told once that the attempt must end: its budget is spent, or the endpoint
                rejects every call.
            seed: goes out with calls of its programs that bring none, where the protocol has one.
        """
        settings = self._endpoint.settings
        ticket = Ticket(
            settings.model_id,
            settings.protocol.name,
            timer=timer,
            allowance=allowance,
            recorder=Recorder(settings.model_id, self._redact, self._max_step_bytes),
            on_step=on_step,
            on_fault=on_fault,
            forget=self._tickets.remove,
            seed=seed,
        )
        self._tickets.add(ticket)
        return ticket

    async def close(self) -> None:
        """Stop to listen, end every call, remove the socket. Safe to call twice.

        An attempt that is still let in has lost its way to the model: it is ended, and not blamed.
        """
        self._is_open = False
        for end in list(self._ends):
            end()
        self._ends.clear()
        for ticket in self._tickets.all():
            ticket.fail(AttemptFault(IssueCode.ENVIRONMENT_LOST, _CLOSED))
            await ticket.revoke()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        self._remove_folder()
        await asyncio.sleep(0)  # let aborted transports close their sockets

    # What connections call.

    def start_task(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Own a task that answers a request: `close` ends it."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def decide(self, head: Head, *, is_tcp: bool) -> Reply | Work:
        """Say what becomes of a request."""
        refusal = stranger(head, is_tcp=is_tcp)
        if refusal is not None:
            return refusal
        route = route_of(head)
        protocol = "openai-chat" if route is None else route.protocol
        if route is not None and route.kind is Kind.ROOT:
            return local_reply(route, self._endpoint.settings.model_id)
        ticket = self._tickets.find(tokens_of(head))
        if ticket is None:
            return error_reply(protocol, 401, "the token is not that of an attempt under way")
        if route is None:
            what = f"{head.method} {head.target[:100]}"
            return error_reply(protocol, 404, f"the gateway does not serve {what}")
        if route.kind in (Kind.MODELS, Kind.MODEL):
            return local_reply(route, self._endpoint.settings.model_id)
        return ModelCall(ticket, self._endpoint, self._secrets, route, head)

    def has_room(self, connections: set[Connection]) -> bool:
        """Tell whether one more connection may be open at a listener that has these."""
        most = min(MAX_CONNECTIONS, self._max_open // 2)
        return len(connections) < most and sum(map(len, self._open)) < self._max_open

    def _remove_folder(self) -> None:
        folder, self._folder = self._folder, None
        if folder is not None:
            folder.remove()


class _Entrance:
    """One listener's way in; an `Answerer` of its connections."""

    def __init__(self, gateway: Gateway, connections: set[Connection], *, is_tcp: bool) -> None:
        self._gateway = gateway
        self._connections = connections
        self._is_tcp = is_tcp

    def has_room(self) -> bool:
        return self._gateway.has_room(self._connections)

    def admit(self, head: Head) -> Reply | Work:
        return self._gateway.decide(head, is_tcp=self._is_tcp)

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return self._gateway.start_task(work)
