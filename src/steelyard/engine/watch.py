"""What is looked at while a launch runs: snapshots for observers and files, the loop's lag."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from steelyard.components.clock import Clock
from steelyard.engine.events import Observer, RequestResult
from steelyard.engine.loop_lag import LoopLag
from steelyard.engine.opened_runs import OpenedRuns
from steelyard.engine.run_state import RunState
from steelyard.results.files import StorageFailed

TICK_S: Final = 0.5
LAG_SAMPLE_S: Final = 0.05


class Watch:
    """Looks at the runs of a launch; changes nothing but their `progress.json`."""

    def __init__(
        self, clock: Clock, observer: Observer, on_storage_failure: Callable[[int], None]
    ) -> None:
        self.lag = LoopLag()
        self._clock = clock
        self._observer = observer
        self._on_storage_failure = on_storage_failure
        # One thread, so that the last snapshot of a run is the last that is written.
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="steelyard-progress")

    async def tick_on(self, runs: OpenedRuns) -> None:
        """Take a snapshot twice a second, until cancelled."""
        while True:
            snapshot = runs.progress(self._clock.monotonic())
            due = []
            for index, run in tuple(runs.going.items()):
                if run.ended:
                    continue
                if run.journal.failure is not None:
                    self._on_storage_failure(index)
                else:
                    due.append((run, snapshot[index].as_json()))
            self._observer.tick(snapshot)
            if due:
                await self._write(due)
            await asyncio.sleep(TICK_S)

    async def measure_lag(self) -> None:
        """Note how late the loop wakes, until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            before = loop.time()
            await asyncio.sleep(LAG_SAMPLE_S)
            self.lag.add(max(0.0, loop.time() - before - LAG_SAMPLE_S))

    async def write_last(self, run: RunState, result: RequestResult) -> None:
        """Put the end of a request into its `progress.json`."""
        progress = run.progress(self._clock.monotonic()).as_json()
        last = {"outcome": result.outcome, "loop_lag_p99_ms": self.lag.quantile_ms(0.99)}
        await self._write([(run, progress | last)], is_last=True)

    def close(self) -> None:
        """Let go of the thread."""
        self._writer.shutdown(wait=False, cancel_futures=True)

    async def _write(
        self, due: Sequence[tuple[RunState, dict[str, Any]]], *, is_last: bool = False
    ) -> None:
        """Write snapshots in a thread: a slow disk holds up no attempt."""
        now_s = self._clock.monotonic()

        def write() -> list[tuple[RunState, StorageFailed]]:
            failed = []
            for run, snapshot in due:
                try:
                    run.progress_file.write(snapshot, now_s, is_last=is_last)
                except StorageFailed as error:
                    failed.append((run, error))
            return failed

        loop = asyncio.get_running_loop()
        for run, error in await loop.run_in_executor(self._writer, write):
            run.journal.fail(error)
