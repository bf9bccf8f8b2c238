"""Run analyzers over a run once its attempts have ended: in a thread, bounded, in nobody's way.

No slot is held meanwhile, and other requests go on: a thread works for a moment, then rests as
long, so that the event loop gets its turns. What fails here is a WARNING in the log: no outcome,
score or exit status changes.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor as Threads
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from steelyard.components.analyzer import Analysis, Analyzer, FinishedAttempt, FinishedRun
from steelyard.components.steps import Step
from steelyard.config.errors import SteelyardError
from steelyard.engine.loading import in_daemon
from steelyard.engine.run_state import RunState
from steelyard.results.analysis import (
    AnalysisFault,
    analysis_document,
    analysis_text,
    write_analysis,
)
from steelyard.results.files import Faults
from steelyard.results.reader import RunReader

log = logging.getLogger(__name__)

MAX_S: Final = 600.0
"""An analysis that takes longer is given up."""
MAX_DATA_BYTES: Final = 16 * 1024 * 1024
MAX_TEXT_CHARS: Final = 4 * 1024 * 1024
_TURN_S: Final = 0.005
_LOOKS_S: Final = 0.1
_MESSAGE_CHARS: Final = 500
_ONE_AT_A_TIME: Final = threading.Lock()


@dataclass(frozen=True, slots=True)
class Analyzed:
    """What came of it: the two files' content, and each analysis."""

    document: dict[str, Any]
    text: str
    analyses: tuple[Analysis, ...]
    faults: tuple[AnalysisFault, ...]


class UnfitAnalysis(Exception):
    """What an analyzer gave is no analysis that can be written."""


def analyze(
    root: Path,
    analyzers: Sequence[Analyzer],
    *,
    redact: Callable[[bytes], bytes] | None = None,
    is_considerate: bool = False,
) -> Analyzed:
    """Run analyzers over a run as it stands. Blocking; writes nothing.

    Args:
        root: the run directory.
        analyzers: one after the other; what one raises is its fault alone.
        redact: hides secrets in what an analyzer raises.
        is_considerate: whether to rest half of the time, for an event loop in this process.

    Raises:
        RunUnreadable: this is no run.
        FutureSchema: a newer version wrote it.
    """
    reader = RunReader(root)
    run: FinishedRun = _Considerate(reader) if is_considerate else reader
    analyses: list[Analysis] = []
    faults: list[AnalysisFault] = []
    for analyzer in analyzers:
        try:
            analyses.append(_fit(analyzer, analyzer.analyze(run)))
        except (Exception, SystemExit) as error:  # a plug-in must not end the process
            message = f"{type(error).__name__}: {error}"
            if redact is not None:  # before it is cut: of half a secret nobody knows it
                message = redact(message.encode("utf-8", "replace")).decode("utf-8", "replace")
            faults.append(AnalysisFault(analyzer.id, message[:_MESSAGE_CHARS]))
            log.debug("the analyzer %s failed", analyzer.id, exc_info=True)
    document = analysis_document(reader, analyses, faults)
    text = analysis_text(document, analyses, faults)
    return Analyzed(document, text, tuple(analyses), tuple(faults))


async def analyze_finished(
    run: RunState, threads: Threads, faults: Faults, *, is_stopping: Callable[[], bool]
) -> None:
    """Analyze a request's run and write what came of it. Never raises, but when cancelled.

    Args:
        run: the request; its last event is written.
        threads: for writing.
        faults: what a test does to writes.
        is_stopping: True once the launch must end; the analysis is then given up.
    """
    analyzers = run.plan.analyzers
    if not analyzers:
        return
    root = run.folder.root
    if is_stopping():
        log.info("%s is not analyzed: `steelyard analysis %s` does it", run.name, root)
        return
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(MAX_S) as scope:

            def look() -> None:
                if is_stopping():
                    scope.reschedule(loop.time())
                else:
                    timers[0] = loop.call_later(_LOOKS_S, look)

            timers = [loop.call_later(_LOOKS_S, look)]
            try:
                found = await in_daemon(_in_turn, root, analyzers, run.redact)
            finally:
                timers[0].cancel()
        for fault in found.faults:
            log.warning("%s: the analyzer %s failed: %s", run.name, fault.analyzer, fault.message)
        write = partial(write_analysis, root, found.document, found.text)
        await loop.run_in_executor(threads, partial(write, redact=run.redact, faults=faults))
        for analysis in found.analyses:
            said = analysis.data.get("summary")
            if isinstance(said, str) and said:
                log.info("%s: %s", run.name, said)
    except TimeoutError:
        why = "the launch ends" if is_stopping() else f"it took longer than {MAX_S:g} s"
        log.warning("%s is not analyzed: %s; `steelyard analysis %s`", run.name, why, root)
    except SteelyardError as error:
        log.warning("%s has no analysis: %s", run.name, error)
    except Exception:
        log.exception("%s has no analysis", run.name)


def _in_turn(
    root: Path, analyzers: Sequence[Analyzer], redact: Callable[[bytes], bytes] | None
) -> Analyzed:
    """Analyze when no other request of this process is being analyzed."""
    if not _ONE_AT_A_TIME.acquire(timeout=MAX_S):
        raise TimeoutError
    try:
        return analyze(root, analyzers, redact=redact, is_considerate=True)
    finally:
        _ONE_AT_A_TIME.release()


def _fit(analyzer: Analyzer, found: object) -> Analysis:
    """Look at what a plug-in gave before it is written."""
    if not isinstance(found, Analysis):
        raise UnfitAnalysis(f"analyze() gave {type(found).__name__}, not an Analysis")
    if not isinstance(found.data, Mapping) or not isinstance(found.markdown, str):
        raise UnfitAnalysis("its data are no mapping, or its markdown is no text")
    try:
        size = len(json.dumps(dict(found.data), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise UnfitAnalysis(f"its data are not JSON with finite numbers: {error}") from error
    if size > MAX_DATA_BYTES or len(found.markdown) > MAX_TEXT_CHARS:
        raise UnfitAnalysis(f"it is too large: {size} bytes, {len(found.markdown)} characters")
    return Analysis(analyzer.id, str(found.version), found.data, found.markdown)


class _Considerate:
    """A run whose reader rests as long as it works, a few milliseconds at a time.

    A thread that only computes would keep the interpreter's lock from the event loop for five
    milliseconds at each of its turns.
    """

    def __init__(self, reader: RunReader) -> None:
        self._reader = reader
        self._since_s = time.perf_counter()

    @property
    def run_id(self) -> str:
        return self._reader.run_id

    @property
    def document(self) -> Mapping[str, Any]:
        return self._reader.document

    def records(self) -> Iterator[FinishedAttempt]:
        for record in self._reader.records():
            self._rest()
            yield record

    def steps(self, attempt: FinishedAttempt) -> Iterator[Step]:
        for step in self._reader.steps(attempt):
            self._rest()
            yield step

    def answer_text(self, attempt: FinishedAttempt, *, max_bytes: int) -> str | None:
        return self._reader.answer_text(attempt, max_bytes=max_bytes)

    def _rest(self) -> None:
        worked_s = time.perf_counter() - self._since_s
        if worked_s >= _TURN_S:
            time.sleep(min(worked_s, 0.1))
            self._since_s = time.perf_counter()
