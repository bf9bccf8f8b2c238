"""An endpoint on loopback that says back whatever it was sent, credentials first."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.security.planted import said_in_every_form


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        said = f"{self.path}\n{self.headers}\n{body.decode()}\n{said_in_every_form()}"
        status, form = self.server.answer  # type: ignore[attr-defined]
        if status == 200:
            message = {"role": "assistant", "content": said}
            usage = {"prompt_tokens": 1, "completion_tokens": 1}
            answer = json.dumps({"choices": [{"message": message}], "usage": usage})
        elif form == "message":
            answer = json.dumps({"error": {"message": said[-1500:], "type": "x"}})
        elif form == "first":
            key = self.headers.get("authorization", "")
            answer = json.dumps({"error": {"message": f"Incorrect API key provided: {key}"}})
        else:
            answer = json.dumps({"headers": dict(self.headers)})
        data = answer.encode()
        self.send_response(status)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        return


@contextmanager
def echoing(status: int = 200, form: str = "message") -> Iterator[int]:
    """Serve while the block lasts; give the port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.answer = (status, form)  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
