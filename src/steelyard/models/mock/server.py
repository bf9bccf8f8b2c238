"""The mock endpoint: takes a request, gives a reply, on loopback only."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from steelyard.config.errors import BadInput
from steelyard.config.errors import Fault as MachineFault
from steelyard.models.mock.answers import Source, fixed
from steelyard.models.mock.chance import NO_LATENCY, Latency, draw
from steelyard.models.mock.connection import Connection
from steelyard.models.mock.faults import Fault, Occasion, fault_for, spoil
from steelyard.models.mock.reply import Received, Reply, json_reply
from steelyard.models.mock.stats import Stats
from steelyard.models.mock.streams import events
from steelyard.models.mock.wire import (
    PATHS,
    Answer,
    Call,
    Malformed,
    answer_body,
    error_body,
    prompt_digest,
    read_call,
    served_tokens,
    token_counts,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

LOCAL_HOSTS: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})
COUNT_PATH: Final = "/v1/messages/count_tokens"


@dataclass(frozen=True, slots=True)
class MockSettings:
    """What the mock does."""

    sources: Sequence[Source] = ()
    """Asked in order; where none answers, the answer is `OK`."""
    faults: Sequence[Fault] = ()
    latency: Latency = NO_LATENCY
    chunk_delay_s: float = 0.0
    """Between the events of a stream."""
    seed: int = 0
    models: Sequence[str] = ("mock",)
    """What `/v1/models` lists; every model id is served."""
    required_key: str | None = None
    keep_bodies: int = 0
    host: str = "127.0.0.1"
    port: int = 0
    """0: any free one."""


class MockServer:
    """Answers requests; holds the counters that answers are drawn by."""

    def __init__(self, settings: MockSettings) -> None:
        self._settings = settings
        self._sources: tuple[Source, ...] = (*settings.sources, fixed("OK"))
        self._met: Counter[str] = Counter()
        self._answered: Counter[str] = Counter()
        self._hosts = LOCAL_HOSTS | {settings.host, f"[{settings.host}]"}
        self.stats = Stats(settings.keep_bodies)

    def answer(self, received: Received) -> Reply:
        """Give the reply to any request."""
        self.stats.enter()  # left by `finished`, after the reply
        refusal = self._refusal(received)
        if refusal is not None:
            return refusal
        path = unquote(received.path).rstrip("/") or "/"
        method = received.method
        if path in PATHS and method == "POST":
            self.stats.count(received)
            reply = self._model_call(PATHS[path], received)
            self.stats.by_status[str(reply.status or "none")] += 1
            return reply
        if path == COUNT_PATH and method == "POST":
            return self._count(received)
        if method in ("GET", "HEAD"):
            if path == "/v1/models":
                return json_reply(200, self._models())
            if path == "/stats":
                return json_reply(200, self.stats.as_json())
            if path == "/":
                return json_reply(200, {"name": "steelyard mock-model"})
        if path == "/reset" and method == "POST":
            self.reset()
            return json_reply(200, {"reset": True})
        return json_reply(404, error_body("openai-chat", 404, f"no {method} {path} here"))

    def reset(self) -> None:
        """Begin anew: counts, draws and faults as after the start."""
        self._met.clear()
        self._answered.clear()
        self.stats.reset()

    def finished(self) -> None:
        """Count a reply that is over."""
        self.stats.leave()

    def _refusal(self, received: Received) -> Reply | None:
        # A page in the user's browser must not reach us under a name of its own…
        if not self._is_ours(received.headers.get("host", "")):
            return json_reply(403, error_body("openai-chat", 403, "this host name is not served"))
        # … nor under ours: browsers send some calls to other sites unasked, and say from where.
        origin = received.headers.get("origin")
        if origin is not None and not self._is_ours(origin.partition("://")[2]):
            return json_reply(403, error_body("openai-chat", 403, "this origin is not served"))
        return None

    def _is_ours(self, host: str) -> bool:
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        return name.lower() in self._hosts

    def _key_refusal(self, protocol: str, received: Received) -> Reply | None:
        required = self._settings.required_key
        if required is None:
            return None
        given = received.headers.get("x-api-key")
        if given is None:
            given = received.headers.get("authorization", "").removeprefix("Bearer ")
        if hmac.compare_digest(given.encode(), required.encode()):
            return None
        return json_reply(401, error_body(protocol, 401, "the key is not valid"))

    def _model_call(self, protocol: str, received: Received) -> Reply:
        refusal = self._key_refusal(protocol, received)
        if refusal is not None:
            return refusal
        try:
            call = read_call(protocol, received.body)
        except Malformed as error:
            return json_reply(400, error_body(protocol, 400, str(error)))
        self.stats.by_model[call.model] += 1
        digest = prompt_digest(call.turns)
        key = f"{call.model}\x1f{digest}"
        occasion = Occasion(self.stats.calls - 1, self._met[key], digest, call.model)
        self._met[key] += 1
        seed = self._settings.seed
        delay_s = self._settings.latency.at(draw(seed, "latency", digest, occasion.of_prompt))
        fault = fault_for(self._settings.faults, occasion, seed)
        nth = self._answered[key]
        call = replace(call, nth=nth)
        if fault is not None:
            self.stats.by_fault[str(fault.status or fault.kind)] += 1
        try:
            answer = self._answer(call)
        except Exception as error:  # noqa: BLE001 — a user's function may raise anything
            message = f"the answering function failed: {type(error).__name__}: {error}"
            return json_reply(500, error_body(protocol, 500, message))
        reply = self._reply(call, answer, delay_s)
        if fault is not None and fault.kind not in ("slow_body", "wrong_usage"):
            return spoil(fault, call, reply)
        self._answered[key] = nth + 1
        given, written = served_tokens(call, answer)
        self.stats.input_tokens += given
        self.stats.output_tokens += written
        return reply if fault is None else spoil(fault, call, reply)

    def _answer(self, call: Call) -> Answer:
        for source in self._sources:
            answer = source(call)
            if answer is not None:
                return answer
        return Answer("OK")

    def _reply(self, call: Call, answer: Answer, delay_s: float) -> Reply:
        if not call.is_streaming:
            return json_reply(200, answer_body(call, answer), delay_s=delay_s)
        chunks = _spaced(events(call, answer), self._settings.chunk_delay_s)
        return Reply(200, chunks=chunks, content_type="text/event-stream", delay_s=delay_s)

    def _count(self, received: Received) -> Reply:
        refusal = self._key_refusal("anthropic", received)
        if refusal is not None:
            return refusal
        try:
            # The body is a call's without `max_tokens`.
            call = read_call("openai-chat", received.body)
        except Malformed as error:
            return json_reply(400, error_body("anthropic", 400, str(error)))
        return json_reply(200, {"input_tokens": token_counts(call, Answer())[0]})

    def _models(self) -> dict[str, object]:
        data = [
            {
                "id": name,
                "object": "model",
                "type": "model",
                "display_name": name,
                "created": 1_700_000_000,
                "created_at": "2023-11-14T22:13:20Z",
                "owned_by": "mock",
            }
            for name in self._settings.models
        ]
        ends = {"first_id": data[0]["id"], "last_id": data[-1]["id"]} if data else {}
        return {"object": "list", "data": data, "has_more": False, **ends}


def _spaced(blocks: Iterator[bytes], wait_s: float) -> Iterator[tuple[float, bytes]]:
    if wait_s <= 0:
        yield 0.0, b"".join(blocks)  # one write: clients must not count on one event a read
        return
    for block in blocks:
        yield wait_s, block


def check_host(host: str) -> None:
    """Refuse an address that others could reach.

    Raises:
        BadInput: it is not a loopback address.
    """
    try:
        is_loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_loopback = host == "localhost"
    if not is_loopback:
        raise BadInput(
            f"--host {host}: the mock endpoint serves this machine only",
            remedy="use 127.0.0.1 or ::1",
        )


@dataclass(frozen=True, slots=True)
class Listening:
    """A server that is up."""

    server: MockServer
    host: str
    port: int

    @property
    def url(self) -> str:
        """The base URL that all three protocols take."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/v1"


@asynccontextmanager
async def listening(settings: MockSettings) -> AsyncIterator[Listening]:
    """Serve while the block runs; every connection is dropped at its end.

    Raises:
        BadInput: the address is not loopback.
        MachineFault: the port is taken.
    """
    check_host(settings.host)
    mock = MockServer(settings)
    connections: set[Connection] = set()
    loop = asyncio.get_running_loop()
    try:
        server = await loop.create_server(
            lambda: Connection(mock.answer, connections, mock.finished),
            settings.host,
            settings.port,
            backlog=1024,
        )
    except OSError as error:
        raise MachineFault(
            f"cannot listen on {settings.host}:{settings.port}: {error.strerror}",
            remedy="give another --port, or 0 for any free one",
        ) from error
    try:
        yield Listening(mock, settings.host, server.sockets[0].getsockname()[1])
    finally:
        server.close()
        for connection in list(connections):
            connection.abort()
        await asyncio.sleep(0)  # let the aborted transports close their sockets
