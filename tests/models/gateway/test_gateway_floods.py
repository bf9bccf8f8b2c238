"""An agent that floods the gateway holds up nobody else, and fills no memory."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import pytest

from steelyard.models.gateway import connection
from steelyard.models.gateway.connection import Connection
from steelyard.models.gateway.requests import Bounds, Head, Reply
from tests.models.gateway.serving import PATHS, Attempt, ask, body_of, served

HOST = "host: localhost\r\n"
CHAT = PATHS["openai-chat"]


class _Wire(asyncio.Transport):
    """A transport that keeps what is written, and says whether reading is wanted."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.reads = True

    def write(self, data: Any) -> None:
        self.written += bytes(data)

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True

    def abort(self) -> None:
        return

    def close(self) -> None:
        return


class _Counting:
    """An `Answerer` that takes every body and answers nothing of sense."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.tasks: set[asyncio.Task[None]] = set()
        self.held: list[int] = []

    def has_room(self) -> bool:
        return True

    def admit(self, head: Head) -> Any:
        return Reply(200, b"ok") if head.method == "GET" else self

    def start(self, work: Any) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    def hold(self, body_bytes: int) -> None:
        self.held.append(body_bytes)

    def close(self) -> None:
        return

    async def run(self, body: bytes, out: Connection) -> None:
        self.bodies.append(body)
        out.reply(Reply(200, b""))


def fed(talk: Callable[[Connection, _Wire, _Counting], Any]) -> None:
    """Let a test feed a connection that has no socket."""

    async def go() -> None:
        answerer, wire = _Counting(), _Wire()
        made = Connection(answerer, set(), Bounds())
        made.connection_made(wire)
        try:
            await talk(made, wire, answerer)
        finally:
            made.connection_lost(None)
            await asyncio.sleep(0)

    asyncio.run(go())


def test_requests_sent_at_once_are_answered_one_a_turn() -> None:
    async def talk(made: Connection, wire: _Wire, answerer: _Counting) -> None:
        made.data_received(f"GET / HTTP/1.1\r\n{HOST}\r\n".encode() * 1000)
        for turn in range(10):
            assert wire.written.count(b"HTTP/1.1 200") <= turn + 1
            await asyncio.sleep(0)
        assert wire.written.count(b"HTTP/1.1 200") >= 1
        while wire.written.count(b"HTTP/1.1 200") < 1000:
            await asyncio.sleep(0)

    fed(talk)


def test_no_more_is_read_ahead_than_is_answered() -> None:
    """Each answer lets in what it has made room for, not another whole buffer."""
    burst = f"GET / HTTP/1.1\r\n{HOST}\r\n".encode() * 5000

    async def talk(made: Connection, wire: _Wire, answerer: _Counting) -> None:
        sent = 0
        for _ in range(200):
            if wire.reads:
                made.data_received(burst)
                sent += len(burst)
            await asyncio.sleep(0)
        answered = wire.written.count(b"HTTP/1.1 200") * len(burst) // 5000
        assert sent - answered <= connection.MAX_AHEAD_BYTES + 2 * len(burst)

    fed(talk)


def test_answers_that_nobody_reads_are_not_made() -> None:
    async def talk(made: Connection, wire: _Wire, answerer: _Counting) -> None:
        made.pause_writing()
        made.data_received(f"GET / HTTP/1.1\r\n{HOST}\r\n".encode() * 1000)
        for _ in range(50):
            await asyncio.sleep(0)
        assert wire.written.count(b"HTTP/1.1 200") == 1
        made.resume_writing()
        while wire.written.count(b"HTTP/1.1 200") < 1000:
            await asyncio.sleep(0)

    fed(talk)


def test_a_body_in_crumbs_is_read_a_little_a_turn_and_comes_whole() -> None:
    async def talk(made: Connection, wire: _Wire, answerer: _Counting) -> None:
        head = f"POST / HTTP/1.1\r\n{HOST}transfer-encoding: chunked\r\n\r\n".encode()
        made.data_received(head + b"2\r\nab\r\n" * 10_000)
        assert sum(answerer.held) <= 2 * connection.MAX_EVENTS_A_TURN
        made.data_received(b"2\r\nab\r\n" * 10_000 + b"0\r\n\r\n")
        turns = 0
        while not answerer.bodies:
            turns += 1
            await asyncio.sleep(0)
        assert turns >= 20_000 // connection.MAX_EVENTS_A_TURN - 1
        assert answerer.bodies == [b"ab" * 20_000]
        assert wire.reads

    fed(talk)


@pytest.mark.parametrize("target", ["/v1" * 20_000, "/v1" * 20_000 + "/models", "/" * 60_000])
def test_a_target_of_any_length_is_no_work(target: str) -> None:
    async def run() -> int:
        async with served() as (attempt, _):
            return (await ask(attempt, target)).status

    assert asyncio.run(run()) in (200, 404)


def test_who_hangs_up_in_mid_flood_leaves_no_words_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def run() -> Attempt:
        async with served() as (attempt, _):
            port = int(attempt.url.rpartition(":")[2])
            for _ in range(5):
                with socket.create_connection(("127.0.0.1", port)) as flood:
                    flood.sendall(f"GET / HTTP/1.1\r\n{HOST}\r\n".encode() * 1000)
                await asyncio.sleep(0.02)
            assert (await ask(attempt, CHAT, body_of("openai-chat"))).status == 200
            return attempt

    assert asyncio.run(run()).ticket.calls_succeeded == 1
    assert "socket.send" not in caplog.text
