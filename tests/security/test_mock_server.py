"""The mock endpoint serves this machine alone, and one client cannot starve the others."""

from __future__ import annotations

import http.client
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from steelyard.testing.endpoint import MockEndpoint

pytestmark = pytest.mark.integration
CALL = b'{"model":"m","messages":[{"role":"user","content":"x"}]}'


@pytest.fixture(scope="module")
def endpoint() -> Iterator[MockEndpoint]:
    with MockEndpoint("--fault", "hang:model=hangs") as started:
        yield started


def port_of(endpoint: MockEndpoint) -> int:
    return urlsplit(endpoint.url).port or 0


def asked(endpoint: MockEndpoint, path: str, method: str = "POST", **headers: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port_of(endpoint), timeout=10)
    try:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, CALL if method == "POST" else None, named)
        return connection.getresponse().status
    finally:
        connection.close()


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


def test_it_listens_on_loopback_alone(endpoint: MockEndpoint) -> None:
    wanted = f":{port_of(endpoint):04X} "
    listening = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"{fields[1]} ".endswith(wanted):
                listening.append(fields[1].partition(":")[0])
    assert listening == ["0100007F"]


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil.example",
     "0.0.0.0", "localhost@evil.example", "", "[::1].evil.example", "127.0.0.1:80:evil"],
)  # fmt: skip
def test_another_name_for_us_is_refused(endpoint: MockEndpoint, host: str) -> None:
    assert asked(endpoint, "/stats", "GET", host=host) == 403
    assert asked(endpoint, "/v1/chat/completions", host=host) == 403


@pytest.mark.parametrize(
    "path", ["/reset", "/v1/chat/completions", "/v1/messages", "/v1/responses"]
)
@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://127.0.0.1.evil.example"]
)
def test_a_page_of_another_site_is_refused(endpoint: MockEndpoint, path: str, origin: str) -> None:
    before = endpoint.stats()
    assert asked(endpoint, path, origin=origin, content_type="text/plain") == 403
    assert endpoint.stats()["calls"] == before["calls"]


def test_a_page_of_this_machine_is_served(endpoint: MockEndpoint) -> None:
    assert asked(endpoint, "/v1/chat/completions", origin="http://localhost:3000") == 200


def test_a_body_beyond_the_cap_is_refused_and_not_kept(endpoint: MockEndpoint) -> None:
    before = resident_bytes(endpoint.pid)
    for claims in (b"content-length: 99999999999", b"transfer-encoding: chunked"):
        with socket.create_connection(("127.0.0.1", port_of(endpoint)), timeout=10) as client:
            client.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n" + claims)
            client.sendall(b"\r\n\r\n")
            sent, answer = 0, b""
            piece = b"x" * (1 << 20)
            framed = piece if b"length" in claims else b"100000\r\n" + piece + b"\r\n"
            try:
                while sent < 64:
                    client.sendall(framed)
                    sent += 1
                answer = client.recv(65536)
            except (ConnectionError, TimeoutError):
                sent = 64
            assert answer == b"" or b" 413 " in answer.split(b"\r\n")[0]
    assert resident_bytes(endpoint.pid) - before < 128 << 20
    assert asked(endpoint, "/v1/chat/completions") == 200


def test_what_is_sent_behind_a_waiting_call_is_not_kept_in_memory(
    endpoint: MockEndpoint,
) -> None:
    body = CALL.replace(b'"m"', b'"hangs"')
    before = resident_bytes(endpoint.pid)
    with socket.create_connection(("127.0.0.1", port_of(endpoint)), timeout=0.5) as client:
        client.sendall(
            b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n%b"
            % (len(body), body)
        )
        time.sleep(0.2)
        try:
            for _ in range(100):
                client.sendall(b"x" * (1 << 20))
        except (TimeoutError, ConnectionError):
            pass
        assert resident_bytes(endpoint.pid) - before < 32 << 20


def test_clients_that_dribble_do_not_starve_the_others(endpoint: MockEndpoint) -> None:
    clients = []
    try:
        for _ in range(200):
            client = socket.create_connection(("127.0.0.1", port_of(endpoint)), timeout=5)
            client.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nhost: local")
            clients.append(client)
        began = time.monotonic()
        for _ in range(10):
            assert asked(endpoint, "/v1/chat/completions") == 200
        assert time.monotonic() - began < 5
    finally:
        for client in clients:
            client.close()


@pytest.mark.parametrize(
    "raw",
    [b"\0" * 100, b"GET / HTTP/9.9\r\n\r\n", b"GET " + b"a" * 200_000, b"POST / HTTP/1.1\r\n\r\n",
     b"GET / HTTP/1.1\r\nhost: localhost\r\nhost: localhost\r\n\r\n",
     b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\n"
     b"transfer-encoding: chunked\r\n\r\n0\r\n\r\n",
     b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\n"
     b"content-length: 100000\r\n\r\n" + b"[" * 100_000],
    ids=["zeros", "version", "long line", "no host", "two hosts", "smuggling", "deep json"],
)  # fmt: skip
def test_what_is_no_request_ends_its_connection_alone(endpoint: MockEndpoint, raw: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port_of(endpoint)), timeout=5) as client:
        try:
            client.sendall(raw)
            client.shutdown(socket.SHUT_WR)
            answer = client.recv(65536)
        except OSError:  # reset before all of it was sent
            answer = b""
        assert answer == b"" or answer.split(b" ")[1] in (b"400", b"403", b"404")
    assert asked(endpoint, "/v1/chat/completions") == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "evil.example"])
def test_no_address_but_loopback_is_bound(host: str) -> None:
    with (
        pytest.raises(RuntimeError, match="serves this machine only"),
        MockEndpoint("--host", host),
    ):
        pass
