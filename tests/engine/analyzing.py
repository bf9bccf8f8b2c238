"""Analyzers that misbehave, and one that sees whole runs; found as `./analyzing.py:Class`."""

from __future__ import annotations

import sys
import time
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict

from steelyard.components.analyzer import Analysis, Analyzer, AnalyzerFault, FinishedRun


class Counting(Analyzer):
    api = 1
    id = "counting"

    def analyze(self, run: FinishedRun) -> Analysis:
        steps = 0
        names = []
        for attempt in run.records():
            names.append(f"{attempt.task_id} {attempt.attempt}")
            steps += sum(1 for _ in run.steps(attempt))
        data = {"summary": f"{len(names)} attempts, {steps} steps", "steps": steps}
        return Analysis(self.id, self.version, data, f"# Counted\n\n{len(names)}")


class KeyedParams(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    api_key: str
    word: str = "x"


class Keyed(Counting):
    api = 1
    id = "keyed"
    Params: ClassVar[type[BaseModel]] = KeyedParams

    def analyze(self, run: FinishedRun) -> Analysis:
        params: Any = self.params
        raise RuntimeError(f"{'x' * 470} {params.api_key} was refused")


class Raising(Counting):
    api = 1
    id = "raising"

    def analyze(self, run: FinishedRun) -> Analysis:
        raise AnalyzerFault("no luck")


class Exiting(Counting):
    api = 1
    id = "exiting"

    def analyze(self, run: FinishedRun) -> Analysis:
        sys.exit(3)


class NotFinite(Counting):
    api = 1
    id = "not-finite"

    def analyze(self, run: FinishedRun) -> Analysis:
        return Analysis(self.id, self.version, {"x": float("nan")})


class NoAnalysis(Counting):
    api = 1
    id = "no-analysis"

    def analyze(self, run: FinishedRun) -> Analysis:
        wrong: Any = {"x": 1}
        return wrong  # type: ignore[no-any-return]


class Huge(Counting):
    api = 1
    id = "huge"

    def analyze(self, run: FinishedRun) -> Analysis:
        return Analysis(self.id, self.version, {}, "x" * 5_000_000)


class Slow(Counting):
    api = 1
    id = "slow"

    def analyze(self, run: FinishedRun) -> Analysis:
        time.sleep(8)
        return Analysis(self.id, self.version)


class Lacking(Counting):
    api = 1
    id = "lacking"

    @classmethod
    def unavailable(cls) -> str | None:
        return "it needs a moon"
