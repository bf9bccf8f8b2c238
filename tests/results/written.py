"""Write a finished or broken run for tests, without an event loop where none is needed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from steelyard.results.journal import EventKind, Journal, Syncer
from steelyard.results.records import AttemptRecord
from steelyard.results.run_folder import RunFolder
from tests.results.workload import DOCUMENT, FixedClock, a_run


def write_run(
    results_dir: Path,
    records: Sequence[AttemptRecord],
    *,
    run_id: str | None = None,
    tasks: int | None = None,
    k: int = 2,
    outcome: str | None = "completed",
    started: Sequence[tuple[str, int]] = (),
    document: Mapping[str, Any] = DOCUMENT,
    clock: FixedClock | None = None,
    keep_alive: bool = False,
) -> RunFolder:
    """Write a run: `outcome=None` leaves it without an end, as after a crash."""

    async def main() -> RunFolder:
        used = clock or FixedClock()
        folder = a_run(results_dir, run_id, document=document, clock=used)
        syncer = Syncer()
        journal = Journal(folder, clock=used, syncer=syncer)
        planned = len({record.task_id for record in records}) if tasks is None else tasks
        journal.event(EventKind.PLANNED, tasks=planned, k=k)
        for task_id, attempt in started:
            journal.event(
                EventKind.STARTED,
                task_id=task_id,
                attempt=attempt,
                execution=1,
                token=f"token-{task_id}-{attempt}",
            )
        for record in records:
            journal.record(record)
        journal.flush()
        if outcome is not None:
            await journal.finish(outcome, {}, None)
        await syncer.close()
        if not keep_alive:
            journal.close()
        return folder

    return asyncio.run(main())
