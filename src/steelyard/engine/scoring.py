"""What scoring may use of one execution: its answer, its files, its steps, a session, a model."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from steelyard.components.artifacts import EvaluationMode
from steelyard.components.clock import AgentTimer
from steelyard.components.environment import Session
from steelyard.components.issues import AttemptFault, IssueCode
from steelyard.components.model import ModelClient
from steelyard.components.steps import Step
from steelyard.components.values import Trust
from steelyard.config.errors import BadInput
from steelyard.engine.collecting import MATCHED, files_for_scoring
from steelyard.engine.work import SCORER_SUFFIX, Work


class Scoring:
    """The scorer's context: the answer, what was collected, a session of its own."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._opening: asyncio.Lock | None = None

    @property
    def answer(self) -> str | None:
        """What the agent answered."""
        return self._work.answer

    @property
    def artifacts(self) -> Mapping[str, Path]:
        """What was collected, as host paths."""
        return files_for_scoring(self._work.inputs)

    @property
    def steps(self) -> Sequence[Step]:
        """What the agent did."""
        return self._work.steps

    def model(self, settings: Mapping[str, Any]) -> ModelClient:
        """Give a model of the scorer's own; what it consumes counts with the attempt, as one."""
        work = self._work
        if work.services.judge_endpoint is None:
            raise BadInput("no model can be reached from here")
        endpoint = work.services.judge_endpoint(settings)
        client = endpoint.client(AgentTimer(work.services.clock), work.allowance())
        work.scorer_clients.append(client)
        return client

    async def session(self) -> Session:
        """Open, once, the scorer's environment, with what was collected in place."""
        work = self._work
        if work.input.mode is EvaluationMode.REUSE:
            return await self._agents_session()
        if self._opening is None:
            self._opening = asyncio.Lock()
        async with self._opening:
            if work.scorer is None:
                await work.checkpointing.written()
                await self._open()
            assert work.scorer is not None  # noqa: S101 — opened, or it raised
            return work.scorer

    async def _open(self) -> None:
        """Open the scorer's environment and fill it, within the limit of every environment."""
        work = self._work
        limit_s = work.spec.request.limits.setup()
        try:
            async with asyncio.timeout(limit_s) as scope:
                work.scorer = await work.open_session(SCORER_SUFFIX)
                for path, source in work.inputs.items():
                    await work.scorer.upload(source, "." if path == MATCHED else path)
        except TimeoutError as error:
            if limit_s is None or not scope.expired():
                raise
            message = f"no environment to score in within {limit_s:g} s"
            raise AttemptFault(IssueCode.ENVIRONMENT_OPEN_TIMED_OUT, message) from error

    async def _agents_session(self) -> Session:
        session = await self._work.session()
        if session.trust is Trust.ISOLATED:
            # Whatever the agent left in there is beside what scores it.
            self._work.trusts.append(Trust.CONTAINED)
        return session
