"""What a set has spent so far: what each run of each cell paid itself, whichever submission it was.

What a run took over from another was paid once.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import orjson

from steelyard.components.values import NO_USAGE, Usage
from steelyard.config.errors import SteelyardError
from steelyard.evalset.findings import ScanSpending
from steelyard.evalset.set_reader import OpenedSet
from steelyard.results.consumption import NO_SPENDING, Spending, spending
from steelyard.results.documents import part
from steelyard.results.json_values import count, seconds
from steelyard.results.layout import RunFiles
from steelyard.results.plain_files import MAX_DOCUMENT_BYTES, read_plain
from steelyard.results.reader import RunReader
from steelyard.results.summary import summarise

_PAID_NOBODY_KNOWS_WHAT: Final = Usage(cost_usd=None)
"""Of an execution that was killed: its calls were paid, and their number died with it."""
NO_MODEL: Final = "none"
"""A request's model where its agent asks none."""


def set_spending(opened: OpenedSet) -> Spending:
    """Add up what all runs of a set paid; what died in flight counts as far as it is known.

    What scanners' judges cost counts with it.
    """
    total = ScanSpending(opened.files).read_on()
    for cell in opened.cells:
        for root in opened.run_dirs(cell):
            total += run_spending(root)
    return total


def set_charge_usd(opened: OpenedSet, spent: Spending) -> float:
    """Say what counts against a set's budget, in US dollars: at least what is known to be spent.

    An execution that was killed or cancelled in the middle of a call was paid, and nobody knows
    how much: it counts as much as the dearest of its agent and model that is known, or else of the
    set. Without that, a set that is killed again and again would never come to its limit.

    Args:
        opened: the set.
        spent: what `set_spending` gave.
    """
    unknown: dict[tuple[str, str | None, str | None], int] = {}
    dearest_usd: dict[tuple[str, str | None, str | None], float] = {}
    for cell in opened.cells:
        whose = cell.cell.agent_ref, cell.cell.agent_label, cell.cell.model_ref
        for root in opened.run_dirs(cell):
            try:
                more, dear_usd = _unknown_costs(RunReader(root))
            except SteelyardError:
                continue  # it cannot be read: nothing is known of it
            unknown[whose] = unknown.get(whose, 0) + more
            if dear_usd is not None:
                dearest_usd[whose] = max(dearest_usd.get(whose, 0.0), dear_usd)
    of_all_usd = max(dearest_usd.values(), default=0.0)
    return spent.known_usd + sum(
        many * dearest_usd.get(whose, of_all_usd) for whose, many in unknown.items()
    )


def _unknown_costs(reader: RunReader) -> tuple[int, float | None]:
    """Count a run's own executions of unknown cost; give the most that one of known cost took."""
    unknown = 0
    dearest_usd: float | None = None
    for record in reader.records():
        if record.reused_from is not None or not record.executions:
            continue
        if record.usage.cost_usd is None:
            unknown += 1
        else:
            dearest_usd = max(dearest_usd or 0.0, record.usage.cost_usd / record.executions)
    for flight in reader.in_flight if _asks_models(reader.document) else ():
        usage = reader.spent_in_flight(flight)
        unknown += not flight.is_waiting and (usage is None or usage.cost_usd is None)
    return unknown, dearest_usd


def run_spending(root: Path) -> Spending:
    """Say what a run paid itself, from its figures, or from its records where it died."""
    try:
        metrics = orjson.loads(read_plain(RunFiles(root).metrics, MAX_DOCUMENT_BYTES))
    except (OSError, ValueError):
        metrics = None
    if isinstance(metrics, dict) and "spent" in metrics:
        with suppress(KeyError, TypeError, ValueError):  # edited by hand: the records say it, too
            return _checked(spending([metrics]))
    try:
        total = spending([summarise(root)])
        reader = RunReader(root)
        asks_models = _asks_models(reader.document)
        for flight in reader.in_flight:
            usage = reader.spent_in_flight(flight)
            if usage is None:
                usage = _PAID_NOBODY_KNOWS_WHAT if asks_models else NO_USAGE
            cost = usage.cost_usd
            # A call that was under way is in no step: what is known is the least.
            is_whole = flight.is_waiting or not asks_models
            total += Spending(
                usage.requests,
                usage.input_tokens,
                usage.output_tokens,
                cost if is_whole else None,
                cost or 0.0,
            )
    except SteelyardError:
        return NO_SPENDING  # it cannot be read: nothing is known of it
    return total


def _asks_models(document: Mapping[str, Any]) -> bool:
    """Say whether a run's agent or judge asks a model, by its `run.json`; else it costs nothing."""
    model = part(part(dict(document), "request"), "model").get("id")
    evaluation = part(part(dict(document), "identities"), "evaluation")
    judge = part(part(evaluation, "benchmark"), "params").get("judge")
    return model not in (None, NO_MODEL) or judge is not None


def _checked(spent: Spending) -> Spending:
    """Give it back.

    Raises:
        TypeError, ValueError: a part of it is no amount.
    """
    for number in (spent.requests, spent.input_tokens, spent.output_tokens):
        count(number)
    for amount in (spent.known_usd, spent.cost_usd or 0.0):
        if seconds(amount) < 0:
            raise ValueError("money that was spent is not less than nothing")
    return spent
