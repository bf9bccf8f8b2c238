"""Plug-ins that let secrets slip wherever a plug-in can, named as `FILE:Class`."""

from __future__ import annotations

import logging
import threading
import warnings
from typing import Any

from pydantic import BaseModel, ConfigDict

from steelyard.components.analyzer import Analysis, Analyzer, AnalyzerFault, FinishedRun
from steelyard.components.benchmark import (
    Benchmark,
    BenchmarkInfo,
    Evaluation,
    ScoringContext,
    Task,
    TaskInput,
    binary,
)
from steelyard.components.harness import Harness, HarnessContext, HarnessResult, HarnessTraits, Step
from steelyard.components.issues import AttemptFault, IssueCode
from steelyard.components.model import ModelRequest
from steelyard.components.scanner import Finding, FindingSeverity, ScannedAttempt, Scanner
from steelyard.components.values import Message
from tests.security.planted import SECRETS, said_in_every_form

HOSTILE = (
    "\x1b[2J\x1b]0;owned\x07\x9b31m\r\x08\x00\x7f\u202eevil\u2028<script>alert(1)</script>"
    "\n2026-01-01T00:00:00.000Z ERROR steelyard: forged\n# owned\n[x](javascript:alert(1))| a |`b`"
)


class OpenParams(BaseModel):
    model_config = ConfigDict(extra="allow")
    mode: str = "model"
    tasks: int = 1
    hostile: bool = False
    """True: no secrets, but text that would take over a terminal or a page."""


class Tasks(Benchmark):
    """Tasks t0, …; whatever is answered passes, and the scorer repeats the answer."""

    api = 1
    id = "tasks"
    Params = OpenParams

    def info(self) -> BenchmarkInfo:
        return BenchmarkInfo("tasks", "1", (binary("passed"),), "passed", runs_model_code=False)

    def load_tasks(self) -> list[Task]:
        if self.params.model_dump()["mode"] == "no_tasks":
            raise OSError(said_in_every_form())
        count = self.params.model_dump()["tasks"]
        name = HOSTILE if self.params.model_dump()["hostile"] else "t"
        category = HOSTILE if self.params.model_dump()["hostile"] else None
        return [Task(f"{name}{index}", {}, category=category) for index in range(count)]

    def task_input(self, task: Task, *, attempt: int, seed: int) -> TaskInput:
        return TaskInput((Message("user", task.id),))

    async def evaluate(self, task: Task, context: ScoringContext) -> Evaluation:
        said = said_in_every_form()
        return Evaluation({"passed": True}, details={"said": said, "nested": [{said: [said]}]})


class _Unraisable:
    def __init__(self, text: str) -> None:
        self.text = text

    def __del__(self) -> None:
        raise RuntimeError(self.text)


class Leaky(Harness):
    """Says its secrets in the way `mode` names."""

    api = 1
    id = "leaky"
    Params = OpenParams
    traits = HarnessTraits(calls_model=True)

    async def run(self, context: HarnessContext) -> HarnessResult:
        params: dict[str, Any] = self.params.model_dump()
        # The reference was revealed: a plug-in is handed the value itself.
        assert params["hostile"] or params["password"] == SECRETS["param_key"]
        said = HOSTILE if params["hostile"] else said_in_every_form()
        context.step(Step("agent", said, {said: [said]}))
        mode = params["mode"]
        if mode == "raise":
            raise RuntimeError(said)
        if mode == "fault":
            raise AttemptFault(IssueCode.MODEL_ENDPOINT_REJECTED, said, request_fault=True)
        if mode == "large":
            return HarnessResult("x" * 70_000 + said)
        if mode == "surrogate":
            return HarnessResult("\ud800" + said)
        if mode == "log":
            _log(said)
            return HarnessResult("logged")
        reply = await context.model.generate(ModelRequest(context.input.messages))
        return HarnessResult(reply.text)


class Telling(Analyzer):
    """Writes into its analysis whatever it knows."""

    api = 1
    id = "telling"
    Params = OpenParams

    def analyze(self, run: FinishedRun) -> Analysis:
        assert self.params.model_dump()["analyzer_key"] == SECRETS["analyzer_key"]
        said = said_in_every_form()
        logging.getLogger("steelyard.plugin").warning("analyzed %s", said)
        if self.params.model_dump()["mode"] == "raise":
            raise AnalyzerFault(said)
        return Analysis(self.id, self.version, {"summary": said, said: [said]}, said)


def _log(said: str) -> None:
    for name in ("plugin", "httpx2", "httpcore2.http11", "steelyard.plugin", "asyncio"):
        for level in (logging.DEBUG, logging.WARNING, logging.ERROR):
            logging.getLogger(name).log(level, "said %s", said)
    warnings.warn(said, stacklevel=1)
    thread = threading.Thread(target=_fail, args=(said,))
    thread.start()
    thread.join()
    _Unraisable(said)
    try:
        raise OSError(said)
    except OSError:
        logging.getLogger("plugin").exception("failed")


def _fail(said: str) -> None:
    raise RuntimeError(said)


class Seeing(Scanner):
    """Finds in each attempt all that it knows."""

    api = 1
    id = "seeing"

    async def scan(self, attempt: ScannedAttempt) -> list[Finding]:
        said = said_in_every_form()
        return [Finding("seen", FindingSeverity.HIGH, said, said, step=0)]
