"""Comparisons as the document `compare/1`. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum
from typing import Any, Final

from steelyard.results.comparison import Compared, Difference, ExactTest, side_estimate
from steelyard.results.scores import LEVEL
from steelyard.results.task_table import RunTable
from steelyard.stats.paired import Tally

COMPARE_SCHEMA: Final = "compare/1"
_DIGITS: Final = 12


def comparison_json(
    found: Sequence[Compared], gates: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Give the document `compare/1`."""
    first = found[0]
    return {
        "schema": COMPARE_SCHEMA,
        "metric": first.asked.metric,
        "estimator": first.asked.label,
        "kind": first.asked.spec.kind,
        "higher_is_better": first.asked.spec.higher_is_better,
        "base": _side_json(first.first),
        "comparisons": [_compared_json(each) for each in found],
        "gates": list(gates),
    }


def _side_json(table: RunTable) -> dict[str, Any]:
    usage = table.metrics["usage"]
    return {
        "run": str(table.root),
        "run_id": table.run_id,
        "request": table.request,
        "outcome": table.metrics["outcome"],
        "k": table.tally.k,
        "is_official": table.tally.is_official,
        "planned": table.tally.planned_attempts,
        "counted": table.tally.counted_attempts,
        "cost_usd": usage["cost_usd"],
        "known_cost_usd": usage["known_cost_usd"],
        "agent_s": fsum(facts.agent_s for facts in table.facts.values()),
    }


def _compared_json(each: Compared) -> dict[str, Any]:
    return {
        **_side_json(each.second),
        "estimator": each.asked.label,
        "base_estimate": side_estimate(each, 0),
        "estimate": side_estimate(each, 1),
        "difference": difference_json(each.difference),
        "is_difference_official": each.is_official,
        "bounds": None if each.bounds is None else list(map(_rounded, each.bounds)),
        "test": {**test_json(each.test), "p_holm": _rounded(each.p_holm)},
        "minimum_detectable": _rounded(each.detectable),
        **_tally_json(each.tally),
        "only_base": list(each.only_first),
        "only_this": list(each.only_second),
        "different_content": list(each.common.differing),
        "without_figure": each.unpaired,
        "categories": {
            name: {**difference_json(difference), **_tally_json(tally)}
            for name, (difference, tally) in each.categories.items()
        },
        "cost_usd_per_attempt": None if each.cost_usd is None else difference_json(each.cost_usd),
        "agent_s_per_attempt": None if each.agent_s is None else difference_json(each.agent_s),
        "tasks": [
            {
                "task_id": pair.task_id,
                "base": _rounded(pair.first),
                "this": _rounded(pair.second),
                "difference": _rounded(pair.difference),
                "category": pair.category,
            }
            for pair in each.pairs
        ],
        "warnings": list(each.warnings),
    }


def difference_json(difference: Difference) -> dict[str, Any]:
    """Give a difference's form."""
    interval = difference.interval
    return {
        "value": _rounded(difference.value),
        "standard_error": _rounded(difference.standard_error),
        "interval": None if interval is None else list(map(_rounded, interval)),
        "level": LEVEL,
        "tasks": difference.tasks,
        "clusters": difference.clusters,
        "note": difference.note,
    }


def test_json(test: ExactTest) -> dict[str, Any]:
    """Give a test's form."""
    return {
        "name": test.name,
        "p": _rounded(test.p),
        "is_exact": test.p is not None and test.resamples is None,
        "resamples": test.resamples,
        "standard_error": _rounded(test.standard_error),
        "note": test.note,
    }


def _tally_json(tally: Tally) -> dict[str, int]:
    return {"wins": tally.wins, "ties": tally.ties, "losses": tally.losses}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, _DIGITS)
