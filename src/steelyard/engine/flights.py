"""Executions under way, by token: what the executor tells of one is passed on to its run."""

from __future__ import annotations

import asyncio
from typing import Literal

from steelyard.components.environment import Kept
from steelyard.components.issues import Outcome, Phase
from steelyard.components.steps import Step
from steelyard.engine.flight import Flight
from steelyard.engine.run_state import RunState
from steelyard.engine.spec import ExecutionResult, Executor
from steelyard.results.files import StorageFailed
from steelyard.results.journal import EventKind
from steelyard.results.remains import enter_command


class Flights:
    """Of all requests of a launch. An `ExecutionObserver`."""

    def __init__(self) -> None:
        self._runs: dict[str, RunState] = {}

    def begin(self, run: RunState, flight: Flight) -> None:
        """An execution has its claims and begins."""
        run.flights[flight.token] = flight
        self._runs[flight.token] = run

    def end(self, flight: Flight) -> None:
        """It has ended."""
        del self._runs.pop(flight.token).flights[flight.token]

    async def executed(self, executor: Executor, run: RunState, flight: Flight) -> ExecutionResult:
        """Run an execution to its end, its intent written before it begins."""
        try:
            intent = run.note_intent(flight.start, flight.token)
            # One attempt a turn: timers, signals and the other workers get theirs. What all of
            # them have begun and ended in this turn is then written at once.
            await asyncio.sleep(0)
            run.journal.flush_to(intent)
            await run.take_saved_work(flight)
            if not run.plan.provider_is_local:
                await run.journal.synced()
            if run.journal.failure is not None:
                raise run.journal.failure
            return await executor.execute(run.spec(flight), self)
        except asyncio.CancelledError:
            flight.task.uncancel()
        except StorageFailed as error:
            run.journal.fail(error)
        return ExecutionResult(outcome=Outcome.CANCELLED)

    def phase(self, token: str, phase: Phase) -> None:
        """Note the phase of an execution; for progress only."""
        run = self._runs.get(token)
        if run is not None:
            run.enter_phase(token, phase)

    def session(self, token: str, state: Literal["opened", "closed"], provider: str) -> None:
        """Put the opening or closing of a session into the journal."""
        run = self._runs.get(token.rsplit("-", 1)[0])
        if run is not None:
            kind = EventKind.OPENED if state == "opened" else EventKind.CLOSED
            run.journal.event(kind, token=token, provider=provider)

    def kept(self, token: str, provider: str, kept: Kept) -> None:
        """Put into the journal at once how a kept session is entered: nothing else holds it."""
        run = self._runs.get(token.rsplit("-", 1)[0])
        if run is not None:
            run.journal.event(
                EventKind.KEPT,
                token=token,
                provider=provider,
                description=kept.description,
                enter=list(kept.enter or enter_command(run.folder.root, token)),
                state=dict(kept.state),
            )
            run.journal.flush()

    def checkpoint(self, token: str, path: str) -> None:
        """Say in the journal that an agent's work is on the disk; written with the next flush."""
        if (run := self._runs.get(token)) is not None:
            run.journal.event(EventKind.CHECKPOINT, token=token, path=path)
            run.journal.flush()

    def step(self, token: str, step: Step) -> None:
        """Put an agent's step on the disk as it happens."""
        if (run := self._runs.get(token)) is not None:
            run.add_step(run.flights[token], step)
