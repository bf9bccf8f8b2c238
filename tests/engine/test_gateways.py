"""An attempt at the gateway: let in while its agent runs, ended by it, and never blamed for it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from steelyard.components.clock import AgentTimer
from steelyard.components.environment import OpenRequest, Session
from steelyard.components.gateway import ModelAccess
from steelyard.components.harness import HarnessResult, HarnessTraits
from steelyard.components.issues import AttemptFault, Issue, IssueCode, Outcome, Phase
from steelyard.components.steps import Step
from steelyard.components.values import NO_USAGE, Usage
from steelyard.config.secrets import SecretStore
from steelyard.engine.attempt import execute
from steelyard.engine.gateways import RequestGateway
from steelyard.engine.spec import ExecutionResult, ExecutionSpec, TimeLimits
from steelyard.models.allowance import Allowance
from tests.engine.fakes import FakeEnvironment, FakeHarness, Watch, services, spec

TOKEN = "sk-steelyard-0123456789abcdef"
DOWN = AttemptFault(IssueCode.MODEL_UNAVAILABLE, "503 from the endpoint")
BROKE = AttemptFault(IssueCode.ATTEMPT_BUDGET, "attempt_usd is spent")
REJECTED = AttemptFault(IssueCode.MODEL_ENDPOINT_REJECTED, "401", request_fault=True)


class Ticket:
    def __init__(self, on_step: Callable[[Step], None], on_fault: Callable[[Any], None]) -> None:
        self.token = TOKEN
        self.usage = NO_USAGE
        self.calls_succeeded = 0
        self.last_fault: AttemptFault | None = None
        self.on_step, self.on_fault = on_step, on_fault
        self.under_way = False
        self.revoked = 0

    def access(self, url: str) -> ModelAccess:
        return ModelAccess(url, self.token, "m", "openai-chat")

    async def revoke(self) -> None:
        await asyncio.sleep(0)
        self.revoked += 1
        if self.under_way:
            self.under_way = False
            self.usage += Usage(requests=1, cost_usd=None)
            self.on_step(Step("agent", "cut off"))


class Gateway:
    """Gives a test the tickets that it made."""

    def __init__(self) -> None:
        self.tickets: list[Ticket] = []
        self.allowances: list[Allowance] = []
        self.closed = 0

    @property
    def is_open(self) -> bool:
        return not self.closed

    @property
    def socket_path(self) -> Path:
        raise AssertionError

    async def serve(self, listener: socket.socket) -> Callable[[], None]:
        raise AssertionError

    async def host_url(self) -> str:
        return "http://gate"

    def admit(
        self,
        *,
        timer: AgentTimer,
        allowance: Allowance,
        on_step: Callable[[Step], None],
        on_fault: Callable[[AttemptFault], None],
        seed: int | None = None,
    ) -> Ticket:
        ticket = Ticket(on_step, on_fault)
        self.tickets.append(ticket)
        self.allowances.append(allowance)
        return ticket

    async def close(self) -> None:
        self.closed += 1


class Agent(FakeHarness):
    traits = HarnessTraits(calls_model=True, uses_gateway=True)


class Reaching(FakeEnvironment):
    """Its sessions reach a gateway that they are opened with."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.opened: list[OpenRequest] = []

    async def open(self, request: OpenRequest) -> Session:
        session = await super().open(request)
        self.opened.append(request)
        session.model_url = None if request.gate is None else await request.gate.host_url()
        return session


class Played:
    """One attempt, played: its result, and all that took part in it."""

    def __init__(
        self,
        on_run: Any,
        *,
        limits: TimeLimits | None = None,
        environment: FakeEnvironment | None = None,
        cancel: bool = False,
        **request: Any,
    ) -> None:
        self.gateway = Gateway()
        self.secrets = SecretStore({})
        self.watch = Watch()
        self.environment = environment or Reaching()
        one = spec(limits)
        self.spec = replace(one, request=replace(one.request, **request))
        self.held = RequestGateway(self._start, self.secrets)
        made = services(None, Agent(on_run), self.environment)
        self.services = replace(made, gateway=self.held)
        self.result: ExecutionResult = asyncio.run(self._play(self.spec, cancel))

    async def _start(self) -> Gateway:
        return self.gateway

    async def _play(self, one: ExecutionSpec, cancel: bool) -> ExecutionResult:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(execute(one, self.services, self.watch))
            if cancel:
                while not self.gateway.tickets:
                    await asyncio.sleep(0)
                await asyncio.sleep(0)
                task.cancel()
        await self.held.close()
        return task.result()

    @property
    def ticket(self) -> Ticket:
        (ticket,) = self.gateway.tickets
        return ticket

    @property
    def codes(self) -> list[IssueCode]:
        return [issue.code for issue in self.result.issues]


def at_the_gateway(then: Callable[[Any, Ticket], Any]) -> Any:
    """An agent that asks how to reach its model, then does as told."""

    async def run(context: Any) -> Any:
        await context.model_access()
        ticket = context.gateway._ticket
        found = then(context, ticket)
        return await found if asyncio.iscoroutine(found) else found

    return run


async def for_ever() -> None:
    await asyncio.sleep(600)


def test_usage_calls_and_steps_of_the_gateway_are_the_attempts() -> None:
    def then(context: Any, ticket: Ticket) -> str:
        ticket.on_step(Step("agent", "thinking", usage=Usage(5, 2, requests=1)))
        ticket.usage, ticket.calls_succeeded = Usage(5, 2, requests=1, cost_usd=0.5), 1
        return "right"

    played = Played(at_the_gateway(then), attempt_usd=1.5, attempt_tokens=99)
    assert played.result.outcome is Outcome.SCORED
    assert played.result.usage == Usage(5, 2, requests=1, cost_usd=0.5)
    assert played.result.model_calls_succeeded == 1
    assert [step.message for step in played.watch.steps] == ["thinking"]
    assert played.gateway.allowances == [Allowance(1.5, 99)]
    assert played.ticket.revoked == 1
    assert played.gateway.closed == 1


def test_the_agents_session_alone_is_opened_with_the_gateway() -> None:
    async def score(context: Any) -> None:
        await context.session()

    environment = Reaching()
    gateway = Gateway()

    async def start() -> Gateway:
        return gateway

    made = services(None, Agent(at_the_gateway(lambda *_: "right")), environment)
    made.benchmark.on_evaluate = score  # type: ignore[attr-defined]
    made = replace(made, gateway=RequestGateway(start))
    asyncio.run(execute(spec(), made, Watch()))
    assert [request.gate is gateway for request in environment.opened] == [True, False]


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [(BROKE, Outcome.FAILED_ERROR), (REJECTED, Outcome.FAILED_FATAL)],
)
def test_a_fault_of_the_gateway_ends_the_agent_and_is_no_cancellation(
    fault: AttemptFault, outcome: Outcome
) -> None:
    async def then(context: Any, ticket: Ticket) -> None:
        asyncio.get_running_loop().call_soon(ticket.on_fault, fault)
        await for_ever()

    played = Played(at_the_gateway(then))
    assert (played.result.outcome, played.codes) == (outcome, [fault.code])
    assert (played.result.request_fault is not None) is fault.request_fault
    assert played.ticket.revoked == 1


def test_a_fault_counts_even_where_the_agent_ended_by_itself() -> None:
    def then(context: Any, ticket: Ticket) -> str:
        ticket.on_fault(BROKE)
        ticket.on_fault(REJECTED)  # the first one counts
        return "right"

    assert Played(at_the_gateway(then)).codes == [IssueCode.ATTEMPT_BUDGET]


def test_an_agent_that_failed_for_want_of_a_model_is_not_blamed() -> None:
    gave_up = AttemptFault(IssueCode.AGENT_FAILED, "exit code 1")
    issue = Issue.of(IssueCode.AGENT_FAILED, Phase.RUN, "exit code 1")

    def play(ending: Any, *, succeeded: int, fault: AttemptFault | None = DOWN) -> list[IssueCode]:
        def then(context: Any, ticket: Ticket) -> Any:
            ticket.last_fault, ticket.calls_succeeded = fault, succeeded
            if isinstance(ending, Exception):
                raise ending
            return ending

        return Played(at_the_gateway(then)).codes

    assert play(gave_up, succeeded=3) == [IssueCode.MODEL_UNAVAILABLE]
    assert play(HarnessResult("x", (issue,)), succeeded=3) == [IssueCode.MODEL_UNAVAILABLE]
    assert play(gave_up, succeeded=3, fault=None) == [IssueCode.AGENT_FAILED]
    # What the endpoint refuses for the agent's own words is the agent's.
    refused = AttemptFault(IssueCode.MODEL_REQUEST_REFUSED, "400")
    assert play(gave_up, succeeded=0, fault=refused) == [IssueCode.AGENT_FAILED]
    assert play("right", succeeded=0) == [IssueCode.MODEL_UNAVAILABLE]
    assert play("right", succeeded=1) == []  # it went on without the last call


def test_what_is_under_way_at_the_end_is_settled_however_it_ends() -> None:
    async def then(context: Any, ticket: Ticket) -> None:
        ticket.under_way = True
        await for_ever()

    for played in (
        Played(at_the_gateway(then), cancel=True),
        Played(at_the_gateway(then), limits=TimeLimits(run_s=0.05)),
    ):
        assert played.result.outcome in (Outcome.CANCELLED, Outcome.TIMED_OUT)
        assert played.result.usage == Usage(requests=1, cost_usd=None)
        assert played.result.steps[-1].message == "cut off"
        assert played.ticket.revoked == 1


def test_the_token_is_a_secret_while_it_is_worth_something_and_leaves_nowhere() -> None:
    known: list[str] = []

    def then(context: Any, ticket: Ticket) -> HarnessResult:
        known.extend(value for _, value in played_secrets(context))
        context.step(Step("agent", f"I hold {TOKEN}", {"env": {"KEY": TOKEN}}))
        issue = Issue.of(IssueCode.OUTPUT_TRUNCATED, Phase.RUN, f"cut at {TOKEN}")
        return HarnessResult(f"my key: {TOKEN}", (issue,))

    def played_secrets(context: Any) -> list[tuple[str, str]]:
        return list(context.gateway._gateway.secrets.items())

    played = Played(at_the_gateway(then))
    assert known == [TOKEN]
    assert list(played.secrets.items()) == []
    assert TOKEN not in repr(played.result)
    assert TOKEN not in repr(played.watch.steps)
    assert played.result.answer == "my key: [redacted]"


def test_a_gateway_that_cannot_be_started_opens_nothing() -> None:
    async def start() -> Any:
        raise OSError(24, "too many open files")

    environment = Reaching()
    made = services(None, Agent(at_the_gateway(lambda *_: "right")), environment)
    made = replace(made, gateway=RequestGateway(start))
    result = asyncio.run(execute(spec(), made, Watch()))
    assert [issue.code for issue in result.issues] == [IssueCode.ENVIRONMENT_OPEN_FAILED]
    assert "too many open files" in result.issues[0].message
    assert environment.sessions == []


def test_an_environment_that_cannot_bring_the_gateway_in_stops_the_request() -> None:
    played = Played(at_the_gateway(lambda *_: "right"), environment=FakeEnvironment())
    assert played.codes == [IssueCode.CONFIGURATION]
    assert "name another environment" in (played.result.request_fault or "")


def test_a_harness_whose_traits_do_not_say_so_is_let_in_nowhere() -> None:
    harness = FakeHarness(at_the_gateway(lambda *_: "right"))
    result = asyncio.run(execute(spec(), services(None, harness), Watch()))
    assert [issue.code for issue in result.issues] == [IssueCode.CONFIGURATION]
    assert "uses_gateway" in result.issues[0].message


def test_one_gateway_serves_all_attempts_of_a_request() -> None:
    started = 0
    gateway = Gateway()

    async def start() -> Gateway:
        nonlocal started
        started += 1
        await asyncio.sleep(0)
        return gateway

    async def main() -> None:
        held = RequestGateway(start)
        found = await asyncio.gather(*(held.started() for _ in range(5)))
        assert all(one is gateway for one in found)
        await held.close()
        await held.close()

    asyncio.run(main())
    assert (started, gateway.closed) == (1, 1)
