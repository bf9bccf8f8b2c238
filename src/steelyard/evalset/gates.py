"""What a set is held to: its manifest's gates, and its baseline. Values in, values out.

`min_score` is of each agent, `max_regression` of each combination against the baseline,
`max_cost_usd` of what all runs of the set have paid.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from steelyard.config.errors import BadInput, Where
from steelyard.evalset.comparing import (
    THIS_SET,
    SetComparison,
    Verdict,
    compare_sets,
    coverage_text,
)
from steelyard.evalset.find_set import find_set
from steelyard.evalset.report.report import ReadSet, SetReport
from steelyard.evalset.report.wins import joined
from steelyard.evalset.set_reader import OpenedSet
from steelyard.results.consumption import dollars
from steelyard.results.figures import usd
from steelyard.results.gates import Gate, GateResult, judged_value

if TYPE_CHECKING:
    from steelyard.evalset.manifest import SetGates

MIN_SCORE: Final = "gates.min_score"
MAX_REGRESSION: Final = "gates.max_regression"
MAX_COST: Final = "gates.max_cost_usd"
NO_REGRESSION: Final = "--gate"
COVERAGE: Final = "--gate coverage"


@dataclass(frozen=True, slots=True)
class Held:
    """What came of a set's gates."""

    results: tuple[GateResult, ...]
    comparison: SetComparison | None
    """With the baseline; None without one."""
    warnings: tuple[str, ...] = ()

    @property
    def is_met(self) -> bool:
        """True where all gates hold."""
        return all(result.is_met for result in self.results)


def gates_of(opened: OpenedSet) -> SetGates:
    """Give the gates of a set's manifest.

    Raises:
        BadInput: the document was changed by hand.
    """
    from steelyard.evalset.manifest import SetGates  # slow to start; most sets have no gates

    try:
        return SetGates.model_validate(opened.document.manifest.get("gates") or {})
    except ValidationError as error:
        raise BadInput(
            f"the gates in the set's manifest cannot be read: {error.errors()[0]['msg']}",
            where=Where(file=str(opened.files.document), field="gates"),
        ) from error


def baseline_of(opened: OpenedSet) -> str | None:
    """Give what the manifest calls its baseline; a folder is meant from the manifest's own."""
    named = opened.document.manifest.get("baseline")
    if not isinstance(named, str) or not named:
        return None
    file = opened.document.manifest_file
    beside = Path(file).parent / named if file is not None else Path(named)
    return str(beside) if beside.is_dir() else named


def check_distinct(base: OpenedSet, this: OpenedSet) -> None:
    """Refuse to compare a set with itself.

    Raises:
        BadInput: both are one set.
    """
    if base.root.resolve() == this.root.resolve():
        raise BadInput(
            f"{base.root} is this very set: it cannot be its own baseline",
            remedy="name an earlier set by its id or folder",
        )


def hold(
    opened: OpenedSet,
    read: ReadSet,
    results_dir: Path,
    *,
    baseline: str | None = None,
    gates: SetGates | None = None,
    metric: str | None = None,
    is_confident: bool = False,
) -> Held:
    """Hold a set against its gates, and compare it with its baseline. Blocking.

    Args:
        opened: the set.
        read: what was read of it, with digests.
        results_dir: where the baseline is looked for.
        baseline: in place of the manifest's.
        gates: in place of the manifest's.
        metric: that `read` is of; each pack's primary metric by default.
        is_confident: whether the worse ends of intervals must hold.

    Raises:
        BadInput: there is no such baseline, or the gates cannot be read.
    """
    from steelyard.evalset.report.report import read_set

    wanted = gates_of(opened) if gates is None and opened.document.manifest.get("gates") else gates
    named = baseline or baseline_of(opened)
    comparison = None
    if named is not None:
        base = find_set(named, results_dir, other_than=opened.root)
        check_distinct(base, opened)
        comparison = compare_sets(read_set(base, metric=metric, with_digests=True), read)
    results = (
        ()
        if wanted is None
        else tuple(judge_set(read.report, comparison, wanted, is_confident=is_confident))
    )
    warnings = () if comparison is None else comparison.warnings
    own = tuple(one for one in warnings if not one.startswith(THIS_SET))  # the report says these
    return Held(results, comparison, own)


def judge_set(
    report: SetReport,
    comparison: SetComparison | None,
    gates: SetGates,
    *,
    is_confident: bool = False,
) -> Iterator[GateResult]:
    """Judge every gate that is set."""
    if gates.min_score is not None:
        for row in report.agents:
            agent = str(row.names.agent)
            gate = Gate(MIN_SCORE, agent, row.metric, gates.min_score, is_confident)
            head, estimate = row.headline, row.estimate
            if head is None or estimate is None:
                said = f"{agent} has no score: {row.note or 'nothing was scored'}"
                yield GateResult(gate, is_met=False, found=None, said=said)
                continue
            label = f"{row.metric} {head['estimator']}"
            value, ends, note = estimate["value"], estimate["interval"], estimate["note"]
            judged = judged_value(
                gate, label, value, ends, note, higher=bool(head["higher_is_better"])
            )
            yield _marked(judged, (row.counted, row.planned))
    if gates.max_regression is not None:
        judged = _regression(comparison, gates.max_regression, is_confident=is_confident)
        yield _marked(judged, (report.whole.counted, report.whole.planned))
    if gates.max_cost_usd is not None:
        yield _cost(report, gates.max_cost_usd)


def _marked(result: GateResult, counted: tuple[int, int | None]) -> GateResult:
    """Say of a figure that it is not official, where an attempt is missing."""
    if result.found is None or counted[0] == counted[1]:
        return result
    partial = f"NOT official: {coverage_text(counted)} attempts count"
    return replace(result, said=f"{result.said}; {partial}")


def _regression(
    comparison: SetComparison | None,
    most: float,
    *,
    is_confident: bool,
    option: str = MAX_REGRESSION,
) -> GateResult:
    """Judge the combination that lost most; each must stay within the limit."""
    gate = Gate(option, "", "gain", -most, is_confident)
    if comparison is None:
        said = "there is no baseline to compare with"
        return GateResult(gate, is_met=False, found=None, said=said)
    untested = comparison.of(Verdict.UNTESTED)
    found: list[GateResult] = []
    for one in comparison.combinations:
        if one.difference is None:
            continue
        of = Gate(option, one.name, "gain", -most, is_confident)
        ends, note = one.difference.interval, one.difference.note
        found.append(judged_value(of, "the gain", one.difference.value, ends, note, higher=True))
    if not found:
        return GateResult(gate, is_met=False, found=None, said="nothing could be paired")
    missed = [result for result in found if not result.is_met]
    if missed:
        worst = min(missed, key=lambda result: result.found if result.found is not None else 0.0)
        more = f"; {len(missed)} of {len(found)} combinations" if len(missed) > 1 else ""
        return GateResult(worst.gate, is_met=False, found=worst.found, said=worst.said + more)
    if untested:
        said = f"not tested: {joined([one.name for one in untested])}"
        return GateResult(gate, is_met=False, found=None, said=said)
    worst = min(found, key=lambda result: result.found if result.found is not None else 0.0)
    return GateResult(gate, is_met=True, found=worst.found, said=f"at the worst {worst.said}")


def _cost(report: SetReport, most: float) -> GateResult:
    gate = Gate(MAX_COST, "", "cost_usd", most)
    spent = report.spent
    said = f"{dollars(spent.cost_usd, spent.known_usd)} of ${usd(most, 2)} spent"
    if spent.cost_usd is None:
        said += "; what a part cost is not known"
    is_met = spent.cost_usd is not None and spent.cost_usd <= most
    return GateResult(gate, is_met=is_met, found=spent.cost_usd, said=said)


def no_regression(comparison: SetComparison) -> GateResult:
    """Judge that no combination got worse by its test, and that there was one to test."""
    regressed = comparison.of(Verdict.REGRESSED)
    untested = comparison.of(Verdict.UNTESTED)
    tested = len(comparison.combinations) - len(untested)
    parts = [f"{len(regressed)} of {tested} combinations regressed"]
    for what, those in (("", regressed), ("not tested: ", untested)):
        if those:
            parts.append(f"{what}{joined([one.name for one in those])}")
    if comparison.removed:
        names = [" / ".join(filter(None, key)) for key in comparison.removed]
        parts.append(f"removed: {joined(names)}")
    is_met = not regressed and not untested and tested > 0 and not comparison.removed
    found = float(len(regressed))
    return GateResult(
        Gate(NO_REGRESSION, "", None), is_met=is_met, found=found, said="; ".join(parts)
    )


def coverage(comparison: SetComparison, *, allows_partial: bool) -> GateResult:
    """Judge that every planned attempt of the later set counts, whatever the base has.

    The tests are over what both have: of a set that broke off they say nothing of the rest.
    """
    counted, planned = comparison.now_counted
    is_whole = counted == planned
    said = f"{coverage_text(comparison.now_counted)} attempts count"
    if not is_whole:
        said += ": allowed" if allows_partial else "; `--allow-partial` lets that pass"
    if comparison.was_counted[0] != comparison.was_counted[1]:
        said += f"; {coverage_text(comparison.was_counted)} in the base"
    is_met = is_whole or allows_partial
    return GateResult(Gate(COVERAGE, "", None), is_met=is_met, found=float(counted), said=said)


def gates_given(
    max_regression: float | None,
    *,
    is_confident: bool,
    comparison: SetComparison,
    allows_partial: bool = False,
) -> Sequence[GateResult]:
    """Judge what a comparison was asked on the command line."""
    found = [no_regression(comparison), coverage(comparison, allows_partial=allows_partial)]
    if max_regression is not None:
        option = f"--max-regression {max_regression:g}"
        found.append(
            _regression(comparison, max_regression, is_confident=is_confident, option=option)
        )
    return found
