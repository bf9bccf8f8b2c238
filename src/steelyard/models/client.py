"""One endpoint and its driver-side clients: a request becomes an answer, or a named cause.

`calls.py` waits and retries, `upstream.py` moves bytes, `protocols/` gives them meaning,
`refusals.py` names what went wrong.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from steelyard.components.clock import AgentTimer, Clock
from steelyard.components.issues import AttemptFault, IssueCode
from steelyard.components.model import ModelRequest, ModelResponse
from steelyard.components.values import NO_USAGE, Usage
from steelyard.config.redaction import Redactor
from steelyard.config.secrets import SecretStore
from steelyard.models.allowance import Allowance, asked_tokens, assumed_counts
from steelyard.models.answers import read_whole, refused
from steelyard.models.backoff import BACKOFF, Backoff
from steelyard.models.calls import (
    BAD_CERTIFICATE,
    LOST,
    PAID_FAILURES,
    TIMED_OUT,
    TOO_LARGE,
    Calls,
    Failure,
    Made,
    Sleep,
)
from steelyard.models.failures import CertificateRefused, ConnectionFailed, TooLarge
from steelyard.models.lines import Lines
from steelyard.models.prices import Pricing, pricing_for
from steelyard.models.protocols.encoding import encode
from steelyard.models.protocols.form import Reading, TokenCounts
from steelyard.models.settings import EndpointSettings, parse_settings
from steelyard.models.upstream import Upstream


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
        self.redact = redact
        self._line = lines.join(
            settings.address,
            settings.headers,
            max_connections=settings.max_connections,
            rpm=settings.rpm,
            tpm=settings.tpm,
            now_s=clock.monotonic(),
        )
        self.slots = self._line.slots
        self.calls = Calls(
            self._line,
            settings.address.origin,
            max_retries=settings.max_request_retries,
            clock=clock,
            seed=seed,
            backoff=backoff,
            sleep=sleep,
        )
        self._targets: dict[str, str] = {}

    @property
    def calls_succeeded(self) -> int:
        """Over all attempts."""
        return self.calls.succeeded

    @property
    def upstream(self) -> Upstream:
        """The connections to its address."""
        return self._line.upstream

    def client(
        self, timer: AgentTimer, allowance: Allowance | None = None, seed: int | None = None
    ) -> AttemptClient:
        """Bind a client to one attempt's timer, to what it may spend, and to its seed.

        The seed goes out with each call where the protocol has one and nobody wrote another.
        """
        takes_seed = self.settings.protocol.takes_seed and "seed" not in self.settings.params
        return AttemptClient(self, timer, allowance, seed if takes_seed else None)

    async def close(self) -> None:
        """Close every connection. Called once, after the last call."""
        await self._line.leave()

    def target(self, path: str) -> str:
        """Give path and query below the base URL, as they are sent."""
        target = self._targets.get(path)
        if target is None:
            target = self._targets[path] = self.settings.address.target(path)
        return target

    def usage_of(self, counts: TokenCounts | None) -> Usage:
        """Price one call; unknown counts are an unknown cost, never 0."""
        if counts is None:
            return Usage(requests=1, cost_usd=None)
        return Usage(
            counts.input_tokens,
            counts.output_tokens,
            counts.cached_tokens,
            counts.reasoning_tokens,
            1,
            self.pricing.cost_usd(counts),
        )

    async def call(
        self, request: ModelRequest, timer: AgentTimer, on_cut: Callable[[], None]
    ) -> Made[Reading]:
        """Make one call, request retries included; how it ended is in what is returned.

        Args:
            request: what is asked.
            timer: the attempt's.
            on_cut: told where the call is cancelled with a try under way, which may cost money.

        Raises:
            AttemptFault: CONFIGURATION, or the endpoint rejects every call.
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
        return await self.calls.make(
            lambda: self._send(path, body, on_cut), body_bytes=len(body), timer=timer
        )

    async def _send(self, path: str, body: bytes, on_cut: Callable[[], None]) -> Reading | Failure:
        settings = self.settings
        target = self.target(path)
        headers = [*settings.headers, (b"content-length", str(len(body)).encode("ascii"))]
        try:
            async with asyncio.timeout(settings.request_timeout_s):
                answer = await self.upstream.post(
                    target, headers, body, settings.max_response_bytes
                )
        except (TimeoutError, ConnectionFailed, TooLarge) as error:
            return no_answer(error, settings.request_timeout_s)
        except asyncio.CancelledError:
            on_cut()
            raise
        if not 200 <= answer.status <= 299:
            return refused(answer, target, self.redact)
        return read_whole(answer, settings.protocol.read, self.redact)


def no_answer(
    error: TimeoutError | ConnectionFailed | TooLarge, timeout_s: float | None
) -> Failure:
    """Name what kept a try from bringing an answer."""
    if isinstance(error, TimeoutError):
        return Failure(TIMED_OUT, f"did not answer within {timeout_s:g} seconds")
    if isinstance(error, CertificateRefused):
        return Failure(BAD_CERTIFICATE, f"cannot be used: {error}")
    if isinstance(error, TooLarge):
        return Failure(TOO_LARGE, f"sent an answer {error}")
    return Failure(LOST, f"did not answer: {error}")


class AttemptClient:
    """A `ModelClient`: an endpoint, bound to one attempt."""

    __slots__ = ("_allowance", "_calls_succeeded", "_endpoint", "_seed", "_timer", "_usage")

    def __init__(
        self,
        endpoint: Endpoint,
        timer: AgentTimer,
        allowance: Allowance | None = None,
        seed: int | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._timer = timer
        self._allowance = allowance
        self._seed = seed
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
            AttemptFault: ATTEMPT_BUDGET once the attempt's allowance is spent; else with the code
                that the contract's table gives its cause.
        """
        if self._seed is not None:
            request = replace(request, params={"seed": self._seed, **request.params})
        sent_bytes = sum(len(message.content) for message in request.messages)
        sent_bytes += sum(len(str(tool.parameters)) for tool in request.tools)
        allowance = self._allowance
        if allowance is None or not allowance.is_bounded:
            return await self._generate(request, sent_bytes)
        params = {**self._endpoint.settings.params, **request.params}
        with_params = sent_bytes + sum(len(str(value)) for value in params.values())
        most = allowance.most_of(with_params, asked_tokens(params))
        held = await allowance.hold(self._endpoint.usage_of(most), self._timer)
        try:
            return await self._generate(request, sent_bytes)
        finally:
            allowance.release(held)

    async def _generate(self, request: ModelRequest, sent_bytes: int) -> ModelResponse:
        def cut() -> None:
            self._settle(None, sent_bytes)

        made = await self._endpoint.call(request, self._timer, cut)
        reading = made.outcome
        if isinstance(reading, Failure):
            if reading.verdict.code in PAID_FAILURES:
                self._settle(None, sent_bytes)
            raise self._endpoint.calls.fault_of(reading, made.retries)
        self._calls_succeeded += 1
        if reading.counts is None and self._allowance is not None:
            self._allowance.uncounted += 1
        usage = self._settle(reading.counts, sent_bytes, len(reading.text))
        return ModelResponse(
            text=reading.text,
            tool_calls=reading.tool_calls,
            stop_reason=reading.stop_reason,
            usage=usage,
            usage_known=reading.counts is not None,
            model=reading.model,
            latency_s=made.latency_s,
            retries=made.retries,
            reasoning=reading.reasoning,
            echo=reading.echo,
        )

    def _settle(
        self, counts: TokenCounts | None, sent_bytes: int, said_bytes: int | None = None
    ) -> Usage:
        usage = self._endpoint.usage_of(counts)
        self._usage += usage
        if self._allowance is not None:
            assumed = assumed_counts(sent_bytes, said_bytes) if counts is None else None
            self._allowance.spend(usage, self._endpoint.usage_of(assumed))
        return usage


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
