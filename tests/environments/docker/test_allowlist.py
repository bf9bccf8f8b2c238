"""Which hosts a session reaches: names alone, and never a private address behind one."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.environments.docker.allowlist import Allowlist, normal
from steelyard.environments.docker.proxy import Proxy

LIST = Allowlist.of(["pypi.example", "*.files.example", "10.0.0.7"])


@pytest.mark.parametrize(
    "host", ["pypi.example", "PyPI.Example.", "a.files.example", "a.b.files.example", "10.0.0.7"]
)
def test_what_is_named_is_allowed(host: str) -> None:
    assert LIST.allows(host)


@pytest.mark.parametrize(
    "host",
    [
        "example", "xpypi.example", "pypi.example.evil", "files.example", "xfiles.example",
        "127.0.0.1", "::1", "[::1]", "0x7f.1", "2130706433", "10.0.0.8", "", ".", "a\r\nb",
        "pypi.example\0.evil", "pypi.exämple", "a@pypi.example",
    ],
)  # fmt: skip
def test_what_is_not_named_is_refused(host: str) -> None:
    assert not LIST.allows(host)


@pytest.mark.parametrize(
    ("host", "address", "is_allowed"),
    [
        ("a.files.example", "93.184.216.34", True),
        ("a.files.example", "127.0.0.1", False),
        ("a.files.example", "10.1.2.3", False),
        ("a.files.example", "169.254.169.254", False),
        ("a.files.example", "::ffff:127.0.0.1", False),
        ("a.files.example", "fe80::1%eth0", False),
        ("a.files.example", "0.0.0.0", False),
        ("pypi.example", "192.168.1.5", True),  # named itself: a mirror of one's own
        ("pypi.example", "0.0.0.0", False),
        ("pypi.example", "nonsense", False),
    ],
)
def test_a_name_may_not_lead_to_a_private_address_unless_it_is_written_out(
    host: str, address: str, is_allowed: bool
) -> None:
    assert LIST.allows_address(host, address) is is_allowed


@pytest.mark.parametrize("host", ["*", "*.", "a.*.example", "http://a.example", "*/8", "a b", ""])
def test_what_is_no_name_is_refused_at_once(host: str) -> None:
    with pytest.raises(ValueError, match="no name of a host"):
        Allowlist.of([host])


@pytest.mark.parametrize("host", ["10.0.0.1/8", "10.0.0.0/33", "10.0.0/8", "fe80::/200"])
def test_what_is_no_range_is_refused_at_once(host: str) -> None:
    with pytest.raises(ValueError, match="no range of addresses"):
        Allowlist.of([host])


def test_a_range_allows_its_addresses_and_no_name_but_those_on_the_list() -> None:
    found = Allowlist.of(["10.1.0.0/16", "*.files.example"])
    assert found.allows("10.1.2.3")
    assert found.allows_address("10.1.2.3", "10.1.2.3")
    assert found.allows_address("a.files.example", "10.1.9.9")
    assert not found.allows("10.2.0.1")
    assert not found.allows("0x0a.1.2.3")
    assert not found.allows("other.example")
    assert not found.allows_address("a.files.example", "10.2.0.1")


@pytest.mark.parametrize(
    ("host", "address", "is_allowed"),
    [
        ("any.example", "93.184.216.34", True),
        ("any.example", "127.0.0.1", False),
        ("127.0.0.1", "127.0.0.1", False),
        ("2130706433", "127.0.0.1", False),
        ("metadata.example", "169.254.169.254", False),
        ("mirror.example", "192.168.1.5", True),
    ],
)
def test_everything_is_every_public_host_and_what_is_written_out(
    host: str, address: str, is_allowed: bool
) -> None:
    found = Allowlist.everything(["mirror.example"])
    assert found.allows(host)
    assert found.allows_address(host, address) is is_allowed


@given(st.text(max_size=40))
def test_no_text_whatever_is_allowed_that_is_not_named(text: str) -> None:
    if LIST.allows(text):
        name = normal(text)
        assert name in LIST.names or (name or "").endswith(".files.example")


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"CONNECT evil.example:443 HTTP/1.1\r\n\r\n", b"403"),
        (b"CONNECT 127.0.0.1:443 HTTP/1.1\r\n\r\n", b"403"),
        (b"CONNECT pypi.example HTTP/1.1\r\n\r\n", b"400"),
        (b"CONNECT pypi.example:99999 HTTP/1.1\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nHost: pypi.example\r\n\r\n", b"400"),
        (b"GET ftp://pypi.example/ HTTP/1.1\r\n\r\n", b"400"),
        (b"GET http://pypi.example@evil.example/ HTTP/1.1\r\n\r\n", b"403"),
        (b"\x16\x03\x01 nonsense\r\n\r\n", b"400"),
    ],
)
def test_the_proxy_answers_what_it_refuses(request_: bytes, status: bytes) -> None:
    assert asyncio.run(_asked(request_, LIST)).split(b" ")[1] == status


def test_a_request_goes_on_with_the_host_that_was_judged_and_nothing_of_the_proxy() -> None:
    """Two requests on one connection would let the second name another host: there is one."""
    seen: list[bytes] = []

    async def asked() -> bytes:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            seen.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(b"HTTP/1.1 200 OK\r\n\r\nhere")
            writer.close()

        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            head = f"GET http://localhost:{port}/a?b HTTP/1.1\r\nHost: evil.example\r\n"
            head += "Proxy-Authorization: secret\r\nConnection: keep-alive\r\nAccept: */*\r\n\r\n"
            return await _asked(head.encode(), Allowlist.of(["localhost"]))

    assert asyncio.run(asked()).endswith(b"here")
    lines = seen[0].decode().split("\r\n")
    assert lines[0] == "GET /a?b HTTP/1.1"
    assert lines[1].startswith("Host: localhost:")
    assert lines[2:4] == ["Connection: close", "Accept: */*"]


async def _asked(request: bytes, allowed: Allowlist) -> bytes:
    import socket

    proxy = Proxy(allowed, "token")
    listener = socket.create_server(("127.0.0.1", 0))
    await proxy.start(listener)
    try:
        async with asyncio.timeout(20):
            reader, writer = await asyncio.open_connection(*listener.getsockname()[:2])
            writer.write(request)
            said = await reader.read()
            writer.close()
            return said
    finally:
        await proxy.close()
