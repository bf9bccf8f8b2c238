"""One endpoint and its clients: waits, retries, limits and counts around one model call.

`upstream.py` moves bytes, `protocols/` gives them meaning, `refusals.py` names what went wrong.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from steelyard.components.clock import AgentTimer, Clock
from steelyard.components.issues import AttemptFault, IssueCode
from steelyard.components.model import ModelRequest, ModelResponse
from steelyard.components.values import NO_USAGE, Usage
from steelyard.config.redaction import Redactor
from steelyard.config.secrets import SecretStore
from steelyard.models.backoff import BACKOFF, Backoff, retry_after_s
from steelyard.models.lines import Lines
from steelyard.models.prices import Pricing, pricing_for
from steelyard.models.protocols.encoding import encode
from steelyard.models.protocols.form import EndpointError, Reading, TokenCounts
from steelyard.models.refusals import Verdict, address_hint, endpoint_words, verdict
from steelyard.models.settings import EndpointSettings, parse_settings
from steelyard.models.upstream import (
    CertificateRefused,
    ConnectionFailed,
    HttpAnswer,
    TooLarge,
)

PROBE_S: Final = 0.25
"""How long the first call of an endpoint goes alone: a wrong key then costs one call, not one
for every slot, and a right one at most this long, once."""
CHARACTERS_PER_TOKEN: Final = 4
Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class _Failure:
    """A try that brought no answer."""

    verdict: Verdict
    message: str
    retry_after: str | None = None


_LOST: Final = Verdict(IssueCode.MODEL_UNAVAILABLE, is_transient=True)
_TIMED_OUT: Final = Verdict(IssueCode.MODEL_TIMED_OUT)
_TOO_LARGE: Final = Verdict(IssueCode.MODEL_OUTPUT_TOO_LARGE)
_BAD_CERTIFICATE: Final = Verdict(IssueCode.MODEL_ENDPOINT_REJECTED, is_request_fault=True)


class Endpoint:
    """A model at an address: what all attempts of a request share.

    Args:
        settings: where and how.
        pricing: what its calls cost.
        clock: tells the time.
        seed: of the backoff's jitter.
        lines: the connections and limits that endpoints of one address share.
        backoff: how retries are spaced.
        sleep: how to wait; tests hand in their own.
        redact: applied to what is quoted of answers.
    """

    def __init__(
        self,
        settings: EndpointSettings,
        pricing: Pricing,
        *,
        clock: Clock,
        seed: int,
        lines: Lines,
        backoff: Backoff = BACKOFF,
        sleep: Sleep = asyncio.sleep,
        redact: Callable[[bytes], bytes] = bytes,
    ) -> None:
        self.settings = settings
        self.pricing = pricing
        self.clock = clock
        self.calls_succeeded = 0
        """Over all attempts; while 0, a rejection is a fault of the request."""
        self._line = lines.join(
            settings.address,
            settings.headers,
            max_connections=settings.max_connections,
            rpm=settings.rpm,
            tpm=settings.tpm,
            now_s=clock.monotonic(),
        )
        self.slots = self._line.slots
        self._backoff = backoff
        self._sleep = sleep
        self._redact = redact
        self._chance = random.Random(seed)  # noqa: S311 — jitter, not a secret
        self._mean_output = 0.0
        self._rejection: AttemptFault | None = None
        self._is_probed = False
        self._probe: asyncio.Event | None = None
        self._targets: dict[str, str] = {}

    def client(self, timer: AgentTimer) -> AttemptClient:
        """Bind a client to one attempt's timer."""
        return AttemptClient(self, timer)

    async def close(self) -> None:
        """Close every connection. Called once, after the last call."""
        await self._line.leave()

    async def call(self, request: ModelRequest, timer: AgentTimer) -> Answered:
        """Make one call, request retries included.

        Raises:
            AttemptFault: with the code that `refusals.py` gives its cause.
        """
        path, data = self.settings.protocol.build(
            self.settings.model_id, request, self.settings.params
        )
        try:
            body = encode(data)
        except ValueError as error:
            raise AttemptFault(
                IssueCode.CONFIGURATION, f"model params cannot be sent: {error}", request_fault=True
            ) from error
        retries = 0
        while True:
            self._stop_if_rejected()
            outcome = await self._guarded_try(path, body, timer)
            if not isinstance(outcome, _Failure):
                reading, latency_s = outcome
                return Answered(reading, latency_s, retries)
            self._raise_unless_transient(outcome, retries)
            after_s = retry_after_s(outcome.retry_after, self.clock.now())
            wait_s = self._backoff.wait_s(retries, after_s, self._chance)
            retries += 1
            with timer.waiting():
                await self._sleep(wait_s)

    def _stop_if_rejected(self) -> None:
        if self._rejection is not None and not self.calls_succeeded:
            raise AttemptFault(self._rejection.code, self._rejection.message, request_fault=True)

    def _raise_unless_transient(self, failure: _Failure, retries: int) -> None:
        found = failure.verdict
        if found.is_transient and retries < self.settings.max_request_retries:
            return
        tries = f" (tried {retries + 1} times)" if retries else ""
        message = f"{self.settings.address.origin} {failure.message}{tries}"
        is_request_fault = found.is_request_fault and not self.calls_succeeded
        fault = AttemptFault(found.code, message, request_fault=is_request_fault)
        if is_request_fault:
            self._rejection = fault
        raise fault

    async def _guarded_try(
        self, path: str, body: bytes, timer: AgentTimer
    ) -> tuple[Reading, float] | _Failure:
        """Try once, after the first call of all has shown how the endpoint answers."""
        if self._is_probed:
            return await self._try(path, body, timer)
        if self._probe is not None:
            with timer.waiting():
                await self._probe.wait()
            self._stop_if_rejected()
            return await self._try(path, body, timer)
        self._probe = asyncio.Event()
        timeout = asyncio.get_running_loop().call_later(PROBE_S, self._end_probe)
        try:
            outcome = await self._try(path, body, timer)
            if isinstance(outcome, _Failure):
                # Here, not in `call`: those who wait must see it before they go.
                self._note_rejection(outcome)
            return outcome
        finally:
            timeout.cancel()
            self._end_probe()

    def _note_rejection(self, failure: _Failure) -> None:
        if failure.verdict.is_request_fault and not self.calls_succeeded:
            message = f"{self.settings.address.origin} {failure.message}"
            self._rejection = AttemptFault(failure.verdict.code, message, request_fault=True)

    def _end_probe(self) -> None:
        self._is_probed = True
        if self._probe is not None:
            self._probe.set()

    async def _try(
        self, path: str, body: bytes, timer: AgentTimer
    ) -> tuple[Reading, float] | _Failure:
        """Send once: a slot, then the rates, then the call itself."""
        if not self.slots.take_now():
            with timer.waiting():
                await self.slots.take()
        try:
            self._stop_if_rejected()
            reserved = await self._wait_for_rates(len(body), timer)
            epoch = self.slots.limit.epoch
            began_s = self.clock.monotonic()
            outcome = await self._send(path, body)
            self._note(outcome, epoch, reserved)
        finally:
            self.slots.give_back()
        took_s = self.clock.monotonic() - began_s
        if isinstance(outcome, _Failure):
            if outcome.verdict.is_transient:
                timer.forgive(took_s)  # what must be tried again is a wait, not the agent's work
            return outcome
        return outcome, took_s

    async def _wait_for_rates(self, body_bytes: int, timer: AgentTimer) -> float:
        """Wait until both rates allow the call; give the tokens reserved for it."""
        wait_s = 0.0
        reserved = 0.0
        if self._line.requests is not None:
            wait_s = self._line.requests.take(1, self.clock.monotonic())
        if self._line.tokens is not None:
            reserved = body_bytes / CHARACTERS_PER_TOKEN + self._mean_output
            wait_s = max(wait_s, self._line.tokens.take(reserved, self.clock.monotonic()))
        if wait_s > 0:
            with timer.waiting():
                await self._sleep(wait_s)
        return reserved

    def _note(self, outcome: Reading | _Failure, epoch: int, reserved: float) -> None:
        """Let limits and rates learn from how a try ended."""
        if isinstance(outcome, _Failure):
            if outcome.verdict.is_throttle:
                self.slots.limit.throttled(epoch)
            return
        self.calls_succeeded += 1
        self.slots.limit.succeeded()
        if self._line.tokens is not None and outcome.counts is not None:
            counts = outcome.counts
            used = counts.input_tokens + counts.output_tokens
            self._line.tokens.settle(used - reserved, self.clock.monotonic())
            self._mean_output += 0.1 * (counts.output_tokens - self._mean_output)

    async def _send(self, path: str, body: bytes) -> Reading | _Failure:
        settings = self.settings
        target = self._targets.get(path)
        if target is None:
            target = self._targets[path] = settings.address.target(path)
        headers = [*settings.headers, (b"content-length", str(len(body)).encode("ascii"))]
        try:
            async with asyncio.timeout(settings.request_timeout_s):
                answer = await self._line.upstream.post(
                    target, headers, body, settings.max_response_bytes
                )
        except TimeoutError:
            return _Failure(
                _TIMED_OUT, f"did not answer within {settings.request_timeout_s:g} seconds"
            )
        except CertificateRefused as error:
            return _Failure(_BAD_CERTIFICATE, f"cannot be used: {error}")
        except ConnectionFailed as error:
            return _Failure(_LOST, f"did not answer: {error}")
        except TooLarge as error:
            return _Failure(_TOO_LARGE, f"sent an answer {error}")
        return self._read(answer, target)

    def _read(self, answer: HttpAnswer, target: str) -> Reading | _Failure:
        if not 200 <= answer.status <= 299:
            words = endpoint_words(self._redact(answer.body))
            message = f"answered {answer.status}" + (f": {words}" if words else "")
            message += address_hint(answer.status, target)
            return _Failure(verdict(answer.status, answer.body), message, answer.retry_after)
        try:
            return self.settings.protocol.read(answer.body)
        except (EndpointError, AttemptFault):
            # What is quoted is cut, and half a secret is recognised no more: redact, read again.
            return self._read_failure(self._redact(answer.body), answer.retry_after)

    def _read_failure(self, body: bytes, retry_after: str | None) -> _Failure:
        try:
            self.settings.protocol.read(body)
        except EndpointError as error:
            return _Failure(verdict(error.status, body), f"answered an error: {error}", retry_after)
        except AttemptFault as fault:
            return _Failure(Verdict(fault.code), f"sent what cannot be read: {fault.message}")
        return _Failure(Verdict(IssueCode.MODEL_RESPONSE_INVALID), "sent what cannot be read")


@dataclass(frozen=True, slots=True)
class Answered:
    """A call that brought an answer."""

    reading: Reading
    latency_s: float
    retries: int


PAID_FAILURES: Final = frozenset(
    {
        IssueCode.MODEL_TIMED_OUT,
        IssueCode.MODEL_OUTPUT_TOO_LARGE,
        IssueCode.MODEL_RESPONSE_INVALID,
    }
)
"""The endpoint worked, and what it charges for it is not known."""


class AttemptClient:
    """A `ModelClient`: an endpoint, bound to one attempt."""

    __slots__ = ("_calls_succeeded", "_endpoint", "_timer", "_usage")

    def __init__(self, endpoint: Endpoint, timer: AgentTimer) -> None:
        self._endpoint = endpoint
        self._timer = timer
        self._usage = NO_USAGE
        self._calls_succeeded = 0

    @property
    def model_id(self) -> str:
        """The id that is sent to the endpoint."""
        return self._endpoint.settings.model_id

    @property
    def usage(self) -> Usage:
        """What this attempt has consumed so far; cost None once a call's is not known."""
        return self._usage

    @property
    def calls_succeeded(self) -> int:
        """How many calls brought an answer."""
        return self._calls_succeeded

    async def generate(self, request: ModelRequest) -> ModelResponse:
        """Make one call.

        Raises:
            AttemptFault: with the code that the contract's table gives its cause.
        """
        try:
            answered = await self._endpoint.call(request, self._timer)
        except AttemptFault as fault:
            if fault.code in PAID_FAILURES:
                self._usage += self._usage_of(None)
            raise
        reading = answered.reading
        self._calls_succeeded += 1
        usage = self._usage_of(reading.counts)
        self._usage += usage
        return ModelResponse(
            text=reading.text,
            tool_calls=reading.tool_calls,
            stop_reason=reading.stop_reason,
            usage=usage,
            usage_known=reading.counts is not None,
            model=reading.model,
            latency_s=answered.latency_s,
            retries=answered.retries,
            reasoning=reading.reasoning,
        )

    def _usage_of(self, counts: TokenCounts | None) -> Usage:
        if counts is None:
            return Usage(requests=1, cost_usd=None)
        return Usage(
            counts.input_tokens,
            counts.output_tokens,
            counts.cached_tokens,
            counts.reasoning_tokens,
            1,
            self._endpoint.pricing.cost_usd(counts),
        )


def make_endpoint(
    settings: Mapping[str, Any],
    secrets: SecretStore,
    *,
    prices: Mapping[str, Mapping[str, Any]] | None = None,
    clock: Clock,
    seed: int,
    lines: Lines | None = None,
    backoff: Backoff = BACKOFF,
    sleep: Sleep = asyncio.sleep,
) -> Endpoint:
    """Make the endpoint of a request's model; nothing is sent yet.

    Args:
        settings: `ModelSettings` as JSON, secrets in their `$secret` form.
        secrets: where their values are.
        prices: the user's `prices:`, by model id.
        clock: tells the time.
        seed: of the backoff's jitter.
        lines: hand in one object for all endpoints of a process, so that requests to one
            address share its connections and limits; without it this one has its own.
        backoff: how retries are spaced.
        sleep: how to wait.

    Raises:
        BadInput: an address, header or parameter that cannot be sent.
        SecretUnavailable: this process has no value for a secret.
    """
    known = parse_settings(settings, secrets)
    base_url = known.address.parts.geturl()
    pricing = pricing_for(
        known.model_id, base_url, is_local=known.address.is_local, prices=prices or {}
    )
    return Endpoint(
        known,
        pricing,
        clock=clock,
        seed=seed,
        lines=lines or Lines(),
        backoff=backoff,
        sleep=sleep,
        redact=Redactor(secrets).raw,
    )
