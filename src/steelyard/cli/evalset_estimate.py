"""Show what a submission will run and what it may cost, for people and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from steelyard.cli.output import (
    counted,
    note,
    print_json,
    print_table,
    print_warnings,
    say,
    warnings_json,
)
from steelyard.cli.streams import redact_with
from steelyard.evalset.estimate import Basis, CellEstimate, Cost, SetEstimate, estimate_set
from steelyard.evalset.plan_warnings import plan_warnings
from steelyard.results.consumption import dollars

if TYPE_CHECKING:
    from steelyard.evalset.set_plan import SetPlan

_SIGN: Final = {Basis.NO_MODEL: "", Basis.EARLIER_RUNS: "~", Basis.BOUNDED: "<="}


def show_estimate(plan: SetPlan, *, as_json: bool, is_dry: bool = True) -> SetEstimate:
    """Print the estimate of a submission.

    Args:
        plan: the submission.
        as_json: print the document `evalset-plan/1`.
        is_dry: whether this is all that is done.
    """
    redactor = plan.prepared.redactor
    redact_with(redactor.text)
    found = estimate_set(plan)
    warnings = [*plan.warnings, *plan_warnings(plan)]
    if as_json:
        print_json(redactor.tree({**found.as_json(), "warnings": warnings_json(warnings)}))
        return found
    say(f"{found.name}: {counted(len(found.cells), 'cell')} to {_VERBS.get(found.kind, 'run')}")
    print_table(
        ("cell", "pack", "model", "environment", "tasks", "attempts", "cost"),
        [
            (
                cell.cell.matrix_key,
                f"{cell.cell.pack.slug}@{cell.cell.pack.version}",
                cell.model,
                cell.environment,
                cell.tasks,
                cell.attempts,
                cost_text(cell.cost),
            )
            for cell in found.cells
        ],
    )
    say()
    for line in estimate_lines(found):
        say(redactor.text(line))
    if is_dry:
        say("nothing was made")
    print_warnings(warnings)
    if found.is_over_budget:
        note(
            "warning: that is more than the budget: the set will stop there, and "
            "`steelyard evalset resume ID --budget-usd USD` goes on"
        )
    return found


_NOTES: Final = 20
_VERBS: Final = {"submit": "run", "resume": "go on with", "retry": "run again"}


def cost_text(cost: Cost) -> str:
    """Write an estimate: `~$0.14` from earlier runs, `<=$0.30` as a bound, `unknown`."""
    return "unknown" if cost.usd is None else f"{_SIGN[cost.basis]}{dollars(cost.usd)}"


def estimate_lines(found: SetEstimate) -> Iterator[str]:
    """Say the totals, and what they rest on."""
    yield (
        f"{counted(len(found.cells), 'cell')}, {counted(found.tasks, 'task')}, "
        f"{counted(found.attempts, 'attempt')}"
    )
    budget = "no budget" if found.budget_usd is None else f"budget ${found.budget_usd:g}"
    if found.spent_usd:
        budget += f", of which {dollars(found.spent_usd)} is spent"
    unknown = len(found.unknown)
    if unknown == len(found.cells):
        yield f"cost: unknown; {budget}"
    elif unknown:
        known = counted(len(found.cells) - unknown, "cell")
        yield f"cost: {_total(found)} for {known}, unknown for {unknown}; {budget}"
    else:
        yield f"cost: {_total(found)}; {budget}"
    said: Counter[str] = Counter()
    for cell in found.cells:
        said[f"{_of(cell)}: {cell.cost.note}"] += 1
    for text, cells in list(said.items())[:_NOTES]:
        yield f"  {text} ({counted(cells, 'cell')})"
    if len(said) > _NOTES:
        yield f"  and {len(said) - _NOTES} more; --json says what the cost of each cell rests on"


def _total(found: SetEstimate) -> str:
    bases = {cell.cost.basis for cell in found.cells if cell.cost.usd}
    if not bases:
        return "$0"
    sign = "at most" if bases == {Basis.BOUNDED} else "about"
    return f"{sign} {dollars(found.known_usd)}"


def _of(cell: CellEstimate) -> str:
    model = "" if cell.cost.basis is Basis.NO_MODEL else f" with {cell.model}"
    return f"{cell.cell.pack.slug} by {cell.cell.agent.shown}{model}"
