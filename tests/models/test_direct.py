"""Our own connections to an endpoint: whatever comes back is read, refused or named."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.config.errors import BadInput
from steelyard.models.address import header_pairs, parse_address
from steelyard.models.failures import CertificateRefused, ConnectionFailed, TooLarge
from steelyard.models.upstream import HttpAnswer, Upstream
from tests.models.gateway.serving import read_request, scripted

CERTIFICATE = Path(__file__).with_name("self_signed.pem")
HEADERS = [(b"host", b"x"), (b"content-length", b"2")]


@asynccontextmanager
async def upstream(url: str) -> AsyncIterator[Upstream]:
    made = Upstream(parse_address(url))
    try:
        yield made
    finally:
        await made.close()


async def post(made: Upstream, max_bytes: int = 100_000) -> HttpAnswer:
    return await asyncio.wait_for(made.post("/v1/x", HEADERS, b"{}", max_bytes), 10)


def answered(*pieces: bytes, is_left_open: bool = False, times: int = 1, **options: Any) -> Any:
    """What posts bring where an endpoint answers each with these pieces."""
    connections = 0

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        while True:
            try:
                await read_request(reader)
            except asyncio.IncompleteReadError:
                return
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0.001)
            if not is_left_open:
                return

    async def run() -> Any:
        async with scripted(handler) as url, upstream(url) as made:
            got = [await post(made, **options) for _ in range(times)]
            return (got[0] if times == 1 else got), connections

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("raw", "body"),
    [
        (b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello", b"hello"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", b""),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
            b"hello",
        ),
        (
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;a=b\r\nh\r\n0\r\nx: y\r\n\r\n",
            b"h",
        ),
        (b"HTTP/1.1 200 OK\r\n\r\nuntil the end", b"until the end"),
        (b"HTTP/1.0 200 OK\r\n\r\nuntil the end", b"until the end"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx", b"x"),
        (
            b"HTTP/1.1 103 Early\r\nlink: a\r\n\r\nHTTP/1.1 200\r\ncontent-length: 1\r\n\r\nx",
            b"x",
        ),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
    ],
)
@pytest.mark.parametrize("step", [1, 7, 10_000])
def test_an_answer_is_read_however_it_is_framed_and_cut(raw: bytes, body: bytes, step: int) -> None:
    got, _ = answered(*(raw[i : i + step] for i in range(0, len(raw), step)))
    assert got.status in (200, 204)
    assert got.body == body
    assert [name for name, _ in got.headers if name == b"link"] == []


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhel",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhel",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nhel",
        b"HTTP/1.1 200 OK\r\ncontent-le",
        b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nxx",
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"SSH-2.0-OpenSSH\r\n",
        b"<html>not HTTP</html>",
        b"\x15\x03\x01\x00\x02\x02\x46",
        b"HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nxx",
        b"HTTP/1.1 100 Continue\r\n\r\n",
    ],
)
def test_what_is_no_whole_answer_is_a_failed_connection(raw: bytes) -> None:
    with pytest.raises(ConnectionFailed):
        answered(raw)


def test_a_head_without_end_is_given_up() -> None:
    line = b"x: " + b"a" * 10_000 + b"\r\n"
    with pytest.raises(ConnectionFailed, match=r"too large|not HTTP"):
        answered(b"HTTP/1.1 200 OK\r\n", *([line] * 60), is_left_open=True)


def test_a_body_above_the_bound_is_cut() -> None:
    with pytest.raises(TooLarge):
        answered(
            b"HTTP/1.1 200 OK\r\ncontent-length: 9000\r\n\r\n",
            *([b"x" * 100] * 20),
            is_left_open=True,
            max_bytes=1000,
        )


OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


def test_a_connection_is_used_again() -> None:
    got, connections = answered(OK, is_left_open=True, times=5)
    assert [one.body for one in got] == [b"ok"] * 5
    assert connections == 1


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok",
        OK + OK.replace(b"ok", b"no"),
        OK + b"junk",
    ],
)
def test_a_connection_that_says_more_or_less_than_it_should_is_not(raw: bytes) -> None:
    got, connections = answered(raw, is_left_open=True, times=3)
    assert [one.body for one in got] == [b"ok"] * 3
    assert connections == 3


def test_a_connection_that_was_closed_meanwhile_is_not_used_again() -> None:
    got, connections = answered(OK, times=1)
    assert (got.body, connections) == (b"ok", 1)

    async def run() -> int:
        made_connections = 0

        async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal made_connections
            made_connections += 1
            await read_request(reader)
            writer.write(OK)

        async with scripted(handler) as url, upstream(url) as made:
            for _ in range(3):
                await post(made)
                await asyncio.sleep(0.05)
        return made_connections

    assert asyncio.run(run()) == 3


def test_idle_connections_grow_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("steelyard.models.upstream.KEEPALIVE_S", -1.0)
    _, connections = answered(OK, is_left_open=True, times=3)
    assert connections == 3


def test_a_call_that_is_cancelled_drops_its_connection() -> None:
    async def run() -> Any:
        lost = asyncio.Event()

        async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await read_request(reader)
            await reader.read()
            lost.set()

        async with scripted(handler) as url, upstream(url) as made:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await made.post("/v1/x", HEADERS, b"{}", 1000)
            await asyncio.wait_for(lost.wait(), 10)
            return len(made._idle), len(made._open)

    assert asyncio.run(run()) == (0, 0)


def test_a_refused_connection_is_named() -> None:
    async def run() -> None:
        async with upstream("http://127.0.0.1:9/v1") as made:
            await post(made)

    with pytest.raises(ConnectionFailed, match="9"):
        asyncio.run(run())


def test_an_untrusted_certificate_is_refused_and_a_trusted_one_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(OK)
        writer.close()

    async def run(host: str) -> bytes:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATE)
        server = await asyncio.start_server(handler, "127.0.0.1", 0, ssl=context)
        port = server.sockets[0].getsockname()[1]
        try:
            async with upstream(f"https://{host}:{port}/v1") as made:
                return (await post(made)).body
        finally:
            server.close()

    with pytest.raises(CertificateRefused, match="not trusted"):
        asyncio.run(run("127.0.0.1"))
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    assert asyncio.run(run("127.0.0.1")) == b"ok"


@given(data=st.binary(max_size=300), step=st.integers(1, 50))
@settings(max_examples=60, deadline=None)
def test_no_bytes_make_it_raise_anything_but_a_failure(data: bytes, step: int) -> None:
    from steelyard.models.direct import DirectAnswer, DirectConnection

    async def run() -> None:
        loop = asyncio.get_running_loop()
        ignore: Callable[[DirectConnection], None] = lambda _: None  # noqa: E731
        answer = DirectAnswer(DirectConnection(ignore, ignore), loop)
        for prefix in (b"", b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"):
            for i in range(0, len(prefix + data), step):
                answer.feed((prefix + data)[i : i + step])
        answer.lost(None)
        try:
            await answer.head()
            await answer.read(10_000)
        except ConnectionFailed:
            pass

    asyncio.run(run())


@pytest.mark.parametrize("name", ["x y", "x:", "", "x\r\ny", "ü"])
def test_a_header_name_that_http_does_not_allow_is_bad_input(name: str) -> None:
    with pytest.raises(BadInput):
        header_pairs({name: "v"})
