"""The processes around the gateway's measure: the endpoint, the gateway itself, its floor.

`python -m benchmarks.gateway_parts endpoint` answers calls and stamps each piece of a stream with
the machine's monotonic clock. `… gateway URL FILE` is the product's gateway before that endpoint,
its steps appended to FILE; `… floor URL FILE` is a bare relay that does what no gateway can leave
out. Each prints where it listens (and its token), then, for each line on its standard input, the
CPU seconds that it has used.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any, cast

import orjson

PIECES = 20
PIECE_S = 0.1
"""Between two pieces of a stream."""
ANSWER = {
    "id": "c-1",
    "object": "chat.completion",
    "created": 1,
    "model": "bench",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "An answer of a few words. " * 20},
            "finish_reason": "stop",
        }
    ],
    "usage": {"prompt_tokens": 900, "completion_tokens": 120, "total_tokens": 1020},
}
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def read_message(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """Read head and body of a request or answer that says its length."""
    head = await reader.readuntil(b"\r\n\r\n")
    low = head.lower()
    at = low.index(b"content-length:") + 15
    return head, await reader.readexactly(int(low[at : low.index(b"\r\n", at)]))


async def endpoint(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer calls as an endpoint does, whole or as a stream."""
    whole = orjson.dumps(ANSWER)
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    try:
        while True:
            _, body = await read_message(reader)
            if b'"stream":true' not in body:
                writer.write(head % len(whole) + whole)
                continue
            writer.write(
                b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
                b"transfer-encoding: chunked\r\n\r\n"
            )
            for number in range(PIECES):
                await asyncio.sleep(PIECE_S)
                last = number == PIECES - 1
                piece = {
                    "model": "bench",
                    "choices": [
                        {
                            "index": 0,
                            "delta": {"content": f"{number} {time.monotonic()!r} "},
                            "finish_reason": "stop" if last else None,
                        }
                    ],
                }
                data = b"data: " + orjson.dumps(piece) + b"\n\n"
                writer.write(b"%x\r\n%b\r\n" % (len(data), data))
            end = b"data: [DONE]\n\n"
            writer.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(end), end))
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


class Relay(asyncio.Protocol):
    """The floor: reads the JSON, sends it on over a connection kept open, keeps a record."""

    def __init__(self, port: int, file: int) -> None:
        self._port = port
        self._file = file
        self._buffer = b""
        self._up: asyncio.Transport | None = None
        self._down: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._down = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, found, body = self._buffer.partition(b"\r\n\r\n")
        at = head.lower().find(b"content-length:") + 15
        if not found or len(body) < int(head[at : at + 12].partition(b"\r\n")[0]):
            return
        self._buffer = b""
        asked = orjson.loads(body)
        request = (
            b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n"
            % len(body)
        ) + body
        if self._up is not None:
            self._up.write(request)
            return
        asyncio.get_running_loop().create_task(self._connect(request, asked))

    async def _connect(self, request: bytes, asked: Any) -> None:
        loop = asyncio.get_running_loop()
        up, _ = await loop.create_connection(lambda: RelayUp(self), "127.0.0.1", self._port)
        self._up = up
        up.write(request)

    def answered(self, data: bytes) -> None:
        """Pass an answer back, its record first."""
        body = data.partition(b"\r\n\r\n")[2]
        said = orjson.loads(body)
        message = said["choices"][0]["message"]["content"]
        line = orjson.dumps({"source": "agent", "message": message, "usage": said["usage"]})
        os.write(self._file, line + b"\n")
        self._down.write(data)


class RelayUp(asyncio.Protocol):
    """The relay's side towards the endpoint."""

    def __init__(self, relay: Relay) -> None:
        self._relay = relay
        self._buffer = b""

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, found, body = self._buffer.partition(b"\r\n\r\n")
        at = head.lower().find(b"content-length:") + 15
        if found and len(body) >= int(head[at : at + 12].partition(b"\r\n")[0]):
            whole, self._buffer = self._buffer, b""
            self._relay.answered(whole)


async def run_floor(port: int, file: int) -> None:
    """Serve the bare relay."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Relay(port, file), "127.0.0.1", 0, backlog=1024)
    await say_cpu({"port": server.sockets[0].getsockname()[1], "token": "none"})


async def run_gateway(port: int, file: int) -> None:
    """Serve the product's gateway, its steps appended as the engine does."""
    from steelyard.components.clock import AgentTimer, SystemClock
    from steelyard.components.steps import Step
    from steelyard.config.redaction import Redactor
    from steelyard.config.secrets import SecretStore
    from steelyard.models.allowance import Allowance
    from steelyard.models.client import make_endpoint
    from steelyard.models.gateway import Gateway

    secrets = SecretStore({"KEY": "sk-a-key-of-the-benchmark"})
    secrets.put_variable("KEY")
    settings = {
        "id": "bench",
        "base_url": f"http://127.0.0.1:{port}/v1",
        "api_key": {"$secret": "env:KEY"},
        "max_connections": 512,
    }
    clock = SystemClock()
    made = make_endpoint(settings, secrets, clock=clock, seed=0)
    gateway = await Gateway.start(made, redact=Redactor(secrets).raw)

    def append(step: Step) -> None:
        os.write(file, orjson.dumps(step.as_json()) + b"\n")

    ticket = gateway.admit(
        timer=AgentTimer(clock), allowance=Allowance(), on_step=append, on_fault=print
    )
    secrets.put("token", ticket.token)
    listening = await gateway.host_url()
    await say_cpu({"port": int(listening.rpartition(":")[2]), "token": ticket.token})
    await gateway.close()
    await made.close()


async def run_endpoint() -> None:
    """Serve the endpoint."""
    server = await asyncio.start_server(endpoint, "127.0.0.1", 0, backlog=1024)
    await say_cpu({"port": server.sockets[0].getsockname()[1], "token": "none"})


async def say_cpu(where: dict[str, Any]) -> None:
    """Say where we listen, then the CPU used so far for every line that comes in."""
    print(json.dumps(where), flush=True)
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while await reader.readline():
        print(json.dumps(time.process_time()), flush=True)


def main() -> None:
    """Run one part."""
    part, *rest = sys.argv[1:]
    if part == "endpoint":
        asyncio.run(run_endpoint())
        return
    port, path = rest
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    asyncio.run((run_gateway if part == "gateway" else run_floor)(int(port), file))


if __name__ == "__main__":
    main()
