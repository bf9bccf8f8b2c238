"""What is looked at while a launch runs: snapshots for observers and files, the loop's lag."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final

from steelyard.components.clock import Clock
from steelyard.engine.events import Observer, RequestResult
from steelyard.engine.loop_lag import LoopLag
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

    async def tick_on(self, runs: Sequence[RunState]) -> None:
        """Take a snapshot twice a second, until cancelled."""
        while True:
            now = self._clock.monotonic()
            snapshot = tuple(run.progress(now) for run in runs)
            for index, (run, progress) in enumerate(zip(runs, snapshot, strict=True)):
                if run.ended:
                    continue
                if run.journal.failure is not None:
                    self._on_storage_failure(index)
                else:
                    self._write(run, progress.as_json())
            self._observer.tick(snapshot)
            await asyncio.sleep(TICK_S)

    async def measure_lag(self) -> None:
        """Note how late the loop wakes, until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            before = loop.time()
            await asyncio.sleep(LAG_SAMPLE_S)
            self.lag.add(max(0.0, loop.time() - before - LAG_SAMPLE_S))

    def write_last(self, run: RunState, result: RequestResult) -> None:
        """Put the end of a request into its `progress.json`."""
        progress = run.progress(self._clock.monotonic()).as_json()
        last = {"outcome": result.outcome, "loop_lag_p99_ms": self.lag.quantile_ms(0.99)}
        self._write(run, progress | last, is_last=True)

    def _write(self, run: RunState, snapshot: dict[str, Any], *, is_last: bool = False) -> None:
        try:
            run.progress_file.write(snapshot, self._clock.monotonic(), is_last=is_last)
        except StorageFailed as error:
            run.journal.fail(error)
