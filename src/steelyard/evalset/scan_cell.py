"""Let scanners read one cell's attempts: in this process, or in one that helps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from steelyard.components.model import ModelClient
from steelyard.components.scanner import Finding, FindingSeverity, Scanner
from steelyard.components.values import NO_USAGE, Usage
from steelyard.evalset.finding_store import Scanned
from steelyard.evalset.finding_values import Scan, work_digest
from steelyard.evalset.findings import FindingLog
from steelyard.evalset.scanned_attempt import RecordedAttempt
from steelyard.evalset.set_document import SetCell
from steelyard.evalset.set_reader import OpenedSet
from steelyard.results.consumption import NO_SPENDING, Spending
from steelyard.results.json_values import MAX_COUNT
from steelyard.results.reader import RunReader
from steelyard.results.records import AttemptRecord

MAX_FINDINGS: Final = 1_000
"""Of one scanner in one attempt; a scanner that gives more has failed."""


class UnfitFindings(Exception):
    """What a scanner gave is no list of findings that can be kept."""


def ran_attempts(opened: OpenedSet, cell: SetCell) -> Iterator[tuple[RunReader, AttemptRecord]]:
    """Iterate over the attempts of a cell in which an agent ran.

    Raises:
        RunUnreadable: its newest run cannot be read.
    """
    reader = opened.reader(cell)
    if reader is None:
        return
    for record in reader.records():
        if record.executions:
            yield reader, record


def lacking(
    log: FindingLog,
    versions: Mapping[str, str],
    cell: SetCell,
    record: AttemptRecord,
    scanners: Sequence[Scanner],
) -> list[Scanner]:
    """Give the scanners that have not read a work yet."""
    digest = work_digest(record)
    place = cell.index, record.task_id, record.attempt
    return [one for one in scanners if not log.has_read(one.id, versions[one.id], place, digest)]


async def scan_attempt(
    cell: SetCell,
    reader: RunReader,
    record: AttemptRecord,
    scanners: Sequence[Scanner],
    versions: Mapping[str, str],
    client_for: Callable[[Scanner], ModelClient | None] = lambda _scanner: None,
) -> Scanned:
    """Let scanners read one attempt. Never raises for what they do: faults are part of the result.

    Args:
        cell: whose attempt it is.
        reader: of its run.
        record: of the attempt.
        scanners: those that read it, one after the other.
        versions: of each scanner.
        client_for: gives the judge for a scanner that asks one.
    """
    read: dict[str, str] = {}
    failed: dict[str, str] = {}
    found: list[tuple[str, Finding]] = []
    spent = NO_SPENDING
    shown: list[RecordedAttempt] = []
    for scanner in scanners:
        client = client_for(scanner)
        shown.append(RecordedAttempt(reader, record, client))
        try:
            given = await scanner.scan(shown[-1])
            found += [(scanner.id, finding) for finding in fit_findings(given)]
            read[scanner.id] = versions[scanner.id]
        except (Exception, SystemExit, KeyboardInterrupt, asyncio.CancelledError) as error:
            if _is_meant(error):
                raise
            failed[scanner.id] = f"{type(error).__name__}: {error}"
        if client is not None:
            spent += _spending(client.usage)
    digest = work_digest(record)
    is_silent = any(one.was_read_whole for one in shown) and not any(
        one.has_shown_work for one in shown
    )
    scan = Scan(
        cell.index,
        record.task_id,
        record.attempt,
        digest,
        read,
        (),
        failed,
        spent,
        is_silent=is_silent,
    )
    return Scanned(scan, cell.matrix_key, reader.run_id, tuple(found))


def _is_meant(error: BaseException) -> bool:
    """True where the scan itself is cancelled, not where a plug-in raises what looks like it.

    Taken for a cancellation, that would end the scan as if all had been read and found clean.
    """
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0


def fit_findings(given: object) -> list[Finding]:
    """Look at what a plug-in gave before it is kept.

    Raises:
        UnfitFindings: it is no list of findings, or of too many.
    """
    if not isinstance(given, Sequence) or isinstance(given, str | bytes):
        raise UnfitFindings(f"scan() gave {type(given).__name__}, not a list of findings")
    if len(given) > MAX_FINDINGS:
        raise UnfitFindings(f"{len(given)} findings in one attempt: more than {MAX_FINDINGS}")
    for one in given:
        if not isinstance(one, Finding):
            raise UnfitFindings(f"a finding is {type(one).__name__}, not a Finding")
        is_whole = all(isinstance(text, str) for text in (one.category, one.message, one.evidence))
        if not is_whole or not isinstance(one.severity, FindingSeverity):
            raise UnfitFindings("a finding's category, message or evidence is no text")
        if not isinstance(one.confidence, int | float) or not 0.0 <= one.confidence <= 1.0:
            raise UnfitFindings(f"a finding's confidence is {one.confidence!r}, not from 0 to 1")
        if one.step is not None and not (type(one.step) is int and 0 <= one.step <= MAX_COUNT):
            raise UnfitFindings(f"a finding's step is {one.step!r}, not a number from 0")
    return list(given)


def _spending(usage: Usage) -> Spending:
    if usage == NO_USAGE:
        return NO_SPENDING
    cost = usage.cost_usd
    return Spending(usage.requests, usage.input_tokens, usage.output_tokens, cost, cost or 0.0)
