"""Processes that help to scan a large set: one a core but one, each given a cell at a time."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import orjson

from steelyard.evalset.finding_store import Scanned
from steelyard.evalset.scan_worker import scanned_from_json
from steelyard.evalset.set_document import SetCell

MAX_HELPERS: Final = 16
_MAX_LINE_BYTES: Final = 1 << 30
_LEAVE_WITHIN_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class HelperSpec:
    """What a helper must be told to make the same scanners."""

    root: Path
    """Of the set."""
    names: tuple[str, ...]
    """Of the scanners, as they were asked for."""
    folder: Path
    """What paths in names start from."""

    def as_line(self) -> bytes:
        """Give the first line that a helper reads."""
        head = {
            "root": str(self.root.absolute()),
            "names": list(self.names),
            "folder": str(self.folder.absolute()),
        }
        return orjson.dumps(head) + b"\n"


@dataclass(frozen=True, slots=True)
class CellRead:
    """That a helper has come to the end of a cell."""

    attempts: int
    unreadable: str | None


def helpers_worthwhile(cells: int) -> int:
    """Say how many processes could help with so many cells."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(0, min(MAX_HELPERS, (cores or 1) - 1, cells // 2))


async def help_out(
    spec: HelperSpec,
    next_cell: Callable[[], SetCell | None],
    take: Callable[[Scanned], None],
    end: Callable[[SetCell, CellRead], None],
) -> None:
    """Run one helper until there are no more cells. What goes wrong with it is said of its cell.

    Args:
        spec: what it is told first.
        next_cell: gives a cell that nobody has, None where there is none.
        take: is given what was found in an attempt.
        end: is told that a cell was read.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "steelyard.evalset.scan_worker",
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL, limit=_MAX_LINE_BYTES,
    )  # fmt: skip
    stdin, stdout = process.stdin, process.stdout
    assert stdin is not None  # noqa: S101 — they are pipes
    assert stdout is not None  # noqa: S101
    try:
        if not await _is_ready(stdin, stdout, spec):
            return  # it could not begin: others read what it would have
        while (cell := next_cell()) is not None:
            try:
                stdin.write(orjson.dumps({"cell": cell.index}) + b"\n")
                await stdin.drain()
                end(cell, await _answers(stdout, take))
            except (OSError, ValueError, KeyError, TypeError, EOFError) as error:
                status = await _ended(process)
                why = f"the process that read it ended with status {status}: {error}"
                end(cell, CellRead(0, why))
                return
    finally:
        stdin.close()
        await _ended(process)


async def _ended(process: asyncio.subprocess.Process) -> int:
    """Wait until a process has ended by itself, soon; end it else."""
    # Not ended at once: to signal one that is dead already takes its status from whoever waits.
    with suppress(TimeoutError):
        async with asyncio.timeout(_LEAVE_WITHIN_S):
            return await process.wait()
    with suppress(ProcessLookupError):
        process.kill()
    return await process.wait()


async def _is_ready(
    stdin: asyncio.StreamWriter, stdout: asyncio.StreamReader, spec: HelperSpec
) -> bool:
    """Tell a helper what it must know; True once it has made its scanners."""
    with suppress(OSError, ValueError):
        stdin.write(spec.as_line())
        await stdin.drain()
        return "ready" in orjson.loads(await stdout.readline())
    return False


async def _answers(stdout: asyncio.StreamReader, take: Callable[[Scanned], None]) -> CellRead:
    """Take what a helper says until it has come to the end of its cell.

    Raises:
        EOFError: it ended before.
    """
    while line := await stdout.readline():
        data: dict[str, Any] = orjson.loads(line)
        if "done" in data:
            return CellRead(int(data["attempts"]), data["unreadable"])
        take(scanned_from_json(data))
    raise EOFError("it said no more")
