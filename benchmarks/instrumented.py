"""Run `steelyard` with a hand on its clock: `python -m benchmarks.instrumented ARGUMENTS`.

What is done to it stands in the environment: `BENCH_FSYNC_DELAY_MS` makes every sync slower,
`BENCH_LOOP_LAG=1` samples how late its event loop runs, `BENCH_DESCRIPTORS=1` how many descriptors
it holds (for 1% of CPU), `BENCH_BACKOFF_FACTOR` shrinks the waits before retries of attempts, as a
benchmark shrinks what an attempt takes. What was seen goes as JSON into the file `BENCH_REPORT`.
Nothing of the product knows of this.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

TICK_S = 0.005


class Seen:
    """Counts and samples of one process."""

    def __init__(self) -> None:
        self.fsyncs = 0
        self.lags_s: list[float] = []
        self.descriptors = 0
        self._lock = threading.Lock()

    def slow_syncs(self, delay_s: float) -> None:
        """Count every sync, and let it take `delay_s` longer."""

        def slowed(real: Callable[[Any], None]) -> Callable[[Any], None]:
            def sync(fd: Any) -> None:
                with self._lock:
                    self.fsyncs += 1
                if delay_s:
                    time.sleep(delay_s)
                real(fd)

            return sync

        for name in ("fsync", "fdatasync"):
            setattr(os, name, slowed(getattr(os, name)))

    def sample_loops(self) -> None:
        """Note every 5 ms how late each event loop is."""
        real = asyncio.events.new_event_loop

        def watched() -> asyncio.AbstractEventLoop:
            loop = real()

            def tick(due: float) -> None:
                lag = max(0.0, loop.time() - due)
                self.lags_s.append(lag)
                # A stall hides the ticks that fell into it: each would have been late, too.
                while (lag := lag - TICK_S) > 0:
                    self.lags_s.append(lag)
                due = loop.time() + TICK_S
                loop.call_at(due, tick, due)

            loop.call_soon(tick, loop.time())
            return loop

        asyncio.events.new_event_loop = watched
        asyncio.new_event_loop = watched

    def count_descriptors(self) -> None:
        """Note every 20 ms how many descriptors are open; the most is kept."""

        def count() -> None:
            while True:
                self.descriptors = max(
                    self.descriptors, sum(1 for _ in Path("/proc/self/fd").iterdir())
                )
                time.sleep(0.02)

        threading.Thread(target=count, daemon=True).start()

    def report(self, path: Path) -> None:
        """Write what was seen."""
        seen = {"fsyncs": self.fsyncs, "lags_s": self.lags_s, "descriptors": self.descriptors}
        path.write_text(json.dumps(seen))


def shrink_backoff(factor: float) -> None:
    """Let retries of attempts wait `factor` times as long as they do."""
    from steelyard.engine.launch import launch
    from steelyard.engine.retries import ATTEMPT_BACKOFF
    from steelyard.models.backoff import Backoff

    real = ATTEMPT_BACKOFF
    shrunk = Backoff(real.base_s * factor, real.cap_s * factor, real.retry_after_cap_s * factor)
    defaults = launch.__kwdefaults__
    assert defaults is not None
    defaults["backoff"] = shrunk


def main() -> None:
    """Patch, then call the product's own entry."""
    seen = Seen()
    seen.slow_syncs(float(os.environ.get("BENCH_FSYNC_DELAY_MS", "0")) / 1000)
    if os.environ.get("BENCH_LOOP_LAG"):
        seen.sample_loops()
    if os.environ.get("BENCH_DESCRIPTORS"):
        seen.count_descriptors()
    if factor := os.environ.get("BENCH_BACKOFF_FACTOR"):
        shrink_backoff(float(factor))
    atexit.register(seen.report, Path(os.environ["BENCH_REPORT"]))

    from steelyard.__main__ import main as steelyard

    raise SystemExit(steelyard())


if __name__ == "__main__":
    main()
