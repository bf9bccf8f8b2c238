"""Scan a set with the scanners of its manifest, or others, as its project is: judge and secrets.

What `submit`, `resume` and `retry` do at their end, and `scan` at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from steelyard.components.clock import Clock, SystemClock
from steelyard.components.registry import Kind, canonical_id
from steelyard.components.scanner import Scanner
from steelyard.config.errors import Where
from steelyard.config.redaction import Redactor
from steelyard.config.secrets import SecretStore
from steelyard.config.source import plain
from steelyard.engine.services import EndpointPool, Maker
from steelyard.evalset.chosen_scanners import (
    judge_model,
    judge_samples,
    judge_settings,
    make_scanners,
)
from steelyard.evalset.project import Project
from steelyard.evalset.scan_helpers import HelperSpec
from steelyard.evalset.scan_values import ScanProgress, ScanResult
from steelyard.evalset.scanning import scan_set
from steelyard.evalset.set_document import SetCell
from steelyard.evalset.set_reader import OpenedSet
from steelyard.results.files import NO_FAULTS, Faults

_NOTHING: Final[Sequence[str]] = ()


def scanners_of(opened: OpenedSet) -> tuple[str, ...]:
    """Give the scanners that a set's manifest names, aliases resolved."""
    written = opened.document.manifest.get("scanners")
    names = written if isinstance(written, list) else _NOTHING
    return tuple(canonical_id(Kind.SCANNER, str(name)) for name in names)


def checked_scanners(
    names: Sequence[str],
    project: Project,
    folder: Path,
    *,
    place_of: Callable[[int], Where] | None = None,
) -> tuple[Scanner, ...]:
    """Make scanners as a scan would: what is wrong is said before anything starts.

    Args:
        names: ids, aliases, rule files, `./file.py:Class`, `module:Class`.
        project: says whether there is a judge.
        folder: what paths in names start from.
        place_of: gives where the name of a number is written.

    Raises:
        BadInput: all that is wrong with them, a missing judge too.
    """
    store, clock = SecretStore({}), SystemClock()
    maker = Maker(store, clock, EndpointPool(store, clock), folder)
    return _made(names, maker, project, place_of)


def _made(
    names: Sequence[str],
    maker: Maker,
    project: Project,
    place_of: Callable[[int], Where] | None = None,
) -> tuple[Scanner, ...]:
    has_judge = project.judge is not None
    samples = judge_samples(project)
    return make_scanners(names, maker, has_judge=has_judge, samples=samples, place_of=place_of)


async def scan_asked(
    opened: OpenedSet,
    names: Sequence[str],
    project: Project,
    folder: Path,
    *,
    cells: Sequence[SetCell] | None = None,
    place_of: Callable[[int], Where] | None = None,
    redact: Callable[[str], str] | None = None,
    clock: Clock | None = None,
    on_progress: Callable[[ScanProgress], None] | None = None,
    on_wait: Callable[[], None] | None = None,
    faults: Faults = NO_FAULTS,
) -> ScanResult:
    """Make the scanners and the judge, scan, and close what was opened.

    Args:
        opened: the set.
        names: ids, aliases, rule files, `./file.py:Class`, `module:Class`.
        project: its judge, prices, and the secrets that are hidden in what is kept.
        folder: what paths in names start from.
        cells: those that are read; all by default.
        place_of: gives where the name of a number is written, for errors.
        redact: hides secrets; by default those of the project.
        clock: the system's by default.
        on_progress: is told now and then how far it has come.
        on_wait: is told once where another process scans the set, and is waited for.
        faults: what a test does to writes.

    Raises:
        BadInput: all that is wrong with scanners or judge; nothing was read.
        StorageFailed: the findings could not be written; what was written before is kept.
    """
    clock = clock or SystemClock()
    store = project.config.secrets
    endpoints = EndpointPool(store, clock)
    scanners = _made(names, Maker(store, clock, endpoints, folder), project, place_of)
    try:
        judge = None
        if any(scanner.needs_model for scanner in scanners):
            settings = judge_settings(project, store) or {}
            prices = project.config.provenance.root.at(("prices",))
            judge = judge_model(
                opened, endpoints, settings, {} if prices is None else plain(prices)
            )
        return await scan_set(
            opened,
            scanners,
            judge=judge,
            cells=cells,
            redact=redact or Redactor(store).text,
            clock=clock,
            on_progress=on_progress,
            on_wait=on_wait,
            helpers=HelperSpec(opened.root, tuple(names), folder),
            faults=faults,
        )
    finally:
        await endpoints.close()
