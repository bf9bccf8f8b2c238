"""What the scanners that go by rules share: one pass over the steps, then over what was left."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import ClassVar, Final, Protocol

from steelyard.components.scanner import Finding, ScannedAttempt, Scanner
from steelyard.components.steps import Step
from steelyard.scanners.acts import Act
from steelyard.scanners.leftovers import MAX_FILES, Leftover, leftover
from steelyard.scanners.reading import Reader
from steelyard.scanners.reporting import Hit, Report

_STEPS_BETWEEN_TURNS: Final = 32
GUESS_CONFIDENCE: Final = 0.5
"""Of a command that was only said."""
LEFT_CONFIDENCE: Final = 0.5
"""Of what stands in a file that was left: nobody saw it run."""


class Judge(Protocol):
    """The rules of a scanner, with what they remember of one attempt."""

    def of_act(self, act: Act) -> Iterator[Hit]:
        """Judge one thing that the agent did."""
        ...

    def of_step(self, step: Step) -> Iterator[Hit]:
        """Judge a step as a whole, after its acts."""
        ...

    def of_leftover(self, left: Leftover) -> Iterator[Hit]:
        """Judge a file that was collected, by its name and content."""
        ...


@dataclass(frozen=True, slots=True)
class _Pass:
    """One attempt's pass: where it reads, judges and reports."""

    report: Report
    judge: Judge
    reader: Reader

    def take(self, step: Step, number: int, *, was_answered: bool) -> None:
        """Judge a step."""
        if step.tool_calls or step.source == "agent":
            for act in self.reader.acts(step, was_answered=was_answered):
                for hit in self.judge.of_act(act):
                    sure = min(hit.confidence, GUESS_CONFIDENCE)
                    seen = replace(hit, confidence=sure) if self.reader.is_guess else hit
                    self.report.add(seen, step, number)
        for hit in self.judge.of_step(step):
            self.report.add(hit, step, number)


class RuleScanner(Scanner):
    """A scanner that goes by rules. One pass, no step kept."""

    triggers: ClassVar[frozenset[str] | None] = None
    """See `reading.Reader`."""
    blocks: ClassVar[bool] = False
    """True where judging a step may take long: users' patterns. It is done in a thread."""

    @abstractmethod
    def judge(self) -> Judge:
        """Make the rules for one attempt."""

    async def scan(self, attempt: ScannedAttempt) -> Sequence[Finding]:
        """Read one attempt."""
        one_pass = _Pass(Report(), self.judge(), Reader(self.triggers))
        before: Step | None = None
        number = -1
        for number, step in enumerate(attempt.steps()):
            if before is not None:
                # What an agent says is a command only once something came back.
                was_answered = step.source != "agent"
                await self._step(one_pass, before, number - 1, was_answered=was_answered)
            before = step
            if number % _STEPS_BETWEEN_TURNS == 0:
                await asyncio.sleep(0)  # others have their turn, and a cancellation is seen
        if before is not None:
            await self._step(one_pass, before, number, was_answered=False)
        for name, path in islice(attempt.artifacts.items(), MAX_FILES):
            left = await asyncio.to_thread(leftover, name, path)
            if left is not None:
                for hit in self._of_leftover(left):
                    one_pass.report.add(hit, None, None)
        return one_pass.report.findings()

    async def _step(self, one_pass: _Pass, step: Step, number: int, *, was_answered: bool) -> None:
        if self.blocks:
            await asyncio.to_thread(one_pass.take, step, number, was_answered=was_answered)
        else:
            one_pass.take(step, number, was_answered=was_answered)

    def _of_leftover(self, left: Leftover) -> Iterator[Hit]:
        judge = self.judge()  # files that stand beside each other are no course of events
        yield from judge.of_leftover(left)
        if left.language is not None:
            for act in Reader(self.triggers).script(left.text, left.language):
                for hit in judge.of_act(act):
                    yield Hit(
                        hit.category,
                        hit.severity,
                        f"{hit.message} It stands in {left.name!r}, which was left; whether it "
                        "ran is not known.",
                        hit.text,
                        min(hit.confidence, LEFT_CONFIDENCE),
                    )
