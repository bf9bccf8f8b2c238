"""Scanners for tests, named as `FILE:Class`."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from steelyard.components.harness import Harness, HarnessContext, HarnessResult, HarnessTraits
from steelyard.components.issues import AttemptFault
from steelyard.components.model import ModelRequest, ToolCall
from steelyard.components.scanner import (
    Finding,
    FindingSeverity,
    ScannedAttempt,
    Scanner,
    ScannerFault,
)
from steelyard.components.steps import Step
from steelyard.components.values import Message


class Words(Scanner):
    """Finds the word `think` in what the agent says; fails at the case t1 where it is told to."""

    api = 1
    id = "words"
    version: ClassVar[str] = "1"
    word: ClassVar[str] = "think"
    fails_at: ClassVar[str | None] = None

    async def scan(self, attempt: ScannedAttempt) -> Sequence[Finding]:
        if attempt.record.task_id == self.fails_at:
            raise RuntimeError("as asked")
        return [
            Finding("word", FindingSeverity.LOW, "the word was said", self.word, number, 0.5)
            for number, step in enumerate(attempt.steps())
            if self.word in step.message
        ]


class NewerWords(Words):
    """The same, of a later version."""

    version: ClassVar[str] = "2"


class FailsAtOne(Words):
    """Fails at one case."""

    id = "fails-at-one"
    fails_at: ClassVar[str | None] = "t1"


HELPER_BEGAN = "STEELYARD_TEST_HELPER_BEGAN"
"""The variable that names a file: made by a helper that has begun."""


def wait_for_helper() -> None:
    mark = os.environ.get(HELPER_BEGAN)
    if mark is None:
        return
    if "scan_worker" in sys.argv[0]:
        Path(mark).touch()
    deadline_s = time.monotonic() + 60
    while not Path(mark).exists() and time.monotonic() < deadline_s:
        time.sleep(0.01)


class Slow(Words):
    """Waits until a helper has begun, where one is to come; prints what is no answer."""

    id = "slow"

    async def scan(self, attempt: ScannedAttempt) -> Sequence[Finding]:
        wait_for_helper()
        print('{"done": 0, "attempts": 7, "unreadable": null}')
        found = await super().scan(attempt)
        where = "helper" if "scan_worker" in sys.argv[0] else "own"
        return [replace(one, message=where) for one in found]


class DiesInHelpers(Slow):
    """Takes its process down, where that is not the one that scans."""

    id = "dies"

    async def scan(self, attempt: ScannedAttempt) -> Sequence[Finding]:
        if "scan_worker" in sys.argv[0]:
            wait_for_helper()
            os.kill(os.getpid(), signal.SIGKILL)
        return await super().scan(attempt)


class Wild(Scanner):
    """Gives what is no list of findings."""

    api = 1
    id = "wild"

    async def scan(self, attempt: ScannedAttempt) -> Sequence[Finding]:
        return ["nonsense"]  # type: ignore[list-item]


class Asks(Scanner):
    """Asks the judge about each attempt."""

    api = 1
    id = "asks"
    needs_model: ClassVar[bool] = True

    async def scan(self, attempt: ScannedAttempt) -> Sequence[Finding]:
        try:
            said = await attempt.model.generate(ModelRequest((Message("user", "well?"),)))
        except AttemptFault as error:
            raise ScannerFault(str(error)) from error
        if "yes" not in said.text:
            return []
        return [Finding("asked", FindingSeverity.HIGH, "the judge says so", "thinking", 0)]


class AskedParams(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    samples: int = 3


class AsksOften(Asks):
    """Asks the judge as often as its parameters say."""

    id = "asks-often"
    Params = AskedParams

    async def scan(self, attempt: ScannedAttempt) -> Sequence[Finding]:
        assert isinstance(self.params, AskedParams)
        for _ in range(self.params.samples):
            found = await super().scan(attempt)
        return found


class LengthParams(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    least: int = 1


class Artifacts(Scanner):
    """Finds every artifact."""

    api = 1
    id = "artifacts"
    Params = LengthParams

    async def scan(self, attempt: ScannedAttempt) -> Sequence[Finding]:
        return [
            Finding("artifact", FindingSeverity.INFO, "it was kept", f"{name}: {path.read_text()}")
            for name, path in attempt.artifacts.items()
        ]


class Curls(Harness):
    """An agent that asks the metadata service, by a tool."""

    api = 1
    id = "curls"
    traits = HarnessTraits(calls_model=False)

    async def run(self, context: HarnessContext) -> HarnessResult:
        arguments = '{"command": "curl -s http://169.254.169.254/latest/"}'
        context.step(Step("agent", "", tool_calls=(ToolCall("1", "bash", arguments),)))
        return HarnessResult("right")
