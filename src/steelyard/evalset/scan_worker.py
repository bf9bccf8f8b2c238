"""`python -m steelyard.evalset.scan_worker`: a process that reads cells for one that scans a set.

It is told by lines of JSON on standard input, and answers in lines on standard output; it writes
nothing to the disk. Its parent hides secrets in what it says, and keeps it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import orjson

from steelyard.components.clock import SystemClock
from steelyard.components.scanner import Finding, FindingSeverity, Scanner
from steelyard.config.errors import SteelyardError
from steelyard.config.secrets import SecretStore
from steelyard.engine.services import EndpointPool, Maker
from steelyard.evalset.chosen_scanners import make_scanners, version_of
from steelyard.evalset.finding_store import Scanned
from steelyard.evalset.finding_values import Scan
from steelyard.evalset.findings import FindingLog
from steelyard.evalset.scan_cell import lacking, ran_attempts, scan_attempt
from steelyard.evalset.set_reader import OpenedSet
from steelyard.results.lines import json_bytes

MAX_TEXT_CHARS: Final = 1_000_000
"""Of a finding's text on its way; much less is kept, once secrets are hidden in it."""


def scanned_json(scanned: Scanned) -> dict[str, Any]:
    """Give what a worker says of an attempt."""
    return {
        "scan": scanned.scan.as_json(),
        "matrix_key": scanned.matrix_key,
        "run": scanned.run,
        "findings": [
            [
                scanner,
                one.category[:MAX_TEXT_CHARS],
                one.severity.value,
                one.message[:MAX_TEXT_CHARS],
                one.evidence[:MAX_TEXT_CHARS],
                one.step,
                one.confidence,
            ]
            for scanner, one in scanned.findings
        ],
    }


def scanned_from_json(data: Mapping[str, Any]) -> Scanned:
    """Read what `scanned_json` gave.

    Raises:
        KeyError, TypeError, ValueError: it is not that.
    """
    return Scanned(
        Scan.from_json(data["scan"]),
        str(data["matrix_key"]),
        str(data["run"]),
        tuple(
            (scanner, Finding(category, FindingSeverity(severity), message, evidence, step, sure))
            for scanner, category, severity, message, evidence, step, sure in data["findings"]
        ),
    )


async def work(lines: Any, tell: Callable[[dict[str, Any]], None]) -> None:
    """Read the cells that the lines name, until there are no more.

    Args:
        lines: of bytes; the first says which set and scanners, the others a cell each.
        tell: is given the answers.
    """
    head = orjson.loads(next(lines))
    opened = OpenedSet(Path(head["root"]))
    store, clock = SecretStore({}), SystemClock()
    maker = Maker(store, clock, EndpointPool(store, clock), Path(head["folder"]))
    scanners = [
        one for one in make_scanners(head["names"], maker, has_judge=True) if not one.needs_model
    ]
    versions = {scanner.id: version_of(scanner) for scanner in scanners}
    log = FindingLog(opened.files)
    tell({"ready": versions})
    for line in lines:
        index = orjson.loads(line)["cell"]
        said = await _read(opened, index, scanners, versions, log, tell)
        tell({"done": index, **said})


async def _read(
    opened: OpenedSet,
    index: int,
    scanners: Sequence[Scanner],
    versions: Mapping[str, str],
    log: FindingLog,
    tell: Callable[[dict[str, Any]], None],
) -> dict[str, Any]:
    cell = next(cell for cell in opened.cells if cell.index == index)
    attempts = 0
    try:
        for reader, record in ran_attempts(opened, cell):
            attempts += 1
            wanting = lacking(log, versions, cell, record, scanners)
            if wanting:
                scanned = await scan_attempt(cell, reader, record, wanting, versions)
                tell(scanned_json(scanned))
    except (SteelyardError, OSError) as error:
        return {"attempts": attempts, "unreadable": str(error)}
    return {"attempts": attempts, "unreadable": None}


def main() -> int:
    """Work for a parent until it says no more, or is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ctrl-c is for the parent, which ends us
    # What a plug-in prints must not pass for an answer; the parent lets nobody see it.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)

    def tell(data: dict[str, Any]) -> None:
        answers.write(json_bytes(data) + b"\n")
        answers.flush()

    try:
        asyncio.run(work(iter(sys.stdin.buffer.readline, b""), tell))
    except BrokenPipeError:
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
