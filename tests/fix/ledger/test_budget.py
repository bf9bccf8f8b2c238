"""The budget against a small model: whatever is asked in whatever order, spent only grows."""

from __future__ import annotations

from contextlib import ExitStack

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from steelyard.fix.ledger import candidates, operations, readings, runs, trials
from steelyard.fix.ledger.database import Database
from steelyard.fix.ledger.errors import BudgetExhausted, LedgerRefused
from steelyard.fix.ledger.values import RunStage, Slot, TrialEnd
from steelyard.fix.trial_plan import Outcome
from tests.fix.ledger.story import (
    BASELINE,
    LIMITS,
    RUN,
    WORKER,
    control,
    folder_in_memory,
    proposal,
    revision,
    started,
)

OUTCOMES = [Outcome.COMPLETED, Outcome.FAILED, Outcome.ERROR, Outcome.LOST, Outcome.CANCELLED]


class BudgetMachine(RuleBasedStateMachine):
    """Reserves, ends, stops, continues and extends; keeps the sums by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.closing = ExitStack()
        self.folder = self.closing.enter_context(folder_in_memory())
        self.database = Database.open(self.folder)
        limits = {**LIMITS, "max_candidates": 2.0, "max_trials": 4.0, "max_elapsed_seconds": 60.0}
        self.lease = started(self.database, limits=limits)
        self.ceilings = dict(limits)
        self.now = 2.0
        self.spent = {"max_candidates": 0.0, "max_trials": 0.0, "max_elapsed_seconds": 0.0}
        self.is_open = True
        self.tries: dict[int, list[Outcome | None]] = {}
        self.sent = 0

    @rule(seconds=st.integers(-5, 20))
    def time_passes(self, seconds: int) -> None:
        # Told to the ledger at once: what a clock that is set back did before nobody can know.
        self.now += seconds
        if self.is_open:
            self.spent["max_elapsed_seconds"] += max(0, seconds)
        runs.set_clock(self.database, self.lease, self.now, is_running=self.is_open)

    @rule(repetition=st.integers(0, 3))
    def a_trial(self, repetition: int) -> None:
        tries = self.tries.setdefault(repetition, [])
        is_decided = any(one in trials.DECIDING for one in tries)
        is_waiting = bool(tries) and tries[-1] is None
        faults = sum(one in (Outcome.ERROR, Outcome.LOST) for one in tries)
        may = (
            self.is_open
            and not is_waiting
            and faults < 2
            and (not tries or tries[-1] is not Outcome.CANCELLED)
        )
        slot = Slot(BASELINE, repetition, repetition)
        try:
            found = trials.reserve(self.database, self.lease, slot, self.now)
        except BudgetExhausted:
            assert may
            assert self.is_exhausted("max_trials")
            return
        except LedgerRefused:
            assert not may
            return
        assert found.is_new == (may and not is_decided and not self.is_exhausted("max_trials"))
        if found.is_new:
            self.spent["max_trials"] += 1
            tries.append(None)

    @rule(repetition=st.integers(0, 3), outcome=st.sampled_from(OUTCOMES))
    def an_end(self, repetition: int, outcome: Outcome) -> None:
        tries = self.tries.get(repetition)
        if not tries or tries[-1] is not None or not self.is_open:
            return
        slot = Slot(BASELINE, repetition, repetition)
        row = trials.reserve(self.database, self.lease, slot, self.now).trial
        trials.launch(self.database, self.lease, row.trial, WORKER, self.now)
        trials.end(self.database, self.lease, row.trial, TrialEnd(outcome, "host"), self.now)
        tries[-1] = outcome

    @rule()
    def a_candidate(self) -> None:
        with self.database.reading() as reader:
            number = reader.number("SELECT decisions FROM runs WHERE run = ?", RUN)
        try:
            candidates.reserve(self.database, self.lease, proposal(number), self.now)
        except BudgetExhausted:
            assert self.is_exhausted("max_candidates")
        except LedgerRefused:
            assert not self.is_open
        else:
            assert not self.is_exhausted("max_candidates")
            self.spent["max_candidates"] += 1

    @precondition(lambda self: self.is_open)
    @rule()
    def a_stop(self) -> None:
        self.send(operations.SetStage(RunStage.STOPPED, "asked"))
        self.is_open = False

    @precondition(lambda self: not self.is_open)
    @rule(more=st.integers(0, 2))
    def a_continue(self, more: int) -> None:
        limits = {"max_trials": self.ceilings["max_trials"] + more}
        self.send(operations.SetLimits(limits), operations.SetStage(RunStage.OPEN, "asked"))
        self.ceilings.update(limits)
        self.is_open = True

    def send(self, *effects: operations.Effect) -> None:
        self.sent += 1
        operations.record(
            self.database,
            RUN,
            control(f"o{self.sent}", "x"),
            effects,
            self.now,
            expected_revision=revision(self.database),
        )

    def is_exhausted(self, name: str) -> bool:
        names = (name, "max_elapsed_seconds")
        return any(self.spent[one] >= self.ceilings[one] for one in names)

    @invariant()
    def the_ledger_and_the_model_agree(self) -> None:
        found = readings.snapshot(self.database, RUN, self.now)
        spent = {line.name: line.spent for line in found.budget if line.name in self.spent}
        assert spent == self.spent
        assert len(found.trials) == self.spent["max_trials"]
        assert len(found.candidates) - 1 == self.spent["max_candidates"]
        assert self.spent["max_trials"] <= self.ceilings["max_trials"]

    def teardown(self) -> None:
        self.database.close()
        self.closing.close()


BudgetMachine.TestCase.settings = settings(
    max_examples=30, stateful_step_count=25, deadline=None, derandomize=True
)
TestBudget = BudgetMachine.TestCase
