"""The matrix on a terminal: for every size nothing too wide, and nothing that lies."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from steelyard.cli.evalset_screen import compose_matrix
from steelyard.cli.evalset_status import standing_lines
from steelyard.cli.evalset_watch import cell_line
from steelyard.cli.screen import Charset
from steelyard.components.issues import Outcome
from steelyard.config import printable
from steelyard.engine.events import Underway
from steelyard.evalset.case_scores import Score
from steelyard.evalset.expansion import Cell
from steelyard.evalset.set_document import PinnedAgent, PinnedPack, SetCell
from steelyard.evalset.standing import (
    CellStanding,
    GroupStanding,
    SetStanding,
    counted_states,
    planned_of,
    spent_of,
    undone_of,
)
from steelyard.evalset.states import CellState, SetState

SURE = Score(0.6, 0.231, 0.882, 5, 5, 5)


def cell(
    index: int = 0,
    state: CellState = CellState.COMPLETED,
    *,
    pack: str = "refunds",
    agent: str = "base",
    repeat: int = 1,
    planned: int | None = 5,
    outcomes: Mapping[Outcome, int] | None = None,
    score: Score | None = SURE,
    slowest: tuple[Underway, ...] = (),
    reason: str | None = None,
) -> CellStanding:
    key = f"{pack}/{agent}/{repeat}"
    one = Cell(index, key, pack, agent, None, None, repeat, 1)
    set_cell = SetCell(
        index, f"{index:04d}", one, PinnedPack(pack, pack, 1, "", "", ""),
        PinnedAgent(agent, agent, "", None, ""),
    )  # fmt: skip
    return CellStanding(
        set_cell, state, Path("run"), planned, outcomes or {Outcome.SCORED: 5}, slowest=slowest,
        score=score, reason=reason,
    )  # fmt: skip


def standing(
    *cells: CellStanding, state: SetState = SetState.RUNNING, warnings: tuple[str, ...] = ()
) -> SetStanding:
    rows: dict[tuple[str, str], list[int]] = {}
    for place, one in enumerate(cells):
        rows.setdefault((one.cell.pack.slug, one.cell.agent.shown), []).append(place)
    groups = tuple(
        GroupStanding(
            pack, agent, None, tuple(places), counted_states(own), planned_of(own),
            sum(one.ended for one in own), sum(one.failed for one in own), spent_of(own), SURE,
            undone_of(own),
        )
        for (pack, agent), places in rows.items()
        for own in ([cells[place] for place in places],)
    )  # fmt: skip
    return SetStanding(
        "id", "nightly", Path("root"), state, None, tuple(cells), groups, groups, spent_of(cells),
        75.0, 60.0, warnings=warnings,
    )  # fmt: skip


def text(shown: SetStanding, width: int = 100, height: int = 30) -> list[str]:
    lines = compose_matrix(shown, width, height, Charset.UNICODE)
    return ["".join(span.text for span in line) for line in lines]


def test_where_there_is_room_each_cell_has_its_score_with_its_interval() -> None:
    lines = text(standing(cell(), cell(1, CellState.RUNNING, repeat=2, score=SURE)), 120)
    row = next(line for line in lines if line.startswith("refunds"))
    assert row.count("0.600 [0.231, 0.882]") == 2  # the row's, and that of the one that has ended
    assert row.rstrip().endswith("5/5")


def test_where_room_is_short_cells_become_counts_then_letters_then_numbers() -> None:
    cells = [cell(number, repeat=number + 1) for number in range(8)]
    cells[3] = cell(3, CellState.FAILED, repeat=4, outcomes={Outcome.SCORED: 2})
    row = next(line for line in text(standing(*cells), 100) if line.startswith("refunds"))
    assert row.split()[-8:] == ["5/5", "5/5", "5/5", "F2/5", "5/5", "5/5", "5/5", "5/5"]
    assert any("cccFcccc" in line for line in text(standing(*cells), 60))
    many = [cell(number, repeat=number + 1) for number in range(100)]
    assert any("100c" in line for line in text(standing(*many), 60))


def test_two_thousand_cells_fit_the_screen_and_those_that_run_are_shown_first() -> None:
    cells = [
        cell(index, CellState.PENDING, pack=f"p{index // 10}", repeat=index % 10 + 1, score=None)
        for index in range(2_000)
    ]
    cells[1_500] = cell(1_500, CellState.RUNNING, pack="p150", repeat=1)
    lines = text(standing(*cells), 80, 24)
    assert len(lines) <= 24
    assert any(line.startswith("p150 ") for line in lines)
    assert any("more rows" in line for line in lines)
    assert any("1999 pending" in line for line in lines)


def test_the_last_lines_say_what_fails_and_what_runs_longest() -> None:
    slow = Underway("t7", 2, "run", 30.0, 70.0)
    one = cell(0, CellState.RUNNING, slowest=(slow,))
    shown = "\n".join(text(standing(one, warnings=("runs are gone",))))
    assert "running longest" in shown
    assert "refunds/base/1 t7 #2" in shown
    assert "warning: runs are gone" in shown


def test_the_status_of_a_set_is_what_it_was_agreed_to_be() -> None:
    slow = Underway("t7", 2, "run", 30.0, 70.0)
    cells = (
        cell(),
        cell(1, CellState.RUNNING, repeat=2, outcomes={Outcome.SCORED: 2}, slowest=(slow,)),
        cell(2, CellState.FAILED, agent="new", outcomes={Outcome.FAILED_FATAL: 1}, planned=None),
    )
    assert list(standing_lines(standing(*cells)))[:8] == [
        "nightly id: running, 1m15s, ETA 1m00s",
        "  cells     3: 1 running, 1 completed, 1 failed",
        "  attempts  8 of ? ended, 1 failed",
        "  cost      $0",
        "",
        "pack     agent  cells  ended  failed  score  95% interval    cost",
        "refunds  base   1/2    7/10        0  0.600  [0.231, 0.882]  $0",
        "refunds  new    0/1    1/?         1  0.600  [0.231, 0.882]  $0",
    ]
    assert list(standing_lines(standing(*cells)))[-3:] == [
        "running longest:",
        "age    cell            case  attempt  phase  for",
        "1m10s  refunds/base/2  t7          2  run    30s",
    ]


def test_attempts_that_were_given_up_stand_beside_those_that_ended() -> None:
    halted = {Outcome.SCORED: 1, Outcome.SKIPPED_BUDGET: 4}
    cells = (
        cell(0, CellState.SKIPPED_BUDGET, outcomes=halted),
        cell(1, CellState.SKIPPED_BUDGET, agent="new", outcomes={Outcome.SKIPPED_BUDGET: 5}),
    )
    lines = list(standing_lines(standing(*cells, state=SetState.BUDGET_EXCEEDED)))
    assert lines[2] == "  attempts  1 of 10 ended, 9 skipped_budget"
    assert [line.split()[:6] for line in lines[5:8]] == [
        ["pack", "agent", "cells", "ended", "failed", "skipped_budget"],
        ["refunds", "base", "0/1", "1/5", "0", "4"],
        ["refunds", "new", "0/1", "0/5", "0", "5"],
    ]


def test_a_cells_line_says_its_state_score_and_why() -> None:
    halted = {Outcome.SCORED: 1, Outcome.SKIPPED_BUDGET: 4}
    one = cell(0, CellState.SKIPPED_BUDGET, outcomes=halted, reason="the budget\nis spent")
    assert cell_line(one) == (
        "refunds/base/1: skipped_budget, 1/5 ended, 4 skipped_budget, score 0.600 [0.231, 0.882], "
        "the budget\\nis spent"
    )


NAMES = st.text(min_size=1, max_size=40).filter(str.strip)
CELLS = st.lists(
    st.builds(
        cell,
        st.integers(0, 9),
        st.sampled_from(CellState),
        pack=NAMES,
        agent=NAMES,
        repeat=st.integers(1, 12),
        planned=st.none() | st.integers(0, 10**6),
        outcomes=st.dictionaries(st.sampled_from(Outcome), st.integers(0, 10**6)),
        score=st.none() | st.just(SURE),
        slowest=st.lists(
            st.builds(
                Underway, NAMES, st.integers(1, 9), NAMES, st.floats(0, 1e6), st.floats(0, 1e6)
            ),
            max_size=3,
        ).map(tuple),
    ),
    max_size=30,
)


@settings(max_examples=200, deadline=None)
@given(
    cells=CELLS,
    state=st.sampled_from(SetState),
    warnings=st.lists(NAMES, max_size=3).map(tuple),
    width=st.integers(1, 200),
    height=st.integers(1, 60),
    charset=st.sampled_from(Charset),
)
def test_no_line_is_too_wide_and_there_are_never_too_many(
    cells: list[CellStanding],
    state: SetState,
    warnings: tuple[str, ...],
    width: int,
    height: int,
    charset: Charset,
) -> None:
    shown = standing(*cells, state=state, warnings=warnings)
    lines = compose_matrix(shown, width, height, charset)
    assert 1 <= len(lines) <= height
    for line in lines:
        drawn = "".join(span.text for span in line)
        assert cell_len(drawn) <= width
        assert printable.one_line(drawn) == drawn
        assert charset is Charset.UNICODE or drawn.isascii()
    for plain in standing_lines(shown):
        assert printable.one_line(plain) == plain
