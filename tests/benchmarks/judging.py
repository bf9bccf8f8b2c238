"""Judges of a few lines, and a scoring context that asks them."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from steelyard.benchmarks.pack import PackBenchmark
from steelyard.components.benchmark import Evaluation
from steelyard.components.issues import AttemptFault
from steelyard.components.model import ModelRequest, ModelResponse
from steelyard.components.steps import Step
from steelyard.components.values import NO_USAGE, Message, Usage
from steelyard.config.errors import BadInput
from tests.benchmarks.scoring import Context, write_pack

Reply = Callable[[Sequence[Message]], str | AttemptFault]
JUDGE = "prompt: a\njudge: {model: {id: j, base_url: 'http://127.0.0.1:9/v1'}}"
CODE = re.compile(r'"code" is "([^"]+)"')


def code_of(messages: Sequence[Message]) -> str:
    """Read the instructions as a judge would."""
    found = CODE.search(messages[0].content)
    assert found is not None
    return found[1]


def says(**fields: Any) -> Reply:
    """A judge that always says the same, with the code it was given."""
    return lambda messages: json.dumps({"code": code_of(messages), "reason": "Because.", **fields})


def in_turn(*replies: Reply) -> Reply:
    """A judge that replies with each of these in turn, the last one for ever."""
    left = list(replies)
    return lambda messages: (left.pop(0) if len(left) > 1 else left[0])(messages)


class FakeJudge:
    """A model client that asks a function."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self.model_id = "j"
        self.usage: Usage = NO_USAGE
        self.calls_succeeded = 0
        self.asked: list[Sequence[Message]] = []
        self.at_once = self.most_at_once = 0

    async def generate(self, request: ModelRequest) -> ModelResponse:
        self.asked.append(list(request.messages))
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        text = self._reply(request.messages)
        if isinstance(text, AttemptFault):
            raise text
        usage = Usage(10, 5, requests=1, cost_usd=0.25)
        self.usage += usage
        self.calls_succeeded += 1
        return ModelResponse(text, (), None, usage, True, None, 0.0, 0)


class JudgedContext(Context):
    """A scoring context with a judge and a trajectory."""

    def __init__(
        self,
        answer: str | None,
        reply: Reply | None = None,
        *,
        steps: Sequence[Step] = (),
        artifacts: Mapping[str, Path] | None = None,
    ) -> None:
        super().__init__(answer, artifacts=artifacts)
        self.steps = steps
        self.judge = None if reply is None else FakeJudge(reply)
        self.settings: list[Mapping[str, Any]] = []

    def model(self, settings: Mapping[str, Any]) -> FakeJudge:
        self.settings.append(settings)
        if self.judge is None:
            raise BadInput("no model can be reached from here")
        return self.judge


def judged_pack(root: Path, validator: str, more: str = JUDGE, **rest: Any) -> PackBenchmark:
    """A pack of one case whose only validator this is."""
    folder = write_pack(root, f"[{{{validator}}}]", more=more, **rest)
    return PackBenchmark(PackBenchmark.Params.model_validate({"path": str(folder)}))


def judged(benchmark: PackBenchmark, context: JudgedContext) -> Evaluation:
    """Score the first case."""
    return asyncio.run(benchmark.evaluate(benchmark.load_tasks()[0], context))
