"""One try of a call: sent on, and answered piece by piece or whole.

Until the agent has been sent a byte, a failure may be tried again; afterwards the agent sees it.
An event stream is passed on as it comes; any other answer is read whole first, so that one which
breaks off is tried again like one that never came.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from steelyard.components.issues import IssueCode
from steelyard.models.answers import read_whole, refused
from steelyard.models.calls import Failure
from steelyard.models.client import Endpoint, no_answer
from steelyard.models.failures import ConnectionFailed, TooLarge
from steelyard.models.gateway.connection import Connection
from steelyard.models.gateway.cover import Cover, Secrets
from steelyard.models.gateway.requests import Head, Headers
from steelyard.models.gateway.routes import Route
from steelyard.models.gateway.streams import StreamReader
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
MAX_STALL_S: Final = 120.0
"""How long an agent may leave a stream unread: it holds a slot that others wait for."""
StreamFault = tuple[IssueCode | None, str]
"""What went wrong after the first byte; None as code where the endpoint is not to blame."""


@dataclass(frozen=True, slots=True)
class Passed:
    """A try that brought an answer."""

    counts: TokenCounts | None
    reading: Reading | None = None
    answer: HttpAnswer | None = None
    """The whole of it; None for a stream, which has been passed on already."""
    fault: StreamFault | None = None
    is_broken: bool = False
    """True where the agent must see that it broke off."""
    is_paid: bool = True
    """False for an error that came in place of any word."""


class Exchange:
    """The tries of one call.

    Args:
        endpoint: where they go.
        secrets: what the agent must not see.
        route: which call it is.
        head: of the agent's request.
        is_call: False for `count_tokens`, whose answer is no model's.
        strips_usage: True where usage in it is taken out again.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        secrets: Secrets,
        route: Route,
        head: Head,
        *,
        is_call: bool = True,
        strips_usage: bool = False,
    ) -> None:
        self.is_sent = False
        """True while the endpoint may be working on it."""
        self.stream: StreamReader | None = None
        """Of the last try, where its answer is a stream."""
        self._endpoint = endpoint
        self._secrets = secrets
        self._route = route
        self._head = head
        self._is_call = is_call
        self._strips_usage = strips_usage
        self._protocol = PROTOCOLS[route.protocol]
        self._has_begun = False

    async def send(self, body: bytes, out: Connection) -> Passed | Failure:
        """Send once; a failure may be tried again."""
        endpoint = self._endpoint
        target = endpoint.target(self._upstream_path())
        timeout_s = endpoint.settings.request_timeout_s
        self.is_sent = True
        self.stream = None
        answer: OpenAnswer | None = None
        try:
            async with asyncio.timeout(timeout_s) as limit:
                answer = await endpoint.upstream.open(target, self._headers(body), body)
                is_good = 200 <= answer.status <= 299
                if is_good and self._is_call and _is_event_stream(answer):
                    return await self._pass_stream(answer, out, limit)
                data = await read_all(answer, endpoint.settings.max_response_bytes)
        except (TimeoutError, ConnectionFailed, TooLarge) as error:
            failure = no_answer(error, timeout_s)
            if self.stream is not None and self._has_begun:
                words = f"broke off in mid-stream: it {failure.message}"
                return self._stream_end(self.stream, (failure.verdict.code, words))
            self.is_sent = False
            return failure
        finally:
            if answer is not None:
                with suppress(ConnectionFailed):
                    await answer.close()
        self.is_sent = False
        return self._whole(HttpAnswer(answer.status, answer.headers, data), target)

    def _whole(self, answer: HttpAnswer, target: str) -> Passed | Failure:
        redact = self._endpoint.redact
        if not 200 <= answer.status <= 299:
            return self._own_words(refused(answer, target, redact))
        if not self._is_call:
            return Passed(None, answer=answer)
        read = read_whole(answer, self._protocol.read, redact)
        if isinstance(read, Failure):
            return self._own_words(read)
        return Passed(read.counts, read, answer)

    def _own_words(self, failure: Failure) -> Failure:
        """Nothing found behind a protocol that the endpoint need not speak rejects no request.

        The agent chose it: it could else make its failures look like the endpoint's.
        """
        status = None if failure.answer is None else failure.answer.status
        if status in (404, 405, 501) and self._protocol is not self._endpoint.settings.protocol:
            code = IssueCode.MODEL_REQUEST_REFUSED
            return Failure(Verdict(code), failure.message, failure.answer)
        return failure

    async def _pass_stream(
        self, answer: OpenAnswer, out: Connection, limit: asyncio.Timeout
    ) -> Passed | Failure:
        """Pass a stream on as it comes, and read it."""
        reader = self.stream = StreamReader(self._route.protocol, strips_usage=self._strips_usage)
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
                if not await _has_drained(out):
                    return self._stream_end(reader, (None, "the agent does not read on"))
            if settings.request_timeout_s is not None:
                limit.reschedule(loop.time() + settings.request_timeout_s)
        self._write(out, answer, cover.feed(reader.close()) + cover.close())
        self._begin(out, answer)
        return self._stream_end(reader, None)

    def _stream_end(self, reader: StreamReader, fault: StreamFault | None) -> Passed:
        """Say what came of a stream."""
        end = reader.end()
        said = end.reading
        is_broken = fault is not None
        is_paid = True
        if fault is None and end.error is not None:
            found = verdict(end.error.status, end.error.body)
            words = endpoint_words(self._endpoint.redact(end.error.body))
            fault = (found.code, f"sent an error in mid-stream: {words}")
            is_paid = bool(said.text or said.reasoning or said.tool_calls or said.counts)
        elif fault is None and not end.is_complete:
            what = "ended before its last event" if end.has_events else "sent no event"
            fault = (IssueCode.MODEL_RESPONSE_INVALID, what)
        if fault is not None:
            fault = (fault[0], f"{self._endpoint.settings.address.origin} {fault[1]}")
        return Passed(said.counts, said, None, fault, is_broken, is_paid)

    def _write(self, out: Connection, answer: OpenAnswer, data: bytes) -> None:
        if data:
            self._begin(out, answer)
            out.write(data)

    def _begin(self, out: Connection, answer: OpenAnswer) -> None:
        if not self._has_begun:
            self._has_begun = True
            out.start(answer.status, self.passed_headers(answer.headers))

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

    def passed_headers(self, headers: Headers) -> Headers:
        """Give what of an answer's headers the agent may see."""
        return [
            (name.lower(), self._secrets.covered(value))
            for name, value in headers
            if name.lower() in PASSED_BACK or name.lower().startswith(PASSED_BACK_PREFIXES)
        ]


async def _has_drained(out: Connection) -> bool:
    """Wait for the agent to read; False where it keeps a slot and reads nothing."""
    try:
        async with asyncio.timeout(MAX_STALL_S):
            await out.drained()
    except TimeoutError:
        return False
    return True


def _is_event_stream(answer: OpenAnswer) -> bool:
    kind = header(answer.headers, b"content-type") or b""
    return kind.partition(b";")[0].strip().lower() == b"text/event-stream"
