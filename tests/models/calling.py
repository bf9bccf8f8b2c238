"""Make clients of a mock endpoint and call them; shared by the tests of the client."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from steelyard.components.clock import AgentTimer, SystemClock
from steelyard.components.issues import AttemptFault
from steelyard.components.model import ModelRequest, ModelResponse
from steelyard.components.values import Message
from steelyard.config.secrets import SecretStore
from steelyard.models.backoff import Backoff
from steelyard.models.client import AttemptClient, Endpoint, make_endpoint

QUICK = Backoff(base_s=0.001, cap_s=0.005, retry_after_cap_s=0.05)
PROTOCOLS = ("openai-chat", "openai-responses", "anthropic")


def settings(url: str, **fields: Any) -> dict[str, Any]:
    """`ModelSettings` as JSON."""
    return {"id": "mock", "base_url": url, **fields}


def endpoint(
    url: str, *, secrets: SecretStore | None = None, prices: Any = None, **fields: Any
) -> Endpoint:
    """An endpoint that retries without waiting long."""
    return make_endpoint(
        settings(url, **fields),
        secrets or SecretStore({}),
        prices=prices,
        clock=SystemClock(),
        seed=0,
        backoff=QUICK,
    )


def client_of(made: Endpoint) -> AttemptClient:
    """A client for an attempt that begins now."""
    return made.client(AgentTimer(SystemClock()))


def ask(text: str = "hello", **params: Any) -> ModelRequest:
    """One user message."""
    return ModelRequest([Message("user", text)], params)


async def fault_of(work: Awaitable[ModelResponse]) -> AttemptFault:
    """The fault that a call ends with; fails where it brings an answer."""
    try:
        answer = await work
    except AttemptFault as fault:
        return fault
    raise AssertionError(f"an answer came: {answer}")


def with_endpoint(url: str, work: Callable[[Endpoint], Awaitable[Any]], **fields: Any) -> Any:
    """Run `work` with an endpoint that is closed after it."""

    async def run() -> Any:
        made = endpoint(url, **fields)
        try:
            return await work(made)
        finally:
            await made.close()

    return asyncio.run(run())
