"""A gateway before an endpoint, on one loop; shared by the tests of the gateway."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson

from steelyard.components.clock import AgentTimer, SystemClock
from steelyard.components.issues import AttemptFault
from steelyard.components.steps import Step
from steelyard.config.redaction import Redactor
from steelyard.config.secrets import SecretStore
from steelyard.models.allowance import Allowance
from steelyard.models.client import Endpoint
from steelyard.models.gateway import Gateway, Ticket
from steelyard.models.gateway.requests import Bounds
from steelyard.testing.endpoint import mock_endpoint
from tests.models.calling import endpoint

KEY = "sk-the-real-key-of-the-endpoint/+="
PATHS = {
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "anthropic": "/v1/messages",
}
PRICE = {"mock": {"input_per_mtok": 1e6, "output_per_mtok": 2e6, "cached_per_mtok": None}}


@dataclass
class Attempt:
    """One attempt's ticket, and what it was told."""

    gateway: Gateway
    endpoint: Endpoint
    secrets: SecretStore
    timer: AgentTimer
    ticket: Ticket = field(init=False)
    steps: list[Step] = field(default_factory=list)
    faults: list[AttemptFault] = field(default_factory=list)
    url: str = ""


async def admitted(
    gateway: Gateway, made: Endpoint, secrets: SecretStore, allowance: Allowance | None = None
) -> Attempt:
    """Admit an attempt."""
    attempt = Attempt(gateway, made, secrets, AgentTimer(SystemClock()))
    attempt.ticket = gateway.admit(
        timer=attempt.timer,
        allowance=allowance or Allowance(),
        on_step=attempt.steps.append,
        on_fault=attempt.faults.append,
    )
    attempt.url = await gateway.host_url()
    return attempt


@asynccontextmanager
async def gateway_before(
    url: str,
    *,
    allowance: Allowance | None = None,
    bounds: Bounds | None = None,
    max_step_bytes: int = 64 * 1024,
    prices: Any = PRICE,
    **fields: Any,
) -> AsyncIterator[Attempt]:
    """A gateway before the endpoint at a URL, and one attempt."""
    secrets = SecretStore({"KEY": KEY})
    secrets.put_variable("KEY")
    made = endpoint(url, secrets=secrets, prices=prices, api_key={"$secret": "env:KEY"}, **fields)
    gateway = await Gateway.start(
        made,
        redact=Redactor(secrets).raw,
        max_step_bytes=max_step_bytes,
        bounds=bounds or Bounds(),
    )
    try:
        attempt = await admitted(gateway, made, secrets, allowance)
        try:
            yield attempt
        finally:
            await attempt.ticket.revoke()  # as when its agent has ended
    finally:
        await gateway.close()
        await made.close()


@asynccontextmanager
async def served(
    *,
    faults: Any = (),
    mock: dict[str, Any] | None = None,
    **options: Any,
) -> AsyncIterator[tuple[Attempt, Any]]:
    """The attempt, and the mock endpoint that it reaches."""
    async with (
        mock_endpoint(faults=faults, **(mock or {})) as found,
        gateway_before(found.url, **options) as attempt,
    ):
        yield attempt, found


def body_of(protocol: str, text: str = "hello", **fields: Any) -> dict[str, Any]:
    """A request's body."""
    turns = [{"role": "user", "content": text}]
    if protocol == "openai-responses":
        return {"model": "mock", "input": turns, **fields}
    if protocol == "anthropic":
        return {"model": "mock", "max_tokens": 99, "messages": turns, **fields}
    return {"model": "mock", "messages": turns, **fields}


@dataclass
class Answer:
    """An answer as it came over the wire."""

    status: int
    headers: dict[str, str]
    body: bytes
    raw: bytes
    is_whole: bool = True

    def json(self) -> Any:
        """Its body."""
        return orjson.loads(self.body)


async def ask(
    attempt: Attempt,
    path: str,
    body: Any = None,
    *,
    method: str | None = None,
    token: str | None = None,
    headers: dict[str, str] | None = None,
) -> Answer:
    """Send one request over a connection of its own, byte by byte our own HTTP."""
    data = b"" if body is None else body if isinstance(body, bytes) else orjson.dumps(body)
    host, _, port = attempt.url.removeprefix("http://").partition(":")
    sent = {
        "host": f"{host}:{port}",
        "authorization": f"Bearer {attempt.ticket.token if token is None else token}",
        "connection": "close",
        **({} if body is None else {"content-length": str(len(data))}),
        **(headers or {}),
    }
    lines = [f"{method or ('GET' if body is None else 'POST')} {path} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in sent.items()]
    return await exchange(host, int(port), ("\r\n".join(lines) + "\r\n\r\n").encode() + data)


async def exchange(host: str, port: int, raw: bytes) -> Answer:
    """Send bytes, and read all that comes until the connection ends."""
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(raw)
        received = b""
        is_reset = False
        while True:
            try:
                piece = await reader.read(65536)
            except ConnectionResetError:
                is_reset = True
                break
            if not piece:
                break
            received += piece
    finally:
        writer.close()
    return parsed(received, is_reset)


def parsed(raw: bytes, is_reset: bool = False) -> Answer:
    """Read an answer's bytes; `is_whole` is False where its end is missing."""
    while raw.startswith(b"HTTP/1.1 100"):
        raw = raw.partition(b"\r\n\r\n")[2]
    head, _, rest = raw.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    status = int(lines[0].split(" ")[1]) if head else 0
    headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines[1:])}
    if headers.get("transfer-encoding") != "chunked":
        return Answer(status, headers, rest, raw, bool(head) and not is_reset)
    body = b""
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        if int(size, 16) == 0:
            return Answer(status, headers, body, raw)
        body += rest[: int(size, 16)]
        rest = rest[int(size, 16) + 2 :]
    return Answer(status, headers, body, raw, is_whole=False)


Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def scripted(handler: Handler) -> AsyncIterator[str]:
    """An endpoint that does what a test says; gives its base URL."""
    tasks: set[asyncio.Task[Any]] = set()

    async def handled(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await handler(reader, writer)
        except (asyncio.CancelledError, ConnectionError):
            pass  # a task of `start_server` that ends cancelled is logged as an error
        finally:
            writer.close()

    server = await asyncio.start_server(handled, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await asyncio.sleep(0)


async def read_request(reader: asyncio.StreamReader) -> bytes:
    """Read one request whole, head and body."""
    head = await reader.readuntil(b"\r\n\r\n")
    at = head.lower().index(b"content-length:") + 15
    return head + await reader.readexactly(int(head[at : head.index(b"\r\n", at)]))


SSE = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    """Frame a piece."""
    return b"%x\r\n%b\r\n" % (len(data), data)


@contextmanager
def running(work: Awaitable[Any]) -> Iterator[asyncio.Task[Any]]:
    """Run a task beside the block, and end it after."""
    task = asyncio.ensure_future(work)
    try:
        yield task
    finally:
        task.cancel()
