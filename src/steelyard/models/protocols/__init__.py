"""The wire forms of the three protocols, as pure functions over JSON.

`build` makes a request's body, `read` reads an answer's. No connection, no clock: the client, the
gateway and the tests share them.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from steelyard.models.protocols import anthropic, openai_chat, openai_responses
from steelyard.models.protocols.form import WireProtocol

PROTOCOLS: Final[Mapping[str, WireProtocol]] = MappingProxyType(
    {
        protocol.name: protocol
        for protocol in (openai_chat.PROTOCOL, openai_responses.PROTOCOL, anthropic.PROTOCOL)
    }
)
"""By the name that `model.api_protocol` uses."""
