"""A service of the host that programs in a container may or may not reach."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

WORD: Final = b"reached-the-host"


class _Answers(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        self.request.recv(4096)
        head = f"HTTP/1.0 200 OK\r\nContent-Length: {len(WORD)}\r\n\r\n".encode()
        self.request.sendall(head + WORD)


@contextmanager
def listening() -> Iterator[int]:
    """Answer every request on every address of the host; the port."""
    with socketserver.ThreadingTCPServer(("0.0.0.0", 0), _Answers) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()
