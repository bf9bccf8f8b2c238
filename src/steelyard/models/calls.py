"""The one rule by which calls go to an endpoint: probe, rejection, slots, rates, retries.

Knows neither bodies nor protocols: whoever calls hands in how one try is made. Driver-side
clients (`client.py`) and the gateway stand in the same queue.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

from steelyard.components.clock import AgentTimer, Clock
from steelyard.components.issues import AttemptFault, IssueCode
from steelyard.models.backoff import Backoff, retry_after_s
from steelyard.models.lines import Line
from steelyard.models.protocols.form import TokenCounts
from steelyard.models.refusals import Verdict
from steelyard.models.upstream import HttpAnswer

log = logging.getLogger(__name__)

PROBE_S: Final = 0.25
"""How long the first call of an endpoint goes alone: a wrong key then costs one call, not one
for every slot, and a right one at most this long, once."""
SAID_AGAIN_S: Final = 60.0
"""A connection now and then that breaks off is said no more often."""
CHARACTERS_PER_TOKEN: Final = 4
Sleep = Callable[[float], Awaitable[None]]

LOST: Final = Verdict(IssueCode.MODEL_UNAVAILABLE, is_transient=True)
TIMED_OUT: Final = Verdict(IssueCode.MODEL_TIMED_OUT)
TOO_LARGE: Final = Verdict(IssueCode.MODEL_OUTPUT_TOO_LARGE)
BAD_CERTIFICATE: Final = Verdict(IssueCode.MODEL_ENDPOINT_REJECTED, is_request_fault=True)

PAID_FAILURES: Final = frozenset(
    {
        IssueCode.MODEL_TIMED_OUT,
        IssueCode.MODEL_OUTPUT_TOO_LARGE,
        IssueCode.MODEL_RESPONSE_INVALID,
    }
)
"""The endpoint worked, and what it charges for it is not known."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A try that brought no answer."""

    verdict: Verdict
    message: str
    answer: HttpAnswer | None = None
    """What the endpoint said, where it said anything."""


class Success(Protocol):
    """A try that brought an answer."""

    @property
    def counts(self) -> TokenCounts | None:
        """What it consumed; None where that is not known."""
        ...


T = TypeVar("T", bound=Success)


@dataclass(frozen=True, slots=True)
class Made(Generic[T]):
    """How a call ended, retries included."""

    outcome: T | Failure
    latency_s: float
    """Of the last try alone."""
    retries: int


class Calls:
    """The queue before one endpoint.

    Args:
        line: the connections, slots and rates of its address.
        origin: what messages call it.
        max_retries: of one call.
        clock: tells the time.
        seed: of the backoff's jitter.
        backoff: how retries are spaced.
        sleep: how to wait.
    """

    def __init__(
        self,
        line: Line,
        origin: str,
        *,
        max_retries: int,
        clock: Clock,
        seed: int,
        backoff: Backoff,
        sleep: Sleep,
    ) -> None:
        self.succeeded = 0
        """Over all attempts; while 0, a rejection is a fault of the request."""
        self._said: tuple[int, float] | None = None
        """When its silence was last said, and how many calls had succeeded then."""
        self._line = line
        self._origin = origin
        self._max_retries = max_retries
        self._clock = clock
        self._backoff = backoff
        self._sleep = sleep
        self._chance = random.Random(seed)  # noqa: S311 — jitter, not a secret
        self._mean_output = 0.0
        self._rejection: AttemptFault | None = None
        self._is_probed = False
        self._probe: asyncio.Event | None = None

    async def make(
        self,
        send: Callable[[], Awaitable[T | Failure]],
        *,
        body_bytes: int,
        timer: AgentTimer,
        is_telling: bool = True,
    ) -> Made[T]:
        """Make one call: wait for its turn, try, try again where that may help.

        Args:
            send: makes one try; it holds a slot while it runs.
            body_bytes: of the request, by which tokens are reserved.
            timer: stands still while the call waits.
            is_telling: False where its end says nothing of whether the endpoint takes our calls.

        Raises:
            AttemptFault: another call has shown that the endpoint rejects all of them.
        """
        retries = 0
        while True:
            if is_telling:
                self._stop_if_rejected()
                outcome, took_s = await self._guarded_try(send, body_bytes, timer)
            else:
                outcome, took_s = await self._try(send, body_bytes, timer, is_telling=False)
            if not isinstance(outcome, Failure):
                return Made(outcome, took_s, retries)
            if not outcome.verdict.is_transient or retries >= self._max_retries:
                return Made(outcome, took_s, retries)
            asked = None if outcome.answer is None else outcome.answer.retry_after
            after_s = retry_after_s(asked, self._clock.now())
            wait_s = self._backoff.wait_s(retries, after_s, self._chance)
            retries += 1
            if outcome.answer is None:
                self._say_silence(outcome)
            with timer.waiting():
                await self._sleep(wait_s)

    def _say_silence(self, failure: Failure) -> None:
        """Say that nothing answers: who waits should know what for.

        Once; again only where it has answered since, and not more than once in a while.
        """
        now_s = self._clock.monotonic()
        if self._said is not None:
            succeeded, at_s = self._said
            if succeeded == self.succeeded or now_s - at_s < SAID_AGAIN_S:
                return
        self._said = (self.succeeded, now_s)
        more = "once more" if self._max_retries == 1 else f"up to {self._max_retries} times a call"
        log.warning("%s %s; it is tried again, %s", self._origin, failure.message, more)

    def fault_of(self, failure: Failure, retries: int) -> AttemptFault:
        """Name the cause of a call that failed for good."""
        tries = f" (tried {retries + 1} times)" if retries else ""
        asked = None if failure.answer is None else failure.answer.retry_after
        return AttemptFault(
            failure.verdict.code,
            f"{self._origin} {failure.message}{tries}",
            request_fault=failure.verdict.is_request_fault and not self.succeeded,
            retry_after_s=retry_after_s(asked, self._clock.now()),
        )

    def _stop_if_rejected(self) -> None:
        if self._rejection is not None and not self.succeeded:
            raise AttemptFault(self._rejection.code, self._rejection.message, request_fault=True)

    async def _guarded_try(
        self, send: Callable[[], Awaitable[T | Failure]], body_bytes: int, timer: AgentTimer
    ) -> tuple[T | Failure, float]:
        """Try once, after the first call of all has shown how the endpoint answers."""
        if self._is_probed:
            return await self._try(send, body_bytes, timer)
        if self._probe is not None:
            with timer.waiting():
                await self._probe.wait()
            self._stop_if_rejected()
            return await self._try(send, body_bytes, timer)
        self._probe = asyncio.Event()
        timeout = asyncio.get_running_loop().call_later(PROBE_S, self._end_probe)
        try:
            return await self._try(send, body_bytes, timer)
        finally:
            timeout.cancel()
            self._end_probe()

    def _end_probe(self) -> None:
        self._is_probed = True
        if self._probe is not None:
            self._probe.set()

    async def _try(
        self,
        send: Callable[[], Awaitable[T | Failure]],
        body_bytes: int,
        timer: AgentTimer,
        *,
        is_telling: bool = True,
    ) -> tuple[T | Failure, float]:
        """Send once: a slot, then the rates, then the call itself."""
        slots = self._line.slots
        if not slots.take_now():
            with timer.waiting():
                await slots.take()
        try:
            if is_telling:
                self._stop_if_rejected()
            reserved = await self._wait_for_rates(body_bytes, timer)
            epoch = slots.limit.epoch
            began_s = self._clock.monotonic()
            outcome = await send()
            # Here, not in `make`: those who wait must see a rejection before they go.
            self._note(outcome, epoch, reserved, is_telling)
        finally:
            slots.give_back()
        took_s = self._clock.monotonic() - began_s
        if isinstance(outcome, Failure) and outcome.verdict.is_transient:
            timer.forgive(took_s)  # what must be tried again is a wait, not the agent's work
        return outcome, took_s

    async def _wait_for_rates(self, body_bytes: int, timer: AgentTimer) -> float:
        """Wait until both rates allow the call; give the tokens reserved for it."""
        wait_s = 0.0
        reserved = 0.0
        if self._line.requests is not None:
            wait_s = self._line.requests.take(1, self._clock.monotonic())
        if self._line.tokens is not None:
            reserved = body_bytes / CHARACTERS_PER_TOKEN + self._mean_output
            wait_s = max(wait_s, self._line.tokens.take(reserved, self._clock.monotonic()))
        if wait_s > 0:
            with timer.waiting():
                await self._sleep(wait_s)
        return reserved

    def _note(
        self, outcome: Success | Failure, epoch: int, reserved: float, is_telling: bool
    ) -> None:
        """Let limits, rates and the rejection learn from how a try ended."""
        if isinstance(outcome, Failure):
            found = outcome.verdict
            if found.is_throttle:
                self._line.slots.limit.throttled(epoch)
            if is_telling and found.is_request_fault and not self.succeeded:
                message = f"{self._origin} {outcome.message}"
                self._rejection = AttemptFault(found.code, message, request_fault=True)
            return
        if is_telling:
            self.succeeded += 1
        self._line.slots.limit.succeeded()
        counts = outcome.counts
        if self._line.tokens is not None and counts is not None:
            used = counts.input_tokens + counts.output_tokens
            self._line.tokens.settle(used - reserved, self._clock.monotonic())
            self._mean_output += 0.1 * (counts.output_tokens - self._mean_output)
