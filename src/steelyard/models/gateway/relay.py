"""One call: checks, waits, tries again before the first byte, then passes bytes on.

An event stream is passed on piece by piece as it comes; any other answer is read whole first, so
that one which breaks off is tried again like one that never came.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from steelyard.components.issues import AttemptFault, IssueCode
from steelyard.models.answers import read_whole, refused
from steelyard.models.calls import PAID_FAILURES, Failure
from steelyard.models.client import Endpoint, no_answer
from steelyard.models.failures import ConnectionFailed, TooLarge
from steelyard.models.gateway.bodies import Prepared, Unreadable, prepare, read_body
from steelyard.models.gateway.connection import Connection, Head, Headers, Reply
from steelyard.models.gateway.cover import Cover, Secrets
from steelyard.models.gateway.recording import CallEnd
from steelyard.models.gateway.routes import Kind, Route, error_reply, wrong_model
from steelyard.models.gateway.streams import StreamReader
from steelyard.models.gateway.tickets import Ticket
from steelyard.models.protocols import PROTOCOLS
from steelyard.models.protocols.form import Reading, TokenCounts
from steelyard.models.refusals import Verdict, endpoint_words, verdict
from steelyard.models.upstream import HttpAnswer, OpenAnswer, header, read_all

SENT_ON: Final = frozenset(
    {b"anthropic-version", b"anthropic-beta", b"openai-beta", b"idempotency-key"}
)
"""Of the agent's headers; all else, its token first of all, stays here."""
PASSED_BACK: Final = frozenset(
    {b"content-type", b"cache-control", b"retry-after", b"request-id", b"x-request-id"}
)
PASSED_BACK_PREFIXES: Final = (b"anthropic-ratelimit-", b"x-ratelimit-")
STATUS_OF: Final[Mapping[IssueCode, int]] = {
    IssueCode.MODEL_TIMED_OUT: 504,
    IssueCode.ATTEMPT_BUDGET: 402,
}
"""What the agent is told where the endpoint said nothing; else 502."""


@dataclass(frozen=True, slots=True)
class Passed:
    """A try that brought an answer."""

    counts: TokenCounts | None
    reading: Reading | None = None
    answer: HttpAnswer | None = None
    """The whole of it; None for a stream, which has been passed on already."""
    fault: tuple[IssueCode, str] | None = None
    """What went wrong after its first byte."""
    is_broken: bool = False
    """True where the agent must see that it broke off."""


class ModelCall:
    """One request of an agent that goes on to the endpoint; a `Work` of its connection."""

    def __init__(
        self, ticket: Ticket, endpoint: Endpoint, secrets: Secrets, route: Route, head: Head
    ) -> None:
        self._ticket = ticket
        self._endpoint = endpoint
        self._secrets = secrets
        self._route = route
        self._head = head
        self._protocol = PROTOCOLS[route.protocol]
        self._held_bytes = 0
        self._is_sent = False
        self._has_begun = False
        self._stream: StreamReader | None = None
        self._began_s = 0.0

    def hold(self, body_bytes: int) -> Reply | None:
        """Account for a piece of its body; a refusal where the attempt holds too much."""
        if not self._ticket.hold(body_bytes):
            return error_reply(self._route.protocol, 413, "too much is being sent at once")
        self._held_bytes += body_bytes
        return None

    def close(self) -> None:
        """Let go of the body."""
        self._ticket.let_go(self._held_bytes)
        self._held_bytes = 0

    async def run(self, body: bytes, out: Connection) -> None:
        """Answer it."""
        ticket = self._ticket
        task = asyncio.current_task()
        if ticket.is_revoked or task is None:
            out.reply(error_reply(self._route.protocol, 401, "this token is not valid any more"))
            return
        ticket.enter(task)
        try:
            await self._answer(body, out)
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 — one call's fault must not end the gateway
            words = f"the gateway failed: {type(error).__name__}: {error}"
            ticket.fail(AttemptFault(IssueCode.UNKNOWN, words))

    async def _answer(self, raw: bytes, out: Connection) -> None:
        route = self._route
        try:
            data = read_body(raw)
        except Unreadable as error:
            out.reply(error_reply(route.protocol, 400, str(error)))
            return
        settings = self._endpoint.settings
        if data.get("model") != settings.model_id:
            out.reply(wrong_model(route.protocol, data.get("model"), settings.model_id))
            return
        if route.kind is Kind.COUNT:
            await self._count(raw, out)
            return
        try:
            params, reserved = settings.params, self._protocol.reserved
            prepared = prepare(raw, data, route.protocol, params, reserved)
        except ValueError as error:
            out.reply(error_reply(route.protocol, 400, f"the body cannot be sent: {error}"))
            return
        await self._call(prepared, out)

    async def _count(self, body: bytes, out: Connection) -> None:
        """Pass `count_tokens` on: whatever comes is the agent's to read."""
        endpoint = self._endpoint
        try:
            made = await endpoint.calls.make(
                lambda: self._try(body, None, out),
                body_bytes=0,
                timer=self._ticket.timer,
                is_telling=False,
            )
        except AttemptFault as fault:
            out.reply(self._fault_reply(fault))
            return
        outcome = made.outcome
        answer = outcome.answer
        if answer is None:
            message = outcome.message if isinstance(outcome, Failure) else "no answer came"
            out.reply(error_reply(self._route.protocol, 502, f"the endpoint {message}"))
        else:
            out.reply(self._passed_reply(answer))

    async def _call(self, prepared: Prepared, out: Connection) -> None:
        ticket, endpoint = self._ticket, self._endpoint
        ticket.requests += 1
        steps, key = ticket.recorder.asked(self._route.protocol, prepared.data)
        for step in steps:
            ticket.record(step)
        self._began_s = endpoint.clock.monotonic()
        try:
            ticket.allowance.check()
            made = await endpoint.calls.make(
                lambda: self._try(prepared.body, prepared, out),
                body_bytes=len(prepared.body),
                timer=ticket.timer,
            )
        except AttemptFault as fault:
            self._end(key, None, None, fault=(fault.code, fault.message))
            ticket.fail(fault)
            out.reply(self._fault_reply(fault))
            return
        except asyncio.CancelledError:
            self._cancelled(key)
            raise
        outcome = made.outcome
        if isinstance(outcome, Failure):
            self._failed(key, outcome, made.retries, out)
            return
        usage = endpoint.usage_of(outcome.counts)
        ticket.calls_succeeded += outcome.fault is None
        ticket.last_fault = None if outcome.fault is None else AttemptFault(*outcome.fault)
        self._end(key, outcome.reading, usage, made.retries, outcome.fault)
        if outcome.answer is not None:
            out.reply(self._passed_reply(outcome.answer))
        elif outcome.is_broken:
            out.abort()
        else:
            out.end()

    def _failed(self, key: int, failure: Failure, retries: int, out: Connection) -> None:
        """Name a call that brought no answer; tell the agent in its protocol's words."""
        ticket = self._ticket
        fault = self._endpoint.calls.fault_of(failure, retries)
        is_paid = fault.code in PAID_FAILURES
        usage = self._endpoint.usage_of(None) if is_paid else None
        self._end(key, None, usage, retries, (fault.code, fault.message))
        if fault.request_fault:
            ticket.fail(fault)
        else:
            ticket.last_fault = fault
        answer = failure.answer
        if answer is not None and (200 <= answer.status <= 299 or 400 <= answer.status <= 599):
            out.reply(self._passed_reply(answer))
        else:
            out.reply(self._fault_reply(fault))

    def _cancelled(self, key: int) -> None:
        """Settle a call that was ended from outside: the agent hung up, or its time is over."""
        if not self._is_sent:
            return
        stream = self._stream
        end = None if stream is None else stream.end()
        counts = (
            None if end is None or stream is None or not stream.has_usage else (end.reading.counts)
        )
        usage = self._endpoint.usage_of(counts)
        reading = None if end is None else end.reading
        self._end(key, reading, usage, fault=(None, "the call was ended before its answer was"))

    def _end(
        self,
        key: int,
        reading: Reading | None,
        usage: Any,
        retries: int = 0,
        fault: tuple[IssueCode | None, str] | None = None,
    ) -> None:
        """Put a call's end on record, before the agent sees it."""
        ticket = self._ticket
        if usage is not None:
            ticket.settle(usage)
        code = None if fault is None else (fault[0] or "cancelled")
        end = CallEnd(
            self._route.protocol,
            reading,
            usage,
            self._endpoint.clock.monotonic() - self._began_s,
            retries,
            None if code is None else str(code),
            None if fault is None else fault[1],
            self._stream is not None,
        )
        ticket.record(ticket.recorder.answered(key, end))

    # One try.

    async def _try(
        self, body: bytes, prepared: Prepared | None, out: Connection
    ) -> Passed | Failure:
        """Send once. Until the agent has been sent a byte, a failure may be tried again."""
        endpoint = self._endpoint
        if prepared is not None:
            self._ticket.allowance.check()
        target = endpoint.target(self._upstream_path())
        timeout_s = endpoint.settings.request_timeout_s
        self._is_sent = True
        self._stream = None
        answer: OpenAnswer | None = None
        try:
            async with asyncio.timeout(timeout_s) as limit:
                answer = await endpoint.upstream.open(target, self._headers(body), body)
                is_stream = prepared is not None and _is_event_stream(answer)
                if is_stream and 200 <= answer.status <= 299:
                    return await self._pass_stream(answer, prepared, out, limit)
                data = await read_all(answer, endpoint.settings.max_response_bytes)
        except (TimeoutError, ConnectionFailed, TooLarge) as error:
            failure = no_answer(error, timeout_s)
            if self._stream is not None and self._has_begun:
                words = f"broke off in mid-stream: it {failure.message}"
                return self._stream_end(self._stream, (failure.verdict.code, words))
            self._is_sent = False
            return failure
        finally:
            if answer is not None:
                with suppress(ConnectionFailed):
                    await answer.close()
        self._is_sent = False
        return self._whole(HttpAnswer(answer.status, answer.headers, data), target, prepared)

    def _whole(
        self, answer: HttpAnswer, target: str, prepared: Prepared | None
    ) -> Passed | Failure:
        redact = self._endpoint.redact
        if not 200 <= answer.status <= 299:
            return self._own_words(refused(answer, target, redact))
        if prepared is None:
            return Passed(None, answer=answer)
        read = read_whole(answer, self._protocol.read, redact)
        if isinstance(read, Failure):
            return self._own_words(read)
        return Passed(read.counts, read, answer)

    def _own_words(self, failure: Failure) -> Failure:
        """Nothing found behind a protocol that the endpoint need not speak rejects no request."""
        status = None if failure.answer is None else failure.answer.status
        if status in (404, 405, 501) and self._protocol is not self._endpoint.settings.protocol:
            code = failure.verdict.code
            return Failure(Verdict(code), failure.message, failure.answer)
        return failure

    async def _pass_stream(
        self, answer: OpenAnswer, prepared: Prepared | None, out: Connection, limit: asyncio.Timeout
    ) -> Passed | Failure:
        """Pass a stream on as it comes, and read it."""
        strips = prepared is not None and prepared.strips_usage
        reader = self._stream = StreamReader(self._route.protocol, strips_usage=strips)
        cover = Cover(self._secrets)
        settings = self._endpoint.settings
        loop = asyncio.get_running_loop()
        size = 0
        async for piece in answer.pieces():
            size += len(piece)
            if size > settings.max_response_bytes:
                raise TooLarge(f"above {settings.max_response_bytes} bytes")
            self._write(out, answer, cover.feed(reader.feed(piece)))
            if out.is_full:
                limit.reschedule(None)  # the agent's slowness is not the endpoint's
                await out.drained()
            if settings.request_timeout_s is not None:
                limit.reschedule(loop.time() + settings.request_timeout_s)
        self._write(out, answer, cover.feed(reader.close()) + cover.close())
        self._begin(out, answer)
        return self._stream_end(reader, None)

    def _stream_end(self, reader: StreamReader, fault: tuple[IssueCode, str] | None) -> Passed:
        """Say what came of a stream."""
        end = reader.end()
        is_broken = fault is not None
        if fault is None and end.error is not None:
            found = verdict(end.error.status, end.error.body)
            words = endpoint_words(self._endpoint.redact(end.error.body))
            fault = (found.code, f"sent an error in mid-stream: {words}")
        elif fault is None and not end.is_complete:
            what = "ended before its last event" if end.has_events else "sent no event"
            fault = (IssueCode.MODEL_RESPONSE_INVALID, what)
        if fault is not None:
            fault = (fault[0], f"{self._endpoint.settings.address.origin} {fault[1]}")
        return Passed(end.reading.counts, end.reading, None, fault, is_broken)

    def _write(self, out: Connection, answer: OpenAnswer, data: bytes) -> None:
        if data:
            self._begin(out, answer)
            out.write(data)

    def _begin(self, out: Connection, answer: OpenAnswer) -> None:
        if not self._has_begun:
            self._has_begun = True
            out.start(answer.status, self._passed_headers(answer.headers))

    # Forms.

    def _upstream_path(self) -> str:
        own = self._endpoint.settings.protocol
        path = self._route.path
        # A base URL ends in the version where OpenAI's protocols are spoken, and without it else.
        if "anthropic" in (self._protocol.name, own.name):
            path = f"/v1{path}"
        return path + (f"?{self._route.query}" if self._route.query else "")

    def _headers(self, body: bytes) -> Headers:
        ours = self._endpoint.settings.headers_by_protocol[self._protocol.name]
        theirs = [(name, value) for name, value in self._head.headers if name in SENT_ON]
        extra = self._endpoint.settings.extra_header_names
        sent = [pair for pair in theirs if pair[0] not in extra]
        names = {name for name, _ in sent}
        kept = [pair for pair in ours if pair[0] not in names]
        return [*kept, *sent, (b"content-length", str(len(body)).encode("ascii"))]

    def _passed_headers(self, headers: Headers) -> Headers:
        return [
            (name.lower(), self._secrets.covered(value))
            for name, value in headers
            if name.lower() in PASSED_BACK or name.lower().startswith(PASSED_BACK_PREFIXES)
        ]

    def _passed_reply(self, answer: HttpAnswer) -> Reply:
        headers = self._passed_headers(answer.headers)
        if not 200 <= answer.status <= 299:
            headers.append((b"x-should-retry", b"false"))  # the gateway already has
        return Reply(answer.status, self._secrets.covered(answer.body), tuple(headers))

    def _fault_reply(self, fault: AttemptFault) -> Reply:
        status = STATUS_OF.get(fault.code, 502)
        words = self._secrets.covered(fault.message.encode("utf-8", "replace"))
        return error_reply(
            self._route.protocol, status, words.decode("utf-8", "replace"), code=fault.code.value
        )


def _is_event_stream(answer: OpenAnswer) -> bool:
    kind = header(answer.headers, b"content-type") or b""
    return kind.partition(b";")[0].strip().lower() == b"text/event-stream"
