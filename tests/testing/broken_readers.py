"""For each clause of the analyzers' and scanners' contracts something that breaks it alone."""

from __future__ import annotations

import asyncio
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel, ConfigDict

from steelyard.components.analyzer import Analysis, Analyzer, FinishedRun
from steelyard.components.issues import AttemptFault
from steelyard.components.model import ModelRequest
from steelyard.components.scanner import (
    Finding,
    FindingSeverity,
    ScannedAttempt,
    Scanner,
    ScannerFault,
)
from steelyard.components.steps import Step

_COUNT = itertools.count()
T = TypeVar("T")


@dataclass(frozen=True)
class Broken(Generic[T]):
    """Something broken, and which clauses it breaks beside the one it is for."""

    component: type[T]
    also: frozenset[str] = frozenset()


def _broken(component: type[T], *also: str) -> Broken[T]:
    return Broken(component, frozenset(also))


class Params(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    word: str = "curl"


class Loose(BaseModel):
    word: str = "curl"


class SoundAnalyzer(Analyzer):
    """Counts attempts and successes: keeps every clause."""

    api: ClassVar[int] = 1
    id: ClassVar[str] = "sound"
    version: ClassVar[str] = "1"
    Params: ClassVar[type[BaseModel]] = Params

    def analyze(self, run: FinishedRun) -> Analysis:
        attempts = scored = 0
        for record in run.records():
            attempts += 1
            scored += bool(record.metrics)
        data = self.data(attempts, scored)
        return Analysis(self.id, self.version, data, f"{scored} of {attempts} scored\n")

    def data(self, attempts: int, scored: int) -> Mapping[str, Any]:
        return {"attempts": attempts, "share": scored / attempts if attempts else None}


class NoApiAnalyzer(SoundAnalyzer):
    api = 0


class LooseAnalyzer(SoundAnalyzer):
    Params = Loose


class AbsentAnalyzer(SoundAnalyzer):
    @classmethod
    def unavailable(cls) -> Any:
        return ""


class Alias(SoundAnalyzer):
    def analyze(self, run: FinishedRun) -> Analysis:
        return replace(super().analyze(run), name="another")


class NotANumber(SoundAnalyzer):
    def data(self, attempts: int, scored: int) -> Mapping[str, Any]:
        return {"mean": math.nan if scored else None}


class Bytes(SoundAnalyzer):
    def analyze(self, run: FinishedRun) -> Analysis:
        return replace(super().analyze(run), markdown="\ud800")


class DivideAll(SoundAnalyzer):
    def data(self, attempts: int, scored: int) -> Mapping[str, Any]:
        return {"share": scored / attempts}


class DivideScored(SoundAnalyzer):
    def data(self, attempts: int, scored: int) -> Mapping[str, Any]:
        return {"attempts_a_score": attempts / scored if attempts else None}


class Moody(SoundAnalyzer):
    def data(self, attempts: int, scored: int) -> Mapping[str, Any]:
        return {"draw": next(_COUNT)}


class Editor(SoundAnalyzer):
    def analyze(self, run: FinishedRun) -> Analysis:
        for record in run.records():
            dict.__setitem__(record.metrics, "seen", True)  # type: ignore[arg-type]
        return super().analyze(run)


class Optimist(SoundAnalyzer):
    def analyze(self, run: FinishedRun) -> Analysis:
        try:
            return super().analyze(run)
        except OSError:
            return Analysis(self.id, self.version, {}, "nothing is known")


class Hoarder(SoundAnalyzer):
    def analyze(self, run: FinishedRun) -> Analysis:
        records = list(run.records())
        return replace(super().analyze(run), data={"records": len(records)})


BROKEN_ANALYZERS: Mapping[str, Broken[Analyzer]] = {
    "it_declares_what_it_is": _broken(NoApiAnalyzer),
    "its_parameters_are_json": _broken(LooseAnalyzer),
    "it_says_what_a_machine_lacks": _broken(AbsentAnalyzer),
    "it_gives_an_analysis": _broken(Alias),
    "its_data_are_json": _broken(NotANumber, "a_run_is_analyzed_alike_each_time"),
    "its_markdown_is_text": _broken(Bytes),
    "a_run_without_attempts_is_analyzed": _broken(DivideAll),
    "a_run_without_scores_is_analyzed": _broken(DivideScored),
    "a_run_is_analyzed_alike_each_time": _broken(Moody),
    "a_run_is_left_as_it_is": _broken(Editor, "a_run_is_analyzed_alike_each_time"),
    "a_run_that_cannot_be_read_is_no_analysis": _broken(Optimist),
    "records_are_not_kept": _broken(Hoarder),
}


FINDS = Step("agent", "I run curl")
PASSES = Step("agent", "I run ls")


class SoundScanner(Scanner):
    """Finds a word in what agents say, and asks its judge about it: keeps every clause."""

    api: ClassVar[int] = 1
    id: ClassVar[str] = "sound"
    version: ClassVar[str] = "1"
    needs_model: ClassVar[bool] = True
    Params: ClassVar[type[BaseModel]] = Params
    word: ClassVar[str] = "curl"

    async def scan(self, attempt: ScannedAttempt) -> Sequence[Finding]:
        found = []
        for number, step in enumerate(attempt.steps()):
            if self.word in step.message and await self.judge(attempt, step):
                found.append(self.finding(number, step))
        return found

    async def judge(self, attempt: ScannedAttempt, step: Step) -> bool:
        try:
            asked = ModelRequest([])
            return (await attempt.model.generate(asked)).text == "yes"
        except AttemptFault as fault:
            raise ScannerFault("the judge does not answer") from fault

    def finding(self, number: int, step: Step) -> Finding:
        return Finding("network", FindingSeverity.LOW, "It runs curl.", self.word, number, 0.5)


class NoApiScanner(SoundScanner):
    api = 2


class LooseScanner(SoundScanner):
    Params = Loose


class AbsentScanner(SoundScanner):
    @classmethod
    def unavailable(cls) -> Any:
        return False


class Blind(SoundScanner):
    word = "wget"


class Suspicious(SoundScanner):
    word = "run"


class Eager(SoundScanner):
    async def scan(self, attempt: ScannedAttempt) -> Sequence[Finding]:
        first = next(attempt.steps())
        return [*await super().scan(attempt)] if first else []


class Certain(SoundScanner):
    def finding(self, number: int, step: Step) -> Finding:
        return replace(super().finding(number, step), confidence=90)


class Paraphraser(SoundScanner):
    def finding(self, number: int, step: Step) -> Finding:
        return replace(super().finding(number, step), evidence="it ran CURL")


class Skimmer(SoundScanner):
    async def scan(self, attempt: ScannedAttempt) -> Sequence[Finding]:
        found = await super().scan(attempt)
        return [one for one in found if (one.step or 0) < 100]


class Once(SoundScanner):
    def __init__(self, params: BaseModel) -> None:
        super().__init__(params)
        self.scans = 0

    def finding(self, number: int, step: Step) -> Finding:
        self.scans += 1
        return replace(super().finding(number, step), confidence=1 / self.scans)


class Mixer(SoundScanner):
    async def scan(self, attempt: ScannedAttempt) -> Sequence[Finding]:
        self.attempt = attempt
        await asyncio.sleep(0)
        return await super().scan(self.attempt)


class Delicate(SoundScanner):
    async def scan(self, attempt: ScannedAttempt) -> Sequence[Finding]:
        for step in attempt.steps():
            step.message.encode()
        return await super().scan(attempt)


class Scribbler(SoundScanner):
    async def scan(self, attempt: ScannedAttempt) -> Sequence[Finding]:
        for step in attempt.steps():
            dict.__setitem__(step.extra, "seen", True)  # type: ignore[arg-type]
        return await super().scan(attempt)


class Asker(SoundScanner):
    needs_model = False


class Consoler(SoundScanner):
    async def judge(self, attempt: ScannedAttempt, step: Step) -> bool:
        try:
            return await super().judge(attempt, step)
        except ScannerFault:
            return False


class Swallower(SoundScanner):
    async def judge(self, attempt: ScannedAttempt, step: Step) -> bool:
        try:
            return await super().judge(attempt, step)
        except asyncio.CancelledError:
            return False


BROKEN_SCANNERS: Mapping[str, Broken[Scanner]] = {
    "it_declares_what_it_is": _broken(NoApiScanner),
    "its_parameters_are_json": _broken(LooseScanner),
    "it_says_what_a_machine_lacks": _broken(AbsentScanner),
    "it_finds_what_it_is_for": _broken(
        Blind, "it_reads_to_the_last_step", "attempts_at_once_do_not_mix"
    ),
    "it_lets_pass_what_is_right": _broken(Suspicious, "attempts_at_once_do_not_mix"),
    "an_empty_trajectory_has_no_findings": _broken(Eager),
    "its_findings_are_well_formed": _broken(Certain),
    "its_evidence_is_an_exact_span": _broken(Paraphraser),
    "it_reads_to_the_last_step": _broken(Skimmer),
    "scanning_twice_gives_the_same": _broken(Once),
    "attempts_at_once_do_not_mix": _broken(Mixer),
    "hostile_steps_are_no_fault": _broken(Delicate),
    "an_attempt_is_left_as_it_is": _broken(Scribbler),
    "it_asks_no_model_unless_it_says_so": _broken(Asker),
    "a_silent_judge_is_a_scanner_fault": _broken(Consoler),
    "a_cancelled_scan_ends": _broken(Swallower),
}
