"""When checkpoints are written for scorers that compute without a pause."""

from __future__ import annotations

import logging
import time
from pathlib import Path

import pytest

from steelyard.components.benchmark import Evaluation, ScoringContext, Task
from steelyard.engine.checkpointing import PATIENCE_S
from tests.engine.components import Counted
from tests.engine.launching import records, request, run_all


class Computing(Counted):
    """Scores without ever giving way to anything else."""

    async def evaluate(self, task: Task, context: ScoringContext) -> Evaluation:
        time.sleep(1.5 * PATIENCE_S)
        return await super().evaluate(task, context)


def test_a_scorer_that_never_pauses_is_preceded_by_checkpoints_and_nobody_is_warned(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    one = request(benchmark={"id": f"{__file__}:Computing", "tasks": 3})
    result = run_all(tmp_path, one, task_concurrency=1)
    first, *others = records(result)
    assert first.checkpoint is None
    assert all(record.checkpoint is not None for record in others)
    said = [one for one in caplog.records if "without a pause" in one.getMessage()]
    assert [one.levelno for one in said] == [logging.INFO]
    assert not [one for one in caplog.records if one.levelno >= logging.WARNING]
