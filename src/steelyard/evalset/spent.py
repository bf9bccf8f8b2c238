"""What a set has spent so far: what each run of each cell paid itself, whichever submission it was.

What a run took over from another was paid once.
"""

from __future__ import annotations

from pathlib import Path

import orjson

from steelyard.config.errors import SteelyardError
from steelyard.evalset.findings import ScanSpending
from steelyard.evalset.set_reader import OpenedSet
from steelyard.results.consumption import NO_SPENDING, Spending, spending
from steelyard.results.layout import RunFiles
from steelyard.results.plain_files import MAX_DOCUMENT_BYTES, read_plain
from steelyard.results.reader import RunReader
from steelyard.results.summary import summarise


def set_spending(opened: OpenedSet) -> Spending:
    """Add up what all runs of a set paid; what died in flight counts as far as it is known.

    What scanners' judges cost counts with it.
    """
    total = ScanSpending(opened.files).read_on()
    for cell in opened.cells:
        for root in opened.run_dirs(cell):
            total += run_spending(root)
    return total


def run_spending(root: Path) -> Spending:
    """Say what a run paid itself, from its figures, or from its records where it died."""
    try:
        metrics = orjson.loads(read_plain(RunFiles(root).metrics, MAX_DOCUMENT_BYTES))
    except (OSError, ValueError):
        metrics = None
    if isinstance(metrics, dict) and "spent" in metrics:
        return spending([metrics])
    try:
        total = spending([summarise(root)])
        reader = RunReader(root)
        for flight in reader.in_flight:
            usage = reader.spent_in_flight(flight)
            if usage is not None:
                cost = usage.cost_usd
                total += Spending(
                    usage.requests, usage.input_tokens, usage.output_tokens, cost, cost or 0.0
                )
    except SteelyardError:
        return NO_SPENDING  # it cannot be read: nothing is known of it
    return total
