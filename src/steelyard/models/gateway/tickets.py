"""One attempt's ticket: its token, what it may still spend, what it has used, its steps."""

from __future__ import annotations

import asyncio
import hmac
import secrets
from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import Final

from steelyard.components.clock import AgentTimer
from steelyard.components.gateway import ModelAccess
from steelyard.components.issues import AttemptFault
from steelyard.components.steps import Step
from steelyard.components.values import NO_USAGE, Usage
from steelyard.models.allowance import Allowance
from steelyard.models.gateway.recording import Recorder

TOKEN_PREFIX: Final = "sk-steelyard-"  # noqa: S105 — some clients look at how a key begins
MAX_HELD_BYTES: Final = 256 * 1024 * 1024
"""Bodies of one attempt that are in our memory at a time."""


class Ticket:
    """What one attempt may do at the gateway, from `Gateway.admit` to `revoke`.

    Args:
        model_id: what it may call.
        protocol: what the endpoint is known to speak.
        timer: the attempt's; stands still while its calls wait.
        allowance: what it may spend.
        recorder: makes its steps.
        on_step: told each step as it happens.
        on_fault: told once that the attempt must end, and why.
        forget: makes the gateway forget the token.
        seed: of calls that bring none; None for no seed.
    """

    def __init__(
        self,
        model_id: str,
        protocol: str,
        *,
        timer: AgentTimer,
        allowance: Allowance,
        recorder: Recorder,
        on_step: Callable[[Step], None],
        on_fault: Callable[[AttemptFault], None],
        forget: Callable[[Ticket], None],
        seed: int | None = None,
    ) -> None:
        self.token = TOKEN_PREFIX + secrets.token_hex(32)
        self.model_id = model_id
        self.protocol = protocol
        self.timer = timer
        self.allowance = allowance
        self.recorder = recorder
        self.seed = seed
        self.usage: Usage = NO_USAGE
        """What its calls have consumed so far; cost None once a call's is not known."""
        self.calls_succeeded = 0
        """Calls that brought an answer."""
        self.requests = 0
        """Model calls that were asked for, refused ones included."""
        self.last_fault: AttemptFault | None = None
        """How the last call failed, None where it did not: what to blame if the agent then gives
        up."""
        self.is_revoked = False
        self._on_step = on_step
        self._on_fault = on_fault
        self._forget = forget
        self._has_failed = False
        self._held_bytes = 0
        self._tasks: set[asyncio.Task[None]] = set()

    def access(self, url: str) -> ModelAccess:
        """Say how programs of a session reach the model.

        Args:
            url: of the gateway as they see it, without a path.
        """
        return ModelAccess(url, self.token, self.model_id, self.protocol)

    async def revoke(self) -> None:
        """End the attempt's calls, and refuse its token from now on. Safe to call twice.

        Calls under way are settled: their cost is unknown, unless their usage was seen.
        """
        self.is_revoked = True
        self._forget(self)
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    # What the gateway calls.

    def enter(self, task: asyncio.Task[None]) -> None:
        """Note that a task makes a call; `revoke` ends it."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def hold(self, size: int) -> bool:
        """Account for a body in memory; False where it is too much for one attempt."""
        if self._held_bytes + size > MAX_HELD_BYTES:
            return False
        self._held_bytes += size
        return True

    def let_go(self, size: int) -> None:
        """A body has left our memory."""
        self._held_bytes -= size

    def fail(self, fault: AttemptFault) -> None:
        """Say, once, that the attempt must end."""
        self.last_fault = fault
        if not self._has_failed:
            self._has_failed = True
            self._on_fault(fault)

    def record(self, step: Step) -> None:
        """Hand on a step."""
        self._on_step(step)

    def settle(self, usage: Usage, assumed: Usage) -> None:
        """Count what a call has consumed, and against the allowance what it may have."""
        self.usage += usage
        self.allowance.spend(usage, assumed)


class Tickets:
    """The tickets that are valid, found in a time that says nothing of any token."""

    def __init__(self) -> None:
        self._salt = secrets.token_bytes(32)
        self._by_digest: dict[bytes, Ticket] = {}

    def add(self, ticket: Ticket) -> None:
        """Make a ticket valid."""
        self._by_digest[self._digest(ticket.token)] = ticket

    def remove(self, ticket: Ticket) -> None:
        """Make it invalid; no matter if it is already."""
        self._by_digest.pop(self._digest(ticket.token), None)

    def find(self, tokens: Iterable[str]) -> Ticket | None:
        """Give the ticket of the first token that has one."""
        for token in tokens:
            found = self._by_digest.get(self._digest(token))
            given = token.encode("utf-8", "replace")
            if found is not None and hmac.compare_digest(found.token.encode("ascii"), given):
                return found
        return None

    def all(self) -> list[Ticket]:
        """Give every valid ticket."""
        return list(self._by_digest.values())

    def _digest(self, token: str) -> bytes:
        return blake2b(token.encode("utf-8", "replace"), key=self._salt, digest_size=16).digest()
