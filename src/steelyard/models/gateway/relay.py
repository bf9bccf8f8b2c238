"""One call: held against the model and the budget, made, settled, put on record, answered."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from steelyard.components.issues import AttemptFault, IssueCode
from steelyard.components.values import Usage
from steelyard.models.allowance import BYTES_A_TOKEN, asked_tokens, assumed_counts
from steelyard.models.calls import PAID_FAILURES, Failure
from steelyard.models.client import Endpoint
from steelyard.models.gateway.bodies import Prepared, Unreadable, prepare, read_body
from steelyard.models.gateway.connection import Connection
from steelyard.models.gateway.cover import Secrets
from steelyard.models.gateway.exchange import Exchange, Passed, StreamFault
from steelyard.models.gateway.reach import reaching
from steelyard.models.gateway.recording import CallEnd
from steelyard.models.gateway.requests import Head, Reply
from steelyard.models.gateway.routes import Kind, Route, error_reply, wrong_model
from steelyard.models.gateway.tickets import Ticket
from steelyard.models.protocols import PROTOCOLS
from steelyard.models.protocols.form import Reading
from steelyard.models.upstream import HttpAnswer

STATUS_OF: Final[Mapping[IssueCode, int]] = {
    IssueCode.MODEL_TIMED_OUT: 504,
    IssueCode.ATTEMPT_BUDGET: 402,
}
"""What the agent is told where the endpoint said nothing; else 502."""
CANCELLED: Final = "cancelled"
"""The word for calls that were ended from our side of the endpoint; no issue of anybody's."""


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
        self._held_bytes = 0
        self._key = 0
        self._began_s = 0.0
        self._sent_bytes = 0
        self._asked_tokens = 0

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
        except Exception as error:  # noqa: BLE001 — one call's fault must not end the gateway
            words = f"the gateway failed: {type(error).__name__}: {error}"
            ticket.fail(AttemptFault(IssueCode.UNKNOWN, words))

    async def _answer(self, raw: bytes, out: Connection) -> None:
        route, settings = self._route, self._endpoint.settings
        try:
            data = read_body(raw)
        except Unreadable as error:
            out.reply(error_reply(route.protocol, 400, str(error)))
            return
        if data.get("model") != settings.model_id:
            out.reply(wrong_model(route.protocol, data.get("model"), settings.model_id))
            return
        is_call = route.kind is Kind.CALL
        params = settings.params if is_call else {}
        if refusal := self._refused(raw, {k: v for k, v in data.items() if k not in params}):
            out.reply(refusal)
            return
        protocol, seed = PROTOCOLS[route.protocol], self._ticket.seed
        if is_call and seed is not None and protocol.takes_seed and data.get("seed") is None:
            params = {"seed": seed, **params}
        reserved = protocol.reserved
        try:
            prepared = prepare(raw, data, route.protocol, params, reserved)
        except (ValueError, RecursionError) as error:
            out.reply(error_reply(route.protocol, 400, f"the body cannot be sent: {error}"))
            return
        if is_call:
            await self._call(prepared, out)
        else:
            await self._count(prepared.body, out)

    def _refused(self, raw: bytes, data: Mapping[str, Any]) -> Reply | None:
        """Refuse what would be done or spent where nobody sees it."""
        protocol = self._route.protocol
        if protocol == "openai-responses" and data.get("background"):
            said = "`background` is not served: such a call would go on, and cost, unseen"
            return error_reply(protocol, 400, said)
        if self._endpoint.settings.provider_tools:
            return None
        what = reaching(protocol, data, raw)
        if what is None:
            return None
        said = f"{what} would make the provider reach out for the agent, which this run does not "
        return error_reply(protocol, 403, f"{said}allow; see `model.provider_tools`")

    async def _count(self, body: bytes, out: Connection) -> None:
        """Pass `count_tokens` on: whatever comes is the agent's to read."""
        exchange = Exchange(self._endpoint, self._secrets, self._route, self._head, is_call=False)
        try:
            made = await self._endpoint.calls.make(
                lambda: exchange.send(body, out),
                body_bytes=0,
                timer=self._ticket.timer,
                is_telling=False,
            )
        except AttemptFault as fault:
            out.reply(self._fault_reply(fault))
            return
        outcome = made.outcome
        if outcome.answer is not None:
            out.reply(self._passed_reply(exchange, outcome.answer))
        elif isinstance(outcome, Failure):
            out.reply(self._fault_reply(self._endpoint.calls.fault_of(outcome, made.retries)))

    async def _call(self, prepared: Prepared, out: Connection) -> None:
        ticket, endpoint = self._ticket, self._endpoint
        ticket.requests += 1
        self._sent_bytes = len(prepared.body)
        self._asked_tokens = asked_tokens({**prepared.data, **endpoint.settings.params})
        steps, self._key = ticket.recorder.asked(self._route.protocol, prepared.data)
        for step in steps:
            ticket.record(step)
        self._began_s = endpoint.clock.monotonic()
        exchange = Exchange(
            endpoint,
            self._secrets,
            self._route,
            self._head,
            strips_usage=prepared.strips_usage,
        )

        async def send() -> Passed | Failure:
            ticket.allowance.check()  # others may have spent it while this one waited
            return await exchange.send(prepared.body, out)

        held = None
        try:
            if ticket.allowance.is_bounded:
                most = ticket.allowance.most_of(self._sent_bytes, self._asked_tokens)
                held = await ticket.allowance.hold(endpoint.usage_of(most), ticket.timer)
            made = await endpoint.calls.make(
                send, body_bytes=len(prepared.body), timer=ticket.timer
            )
        except AttemptFault as fault:
            self._end(exchange, None, None, fault=(fault.code, fault.message))
            ticket.fail(fault)
            out.reply(self._fault_reply(fault))
        except asyncio.CancelledError:
            self._cancelled(exchange)
            if out.severed is not None:
                words = f"the agent's connection to the model gateway was cut: {out.severed}"
                ticket.last_fault = AttemptFault(IssueCode.ENVIRONMENT_LOST, words)
            raise
        else:
            if isinstance(made.outcome, Failure):
                self._failed(exchange, made.outcome, made.retries, out)
            else:
                self._passed(exchange, made.outcome, made.retries, out)
        finally:
            if held is not None:  # by now it is settled
                ticket.allowance.release(held)

    def _passed(self, exchange: Exchange, passed: Passed, retries: int, out: Connection) -> None:
        """Settle a call that brought an answer, whatever became of it after its first byte."""
        ticket, fault = self._ticket, passed.fault
        usage = self._endpoint.usage_of(passed.counts) if passed.is_paid else None
        ticket.calls_succeeded += fault is None
        ticket.allowance.uncounted += fault is None and passed.counts is None
        code = None if fault is None else fault[0]
        words = "" if fault is None else fault[1]
        ticket.last_fault = None if code is None else AttemptFault(code, words)
        self._end(exchange, passed.reading, usage, retries, fault)
        if passed.answer is not None:
            out.reply(self._passed_reply(exchange, passed.answer))
        elif passed.is_broken:
            out.abort()
        else:
            out.end()

    def _failed(self, exchange: Exchange, failure: Failure, retries: int, out: Connection) -> None:
        """Name a call that brought no answer; tell the agent in its protocol's words."""
        ticket = self._ticket
        fault = self._endpoint.calls.fault_of(failure, retries)
        usage = self._endpoint.usage_of(None) if fault.code in PAID_FAILURES else None
        self._end(exchange, None, usage, retries, (fault.code, fault.message))
        if fault.request_fault:
            ticket.fail(fault)
        else:
            ticket.last_fault = fault
        answer = failure.answer
        # Where a redirect leads to, no agent need know.
        if answer is not None and not 300 <= answer.status <= 399:
            out.reply(self._passed_reply(exchange, answer))
        else:
            out.reply(self._fault_reply(fault))

    def _cancelled(self, exchange: Exchange) -> None:
        """Settle a call that was ended from outside: the agent hung up, or its time is over."""
        if not exchange.is_sent:
            return
        reading = None if exchange.stream is None else exchange.stream.end().reading
        usage = self._endpoint.usage_of(None if reading is None else reading.counts)
        self._end(exchange, reading, usage, fault=(None, "ended before its answer was whole"))

    def _end(
        self,
        exchange: Exchange,
        reading: Reading | None,
        usage: Usage | None,
        retries: int = 0,
        fault: StreamFault | None = None,
    ) -> None:
        """Put a call's end on record, before the agent sees it."""
        ticket = self._ticket
        if usage is not None:
            is_known = usage.input_tokens + usage.output_tokens > 0
            ticket.settle(usage, usage if is_known else self._assumed(exchange, reading))
        end = CallEnd(
            protocol=self._route.protocol,
            reading=reading,
            usage=usage,
            duration_s=self._endpoint.clock.monotonic() - self._began_s,
            retries=retries,
            fault=None if fault is None else str(fault[0] or CANCELLED),
            fault_message=None if fault is None else fault[1],
            is_stream=exchange.stream is not None,
        )
        ticket.record(ticket.recorder.answered(self._key, end))

    def _assumed(self, exchange: Exchange, reading: Reading | None) -> Usage:
        """Say what the call may have consumed, for where the endpoint never did."""
        said = None
        if reading is not None:
            said = sum(len(call.arguments) for call in reading.tool_calls)
            said += len(reading.text) + len(reading.reasoning or "")
            # With several choices only the first is read; each event holds a token at least.
            events = 0 if exchange.stream is None else exchange.stream.events
            said = max(said, events * BYTES_A_TOKEN)
        counts = assumed_counts(self._sent_bytes, said or None, self._asked_tokens)
        return self._endpoint.usage_of(counts)

    def _passed_reply(self, exchange: Exchange, answer: HttpAnswer) -> Reply:
        headers = exchange.passed_headers(answer.headers)
        if not 200 <= answer.status <= 299:
            headers.append((b"x-should-retry", b"false"))  # the gateway already has
        return Reply(answer.status, self._secrets.covered(answer.body), tuple(headers))

    def _fault_reply(self, fault: AttemptFault) -> Reply:
        status = STATUS_OF.get(fault.code, 502)
        words = self._secrets.covered(fault.message.encode("utf-8", "replace"))
        return error_reply(
            self._route.protocol, status, words.decode("utf-8", "replace"), code=fault.code.value
        )
