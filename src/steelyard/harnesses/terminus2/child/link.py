"""The socket between one attempt's process and the driver: a JSON object a line, both ways.

The agent waits for each answer, so nothing here is asynchronous. An end that closes is the end.
"""

from __future__ import annotations

import json
import os
import socket
from typing import Any


class Link:
    """One attempt's socket."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._lines = end.makefile("rb")

    def receive(self) -> dict[str, Any]:
        """Wait for the next object. The process ends where the driver let go of it."""
        line = self._lines.readline()
        if not line.endswith(b"\n"):
            os._exit(0)
        received: dict[str, Any] = json.loads(line)
        return received

    def say(self, kind: str, **fields: Any) -> None:
        """Tell the driver something that needs no answer."""
        try:
            self._end.sendall(json.dumps({"kind": kind, **fields}).encode() + b"\n")
        except OSError:
            os._exit(0)

    def ask(self, kind: str, **fields: Any) -> dict[str, Any]:
        """Tell the driver something, and wait for its answer."""
        self.say(kind, **fields)
        return self.receive()
