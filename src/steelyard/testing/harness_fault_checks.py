"""Clauses of the harness contract: cancellation, faults of others, and whose time it is."""

# ruff: noqa: S101 — a check is an assertion
from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

from steelyard.components.environment import EnvironmentFault, ExecResult
from steelyard.components.issues import AttemptFault, IssueCode
from steelyard.components.model import ModelRequest, ModelResponse
from steelyard.testing.clock import FakeClock
from steelyard.testing.fake_environment import ExecCall, FakeEnvironment
from steelyard.testing.fake_harness_context import FakeHarnessContext
from steelyard.testing.fake_model import ScriptedModel
from steelyard.testing.harness_suite import CLAUSES, HarnessSubject, run_harness

CANCEL_S: Final = 2.0
"""How long a cancelled harness may take: it has nothing to wait for."""
_START_S: Final = 30.0


class _Hanging:
    """What never answers, and says when it was asked."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def model(self, _request: ModelRequest) -> ModelResponse:
        """Answer never."""
        await self._never()
        raise AssertionError("never")

    async def program(self, _call: ExecCall) -> ExecResult:
        """End never."""
        await self._never()
        raise AssertionError("never")

    async def open(self, _request: object) -> None:
        """Open never."""
        await self._never()

    async def _never(self) -> None:
        self.asked.set()
        await asyncio.Event().wait()


def _stuck(subject: HarnessSubject) -> Iterator[tuple[str, _Hanging, FakeHarnessContext]]:
    """A context for each thing a harness may be waiting for when it is cancelled."""
    for what in ("the model's answer", "a program's end", "its environment"):
        hanging = _Hanging()
        if what == "the model's answer":
            yield what, hanging, subject.context(ScriptedModel(hanging.model))
        elif what == "a program's end":
            environment = FakeEnvironment(hanging.program)
            yield what, hanging, subject.context(environment=environment)
        else:
            environment = FakeEnvironment(on_open=hanging.open)
            yield what, hanging, subject.context(environment=environment)


@asynccontextmanager
async def _cancelled(
    subject: HarnessSubject, hanging: _Hanging, context: FakeHarnessContext
) -> AsyncIterator[tuple[asyncio.Task[Any], bool]]:
    """A run that was cancelled while it waited, and whether it has ended in time."""
    running = asyncio.ensure_future(run_harness(subject, context))
    asked = asyncio.ensure_future(hanging.asked.wait())
    await asyncio.wait({running, asked}, timeout=_START_S, return_when=asyncio.FIRST_COMPLETED)
    asked.cancel()
    if running.done():
        # It waits for nothing of the kind; a crash before that has shown nothing.
        error = running.exception()
        if error is not None and not isinstance(error, AttemptFault | EnvironmentFault):
            raise error
    running.cancel()
    await asyncio.wait({running}, timeout=CANCEL_S)
    try:
        yield running, running.done()
    finally:
        running.cancel()
        await asyncio.wait({running, asked}, timeout=CANCEL_S)
        if running.done() and not running.cancelled():
            running.exception()  # seen; whatever it is, the clause has judged it


@CLAUSES.add
async def it_ends_at_once_when_cancelled(subject: HarnessSubject) -> None:
    """Cancelled while it waits, it ends within two seconds."""
    for what, hanging, context in _stuck(subject):
        async with _cancelled(subject, hanging, context) as (_, has_ended):
            assert has_ended, f"cancelled while waiting for {what}, it goes on"


@CLAUSES.add
async def a_cancellation_comes_through(subject: HarnessSubject) -> None:
    """Cancelled while it waits, it raises `CancelledError`, not a result or another error."""
    for what, hanging, context in _stuck(subject):
        async with _cancelled(subject, hanging, context) as (running, has_ended):
            if not hanging.asked.is_set() or not has_ended:
                continue  # it waits for nothing of the kind, or another clause's matter
            assert running.cancelled(), (
                f"cancelled while waiting for {what}, it ended with "
                f"{running.exception() or running.result().result!r}"
            )


@CLAUSES.add
async def a_cancelled_run_leaves_no_task(subject: HarnessSubject) -> None:
    """Cancelled while it waits, every task it has started ends with it."""
    for what, hanging, context in _stuck(subject):
        before = asyncio.all_tasks()
        async with _cancelled(subject, hanging, context) as (running, _):
            left = {t for t in asyncio.all_tasks() - before if t is not running and not t.done()}
            left = {task for task in left if not task.cancelling()}
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)
        assert not left, f"cancelled while waiting for {what}, it leaves {left}"


@CLAUSES.add
async def faults_of_the_model_pass_through(subject: HarnessSubject) -> None:
    """What the model client raises leaves `run`: the engine knows its cause and severity."""
    for code in (IssueCode.MODEL_UNAVAILABLE, IssueCode.MODEL_REQUEST_REFUSED):
        model = ScriptedModel(AttemptFault(code, "as the suite asked"))
        try:
            run = await run_harness(subject, subject.context(model))
        except AttemptFault as fault:
            if fault.code is not code:
                raise AssertionError(f"{code} became {fault.code}") from fault
            continue
        assert not model.requests, f"{code} was swallowed; the answer is {run.result.answer!r}"


@CLAUSES.add
async def faults_of_the_environment_pass_through(subject: HarnessSubject) -> None:
    """An `EnvironmentFault` leaves `run`: it says nothing about the agent."""

    def gone(_call: ExecCall) -> ExecResult:
        raise EnvironmentFault("as the suite asked")

    async def closed(_request: object) -> None:
        raise EnvironmentFault("as the suite asked")

    for environment in (FakeEnvironment(gone), FakeEnvironment(on_open=closed)):
        asked: list[object] = []
        _count(environment, asked)
        try:
            run = await run_harness(subject, subject.context(environment=environment))
        except EnvironmentFault:
            continue
        assert not asked, f"it was swallowed; the answer is {run.result.answer!r}"


def _count(environment: FakeEnvironment, asked: list[object]) -> None:
    """Note each time the environment is asked for what it will fail."""
    programs, on_open = environment.programs, environment.on_open
    if programs is not None:
        fails = programs

        def counted(call: ExecCall) -> Any:
            asked.append(call)
            return fails(call)

        environment.programs = counted
    if on_open is not None:
        refuses = on_open

        async def noted(request: object) -> None:
            asked.append(request)
            await refuses(request)

        environment.on_open = noted


@CLAUSES.add
async def its_own_waiting_is_not_the_agents_time(subject: HarnessSubject) -> None:
    """Where it sleeps, it does so inside `context.timer.waiting()`."""
    if subject.sleeps_while_the_agent_works:
        return
    clock = FakeClock()
    context = FakeHarnessContext(
        subject.input,
        model=ScriptedModel(*subject.answers),
        environment=subject.make_environment(),
        reference=subject.reference,
        access=subject.access,
        clock=clock,
    )
    charged: list[float] = []
    with _sleeping_on(clock, context, charged):
        await run_harness(subject, context)
    assert not charged, f"it slept {charged} s on the agent's time"


@contextmanager
def _sleeping_on(
    clock: FakeClock, context: FakeHarnessContext, charged: list[float]
) -> Iterator[None]:
    """Make sleeping move the clock; note what of it the agent's timer counts."""
    real = asyncio.sleep

    async def sleep(delay: float, result: Any = None) -> Any:
        before = context.timer.elapsed_s
        clock.advance(max(0.0, delay))
        if context.timer.elapsed_s > before:
            charged.append(delay)
        return await real(0, result)

    asyncio.sleep = sleep
    try:
        yield
    finally:
        asyncio.sleep = real
