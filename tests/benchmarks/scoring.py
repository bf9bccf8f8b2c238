"""A scoring context over real sessions, and packs written from a few lines."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from steelyard.benchmarks.pack import PackBenchmark
from steelyard.components.benchmark import Benchmark, Evaluation, Task
from steelyard.components.environment import OpenRequest, Resources, Session
from steelyard.components.model import ModelClient
from steelyard.components.steps import Step
from steelyard.config.errors import BadInput
from steelyard.environments.host_process import HostProcess
from steelyard.environments.sandbox import Sandbox


class Context:
    """What scoring may use; opens a session of the given provider when asked."""

    def __init__(
        self,
        answer: str | None,
        provider: str = "host_process",
        artifacts: Mapping[str, Path] | None = None,
    ) -> None:
        self.answer = answer
        self.artifacts = artifacts or {}
        self.steps: Sequence[Step] = ()
        self.opened: Session | None = None
        self._provider = provider

    def model(self, settings: Mapping[str, Any]) -> ModelClient:
        raise BadInput("no model can be reached from here")

    async def session(self) -> Session:
        if self.opened is None:
            maker = Sandbox if self._provider == "sandbox" else HostProcess
            provider = maker(maker.Params())
            request = OpenRequest(
                secrets.token_hex(8), Resources(memory_mb=512, processes=64), network="none"
            )
            self.opened = await provider.open(request)
            for path, source in self.artifacts.items():
                await self.opened.upload(source, path)
        return self.opened


def score(benchmark: Benchmark, task: Task, context: Context) -> Evaluation:
    """Score one answer and close what was opened."""

    async def whole() -> Evaluation:
        try:
            return await benchmark.evaluate(task, context)
        finally:
            if context.opened is not None:
                await context.opened.close()

    return asyncio.run(whole())


def write_pack(
    root: Path,
    scoring: str,
    cases: Sequence[Mapping[str, Any]] = ({"id": "a", "q": "one?", "answer": "1"},),
    more: str = 'prompt: "{{ q }}"',
) -> Path:
    """Write a pack; `scoring` is the flow form of its validators, `more` further lines."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "pack.yaml").write_text(
        f"schema: pack/v1\nslug: small\nversion: 1\n{more}\ncases: cases.jsonl\n"
        f"scoring:\n  validators: {scoring}\n",
        "utf-8",
    )
    lines = "".join(json.dumps(dict(case)) + "\n" for case in cases)
    (root / "cases.jsonl").write_text(lines, "utf-8")
    return root


def opened(root: Path) -> PackBenchmark:
    """Open a pack."""
    return PackBenchmark(PackBenchmark.Params(path=str(root)))  # type: ignore[call-arg]


def problems_of(root: Path) -> list[str]:
    """Load a pack that must be refused; give its problems as people see them."""
    try:
        opened(root).load_tasks()
    except BadInput as error:
        return [str(problem) for problem in error.problems]
    raise AssertionError("the pack was accepted")
