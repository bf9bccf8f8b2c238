"""What the scanners that go by rules share: one pass over the steps, then over what was left."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import ClassVar, Final, Protocol

from steelyard.components.scanner import Finding, ScannedAttempt, Scanner
from steelyard.components.steps import Step
from steelyard.scanners.acts import Act
from steelyard.scanners.leftovers import MAX_FILES, Leftover, leftover
from steelyard.scanners.reading import Reader
from steelyard.scanners.reporting import Hit, Report

_STEPS_BETWEEN_TURNS: Final = 32
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


class RuleScanner(Scanner):
    """A scanner that goes by rules. One pass, no step kept."""

    triggers: ClassVar[frozenset[str] | None] = None
    """See `reading.Reader`."""

    @abstractmethod
    def judge(self) -> Judge:
        """Make the rules for one attempt."""

    async def scan(self, attempt: ScannedAttempt) -> Sequence[Finding]:
        """Read one attempt."""
        report, judge = Report(), self.judge()
        reader = Reader(self.triggers)
        before: Step | None = None
        number = -1
        for number, step in enumerate(attempt.steps()):
            if before is not None:
                answered = step.source != "agent"
                self._judge(before, number - 1, reader, judge, report, answered)
            before = step
            if number % _STEPS_BETWEEN_TURNS == 0:
                await asyncio.sleep(0)  # others have their turn, and a cancellation is seen
        if before is not None:
            self._judge(before, number, reader, judge, report, answered=False)
        for name, path in islice(attempt.artifacts.items(), MAX_FILES):
            left = await asyncio.to_thread(leftover, name, path)
            if left is not None:
                for hit in self._of_leftover(left):
                    report.add(hit, None, None)
        return report.findings()

    def _judge(
        self, step: Step, number: int, reader: Reader, judge: Judge, report: Report, answered: bool
    ) -> None:
        if step.tool_calls or step.source == "agent":
            for act in reader.acts(step, was_answered=answered):
                for hit in judge.of_act(act):
                    report.add(hit, step, number)
        for hit in judge.of_step(step):
            report.add(hit, step, number)

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
