"""The model gateway as environments and harnesses see it.

`models/gateway/` serves it; an environment makes it reachable for the programs of a session.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol


class ModelGate(Protocol):
    """The run's gateway: serves HTTP on whatever listens for it.

    Every connection must show the token of an attempt that is under way; what it may do is the
    same on every way in.
    """

    @property
    def socket_path(self) -> Path:
        """A Unix socket of this host, in a private folder; may be bound into a session."""
        ...

    async def serve(self, listener: socket.socket) -> Callable[[], None]:
        """Serve what connects to a listening socket, until what is returned is called.

        The socket is the gateway's from here on, and closed by the call that ends it.
        """
        ...

    async def host_url(self) -> str:
        """Give the address on this host's loopback, as `http://127.0.0.1:PORT`; opened once."""
        ...


@dataclass(frozen=True, slots=True)
class ModelAccess:
    """How programs of one session reach the model."""

    url: str
    """Without path: `/v1/chat/completions`, `/v1/responses` and `/v1/messages` lie below it."""
    token: str = field(repr=False)
    """Of this attempt alone; no key of any endpoint."""
    model_id: str
    protocol: str
    """What the endpoint is known to speak: `openai-chat`, `openai-responses` or `anthropic`."""

    def variables(self) -> dict[str, str]:
        """Give the variables by which the usual clients find endpoint and key."""
        return {
            "OPENAI_BASE_URL": f"{self.url}/v1",
            "OPENAI_API_BASE": f"{self.url}/v1",
            "OPENAI_API_KEY": self.token,
            "ANTHROPIC_BASE_URL": self.url,
            "ANTHROPIC_API_KEY": self.token,
            "STEELYARD_MODEL": self.model_id,
            "NO_PROXY": "127.0.0.1,localhost",
            "no_proxy": "127.0.0.1,localhost",
        }
