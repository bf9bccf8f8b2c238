"""`steelyard evalset status SET`: where a set stands, for people and programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import click

from steelyard.cli.options import output_options

if TYPE_CHECKING:
    from steelyard.components.issues import Outcome
    from steelyard.evalset.case_scores import Score
    from steelyard.evalset.standing import GroupStanding, SetStanding
    from steelyard.evalset.states import CellState

MOST_ROWS: Final = 40
"""Of the matrix; more is what `report` and `--json` are for."""
MOST_CODES: Final = 4
_REASON: Final = 300
"""Characters of why a set ended as it did; its cells say more."""


@click.command("status")
@click.argument("set_", metavar="SET")
@output_options
def status(set_: str, as_json: bool, debug: bool) -> int:
    """Say where SET stands: its cells, attempts, scores, cost, and what runs longest.

    SET is a set's folder, its id, its name, or `latest`.
    """
    from steelyard.cli.output import note, print_json, say
    from steelyard.cli.run_argument import results_dir
    from steelyard.evalset.find_set import find_set
    from steelyard.evalset.following import standing_of

    standing = standing_of(find_set(set_, results_dir()))
    if as_json:
        print_json(standing.as_json())
        return 0
    for line in standing_lines(standing):
        say(line)
    for warning in standing.warnings:
        note(f"warning: {warning}")
    return 0


def standing_lines(standing: SetStanding) -> Iterator[str]:
    """Lay out where a set stands."""
    from steelyard.cli.output import pairs_lines, table_lines
    from steelyard.cli.pace import duration

    yield title_line(standing)
    yield from pairs_lines(
        {
            "cells": f"{len(standing.cells)}: {states_text(standing.states)}",
            "attempts": attempts_text(standing),
            "cost": cost_text(standing),
        }
    )
    yield ""
    yield from _table(standing.agents)
    yield ""
    if len(standing.rows) <= MOST_ROWS:
        yield from _table(standing.rows)
    else:
        yield f"{len(standing.rows)} rows of the matrix: `--json`, `watch` and `report` have them"
    slowest = standing.slowest()
    if slowest:
        yield ""
        yield "running longest:"
        yield from table_lines(
            ("age", "cell", "case", "attempt", "phase", "for"),
            [
                (
                    duration(one.attempt.age_s),
                    one.matrix_key,
                    one.attempt.task_id,
                    one.attempt.attempt,
                    one.attempt.phase,
                    duration(one.attempt.phase_s),
                )
                for one in slowest
            ],
        )


def title_line(standing: SetStanding) -> str:
    """Name a set and say how it does, in one line."""
    from steelyard.cli.pace import duration
    from steelyard.config import printable

    facts = [standing.state.value, duration(standing.elapsed_s)]
    if standing.submission is not None and standing.submission.number > 1:
        facts[0] += f" ({standing.submission.kind}, submission {standing.submission.number})"
    if standing.left_s is not None:
        facts.append(f"ETA {'~' if standing.is_rough else ''}{duration(standing.left_s)}")
    if standing.submission is not None and standing.submission.reason:
        facts.append(_cut(standing.submission.reason))
    return printable.one_line(f"{standing.name} {standing.set_id}: {', '.join(facts)}")


def _cut(text: str) -> str:
    return text if len(text) <= _REASON else f"{text[:_REASON]}…"


def states_text(states: Mapping[CellState, int]) -> str:
    """Write how many cells are in each state."""
    return ", ".join(f"{n} {state.value}" for state, n in states.items()) or "none"


def attempts_text(standing: SetStanding) -> str:
    """Write what became of the attempts so far."""
    planned = "?" if standing.planned is None else str(standing.planned)
    parts = [f"{standing.ended} of {planned} ended"]
    if standing.running:
        parts.append(f"{standing.running} running")
    if standing.failed:
        codes = codes_text(standing.issues)
        parts.append(f"{standing.failed} failed{f' ({codes})' if codes else ''}")
    parts += undone_texts(standing.undone)
    return ", ".join(parts)


def undone_texts(undone: Mapping[Outcome, int]) -> list[str]:
    """Write how many attempts were given up without a result, and why: `4 skipped_budget`."""
    return [f"{n} {outcome.value}" for outcome, n in undone.items() if n]


def codes_text(issues: Mapping[str, int]) -> str:
    """Write the most frequent causes, each with its count."""
    shown = [f"{code} {n}" for code, n in list(issues.items())[:MOST_CODES]]
    if len(issues) > MOST_CODES:
        shown.append(f"{len(issues) - MOST_CODES} more codes")
    return ", ".join(shown)


def cost_text(standing: SetStanding) -> str:
    """Write what was spent, against the budget where there is one."""
    from steelyard.results.consumption import dollars
    from steelyard.results.figures import usd

    spent = dollars(standing.spent.cost_usd, standing.spent.known_usd)
    limit = standing.budget_usd
    return spent if limit is None else f"{spent} of ${usd(limit, 2)}"


def score_text(score: Score | None) -> str:
    """Write a score with its interval, or why it has none."""
    from steelyard.results.figures import figure

    return "–" if score is None else f"{figure(score.value)} {interval_of(score)}"


def interval_of(score: Score) -> str:
    """Write the interval of a score, or why it has none."""
    from steelyard.results.summary_text import interval_text

    ends = None if score.low is None or score.high is None else (score.low, score.high)
    return interval_text(ends, score.note, tasks=score.cases, clusters=score.clusters)


def _table(groups: Sequence[GroupStanding]) -> list[str]:
    """Lay out agents, or rows of the matrix; columns that say nothing are left out."""
    from steelyard.cli.output import table_lines
    from steelyard.evalset.standing import UNDONE_OUTCOMES
    from steelyard.evalset.states import CellState
    from steelyard.results.consumption import dollars
    from steelyard.results.figures import figure

    has_pack = any(group.pack is not None for group in groups)
    has_model = any(group.model is not None for group in groups)
    columns = ["pack"] * has_pack + ["agent"] + ["model"] * has_model
    undone = [o for o in UNDONE_OUTCOMES if any(group.undone.get(o) for group in groups)]
    columns += ["cells", "ended", "failed", *(o.value for o in undone)]
    columns += ["score", "95% interval", "cost"]
    rows = []
    for group in groups:
        completed = group.states.get(CellState.COMPLETED, 0)
        planned = "?" if group.planned is None else group.planned
        score = group.score
        rows.append(
            [
                *([group.pack] * has_pack),
                group.agent,
                *([group.model] * has_model),
                f"{completed}/{len(group.cells)}",
                f"{group.ended}/{planned}",
                group.failed,
                *(group.undone.get(outcome, 0) for outcome in undone),
                None if score is None else figure(score.value),
                None if score is None else interval_of(score),
                dollars(group.spent.cost_usd, group.spent.known_usd),
            ]
        )
    return table_lines(columns, rows)
