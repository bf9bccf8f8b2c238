"""Opens the runs of a launch: all of them before anything starts, or each when it is its turn."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from concurrent.futures import Executor as Threads

from steelyard.components.clock import Clock
from steelyard.config.errors import SteelyardError
from steelyard.config.redaction import Redactor
from steelyard.engine.admission import Admission
from steelyard.engine.events import Observer, RunOutcome
from steelyard.engine.opened_runs import OpenedRuns
from steelyard.engine.opening import open_run
from steelyard.engine.plan import Plan
from steelyard.engine.request_plan import RequestPlan
from steelyard.engine.run_log import LaunchLogs
from steelyard.engine.run_state import RunState
from steelyard.results.files import Faults
from steelyard.results.journal import EventKind
from steelyard.results.syncer import Syncer


class Opener:
    """Makes run directories, and gives what it opened its place among the others."""

    def __init__(
        self,
        plan: Plan,
        runs: OpenedRuns,
        admission: Admission,
        *,
        clock: Clock,
        observer: Observer,
        redactor: Redactor,
        faults: Faults,
    ) -> None:
        self.syncer = Syncer()
        runtime = plan.orchestration.runtime
        self.logs = LaunchLogs(runtime.file_log_level, redactor, runtime.file_log_format)
        self._plan = plan
        self._runs = runs
        self._admission = admission
        self._clock = clock
        self._observer = observer
        self._redactor = redactor
        self._faults = faults

    async def all(self) -> None:
        """Open every request, in declaration order, before anything starts.

        Waits for nothing unless it fails; then what is open is ended, and says why.

        Raises:
            BadInput: a run directory is taken or cannot be made.
            StorageFailed: the first files of one cannot be written.
        """
        opened: list[RunState] = []
        try:
            for index in self._runs.take_all():
                opened.append(self._open(self._plan.requests[index]))  # noqa: PERF401 — what was opened before a failure is closed
        except SteelyardError as error:
            reason = f"another request could not be opened: {error}"
            for run in opened:
                await run.journal.finish(RunOutcome.FAILED.value, {}, reason)
                run.journal.close()
            await self.close()
            raise
        for index, run in enumerate(opened):
            self._take_in(index, run)

    def due(self) -> Iterator[int]:
        """Take the requests that are to be opened now."""
        admission = self._admission
        while not admission.is_paused:
            index = self._runs.next_to_open(admission.has_ready, admission.task_concurrency)
            if index is None:
                return
            yield index

    async def one(self, index: int, threads: Threads) -> RunState:
        """Open a request, in a thread.

        Raises:
            BadInput, StorageFailed: as `all`; nothing is left open.
        """
        loop = asyncio.get_running_loop()
        run = await loop.run_in_executor(threads, self._open, self._plan.requests[index])
        self._take_in(index, run)
        return run

    async def close(self) -> None:
        """Sync what is written, and end the logs."""
        await self.syncer.close()
        self.logs.close()

    def _open(self, request: RequestPlan) -> RunState:
        redact, faults = self._redactor.raw, self._faults
        return open_run(request, self._clock, self.syncer, redact=redact, faults=faults)

    def _take_in(self, index: int, run: RunState) -> None:
        """Give a request its place in the queue; its tasks are not known yet."""
        plan = run.plan
        self._runs.add(index, run)
        self.logs.open(run.name, run.folder.files.log)
        run.tell(self._observer)
        for warning in run.folder.warnings:
            run.journal.event(EventKind.WARNING, message=warning)
            self._observer.notice(run.name, warning)
        self._admission.open_request(
            index,
            provider=plan.spec.environment.id,
            opens_environment=True,
            overlap=plan.attempts_may_overlap,
            k=plan.k,
            budget=plan.budget,
            spends=plan.spends,
            max_running=plan.request.execution.max_concurrent_attempts,
        )


def has_earlier_runs(run: RunState) -> bool:
    """True where the folder of a request's runs holds anything beside this one."""
    try:
        with os.scandir(run.folder.root.parent) as entries:
            return any(entry.name != run.folder.run_id for entry in entries)
    except OSError:
        return False
