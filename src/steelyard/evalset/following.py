"""Follow a set: where it stands, looked at again and again, and read only where it changed.

2,000 cells that rest cost one look at a folder each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from steelyard.components.clock import Clock, SystemClock
from steelyard.engine.pace import ROUGH_BELOW, Pace
from steelyard.evalset.case_scores import Score, score_over
from steelyard.evalset.findings import ScanSpending
from steelyard.evalset.set_document import SetCell
from steelyard.evalset.set_reader import OpenedSet
from steelyard.evalset.standing import (
    CellStanding,
    GroupStanding,
    SetStanding,
    counted_states,
    planned_of,
    shown_packs,
    spent_of,
    undone_of,
)
from steelyard.evalset.state_following import StateFollower
from steelyard.evalset.states import CellState, SetState
from steelyard.evalset.submissions import Submission
from steelyard.evalset.watched_cell import Mark, WatchedCell, mark_of
from steelyard.results.consumption import Spending

_UNENDED: Final = (CellState.PENDING, CellState.RUNNING)
_GroupKey = tuple[str | None, str, str | None]
_Counted = tuple[tuple[CellStanding, ...], tuple[GroupStanding, ...], tuple[GroupStanding, ...]]


class SetFollower:
    """Looks at a set whenever it is asked to; one object for one follower."""

    def __init__(self, opened: OpenedSet, *, clock: Clock | None = None) -> None:
        self._opened = opened
        self._clock: Clock = clock or SystemClock()
        self._document: Mark = mark_of(opened.files.document)
        self._cells = [WatchedCell(cell) for cell in opened.cells]
        self._state = StateFollower(opened)
        self._pace = Pace()
        self._began: tuple[int, float, float] | None = None
        """Of the submission that is timed: its number, seconds it had taken, monotonic then."""
        self._died: tuple[int, float] | None = None
        """Of a submission whose process died: its number, and the seconds until it did."""
        self._scores: dict[_GroupKey, Score | None] = {}
        self._last: _Counted | None = None
        """What was counted when anything had last changed."""
        self._waiting: frozenset[int] = frozenset()
        """Places of the cells that the submission under way has yet to begin again."""
        self._scans: Mark = None
        self._judges = ScanSpending(opened.files)
        self.changed: tuple[int, ...] = ()
        """Places of the cells that differ from what was seen before."""

    def look(self) -> SetStanding:
        """Say where the set stands now.

        Raises:
            SetUnreadable: its `evalset.json` is gone or damaged.
        """
        self._read_document()
        # The lock first: what ends meanwhile has written how before it let go.
        state, submission = self._state.look()
        read = [place for place, one in enumerate(self._cells) if one.look(self._opened)]
        waiting = self._waiting_again(submission, state)
        changed = sorted(
            (waiting ^ self._waiting).union(place for place in read if self._cells[place].has_news)
        )
        self.changed = tuple(changed)
        if read or waiting != self._waiting or self._last is None:
            self._waiting = waiting
            self._last = self._counted(changed)
        cells, rows, agents = self._last
        elapsed_s = self._elapsed_s(submission, state)
        left_s, is_rough = self._left(cells, submission, elapsed_s, state)
        return SetStanding(
            set_id=self._opened.set_id,
            name=self._opened.name,
            root=self._opened.root,
            state=state,
            submission=submission,
            cells=cells,
            rows=rows,
            agents=agents,
            spent=spent_of(cells) + self._judges_spent(),
            elapsed_s=elapsed_s,
            left_s=left_s,
            is_rough=is_rough,
            warnings=tuple(self._warnings(cells, state)),
        )

    def _read_document(self) -> None:
        mark = mark_of(self._opened.files.document)
        if mark == self._document:
            return
        self._opened = OpenedSet(self._opened.root)  # cells were added
        self._document = mark
        known = {repr(one.cell): one for one in self._cells}  # unhashable where edited by hand
        self._cells = [known.get(repr(cell)) or WatchedCell(cell) for cell in self._opened.cells]
        self._scores.clear()
        self._last = None

    def _waiting_again(self, submission: Submission | None, state: SetState) -> frozenset[int]:
        """Give the places of cells that are to run again, and whose newest run is an older one."""
        if submission is None or state is not SetState.RUNNING or submission.number < 2:
            return frozenset()
        asked = set(submission.cells)
        return frozenset(
            place
            for place, one in enumerate(self._cells)
            if one.cell.index in asked
            and one.began_at < submission.began_at
            and one.standing.state not in _UNENDED
        )

    def _judges_spent(self) -> Spending:
        mark = mark_of(self._opened.files.scans)
        if mark != self._scans:
            self._scans = mark
            self._judges.read_on()
        return self._judges.total

    def _warnings(self, cells: Sequence[CellStanding], state: SetState) -> list[str]:
        found = [] if self._state.damage is None else [self._state.damage]
        found += [one.warning for one in self._cells if one.warning is not None]
        if state is SetState.COMPLETED:
            gone = [cell.cell.matrix_key for cell in cells if cell.state is CellState.PENDING]
            if gone:
                more = f" and {len(gone) - 1} more" if len(gone) > 1 else ""
                found.append(f"runs are gone, pruned perhaps: {gone[0]}{more}")
        return found

    # -- time ----------------------------------------------------------------------------------

    def _elapsed_s(self, submission: Submission | None, state: SetState) -> float:
        """Seconds of the submission: by the wall clock at first, then by the steady one."""
        if submission is None:
            return 0.0
        now_s = self._clock.monotonic()
        if self._began is None or self._began[0] != submission.number:
            taken_s = _seconds_between(submission.began_at, self._clock.now())
            self._began = submission.number, taken_s, now_s
            self._pace = Pace()
        if state is not SetState.RUNNING and submission.ended_at is not None:
            ended = _moment(submission.ended_at)
            return 0.0 if ended is None else _seconds_between(submission.began_at, ended)
        if state is SetState.INTERRUPTED:
            if self._died is None or self._died[0] != submission.number:
                self._died = submission.number, self._lived_s(submission)
            return self._died[1]
        return max(0.0, self._began[1] + now_s - self._began[2])

    def _lived_s(self, submission: Submission) -> float:
        """Give the seconds until a dead process last wrote: nothing says when it died."""
        signs_ns = [
            sign_ns
            for one in self._cells
            if one.began_at >= submission.began_at and (sign_ns := one.last_sign_ns()) is not None
        ]
        if not signs_ns:
            return 0.0
        last = datetime.fromtimestamp(max(signs_ns) / 1e9, UTC)
        return _seconds_between(submission.began_at, min(last, self._clock.now()))

    def _left(
        self,
        cells: Sequence[CellStanding],
        submission: Submission | None,
        elapsed_s: float,
        state: SetState,
    ) -> tuple[float | None, bool]:
        """Say how long it will still take, and whether that is a guess."""
        if submission is None or state is not SetState.RUNNING:
            return None, False
        asked = set(submission.cells)
        fresh, left, is_known = 0, 0, True
        for one, cell in zip(self._cells, cells, strict=True):
            if cell.cell.index not in asked:
                continue
            is_of_this = one.began_at >= submission.began_at
            if is_of_this:
                fresh += max(0, cell.ended - cell.reused)
            if cell.state in _UNENDED or not is_of_this:
                if cell.planned is None:
                    is_known = False
                else:
                    left += max(0, cell.planned - cell.ended)
        self._pace.see(elapsed_s, fresh, is_running=any(cell.running for cell in cells))
        if not is_known:
            return None, False
        return self._pace.left_s(left), self._pace.ended < ROUGH_BELOW

    # -- groups --------------------------------------------------------------------------------

    def _counted(self, changed: Sequence[int]) -> _Counted:
        """Give the cells, the rows of the matrix and the agents, after some cells have changed."""
        found = [
            replace(one.standing, state=CellState.PENDING, reason=None)
            if place in self._waiting
            else one.standing
            for place, one in enumerate(self._cells)
        ]
        cells = tuple(_with_planned(found))
        names = shown_packs([one.cell for one in self._cells])
        dirty = {key for place in changed for key in _keys(self._cells[place].cell)}
        rows = self._groups(cells, names, dirty, by_pack=True)
        return cells, rows, self._groups(cells, names, dirty, by_pack=False)

    def _groups(
        self,
        cells: Sequence[CellStanding],
        names: dict[str, str],
        dirty: set[_GroupKey],
        *,
        by_pack: bool,
    ) -> tuple[GroupStanding, ...]:
        places: dict[_GroupKey, list[int]] = {}
        for place, cell in enumerate(cells):
            places.setdefault(_keys(cell.cell)[0 if by_pack else 1], []).append(place)
        return tuple(self._group(key, found, cells, names, dirty) for key, found in places.items())

    def _group(
        self,
        key: _GroupKey,
        places: Sequence[int],
        cells: Sequence[CellStanding],
        names: dict[str, str],
        dirty: set[_GroupKey],
    ) -> GroupStanding:
        if key in dirty or key not in self._scores:
            self._scores[key] = score_over(
                (self._cells[place].cell.pack.ref, scores)
                for place in places
                if (scores := self._cells[place].scores) is not None
            )
        own = [cells[place] for place in places]
        pack, agent, model = key
        return GroupStanding(
            pack=None if pack is None else names.get(pack, pack),
            agent=agent,
            model=model,
            cells=tuple(places),
            states=counted_states(own),
            planned=planned_of(own),
            ended=sum(cell.ended for cell in own),
            failed=sum(cell.failed for cell in own),
            spent=spent_of(own),
            score=self._scores[key],
            undone=undone_of(own),
        )


def standing_of(opened: OpenedSet, *, clock: Clock | None = None) -> SetStanding:
    """Say where a set stands, once.

    Raises:
        SetUnreadable: its `evalset.json` is gone or damaged.
    """
    return SetFollower(opened, clock=clock).look()


def _keys(cell: SetCell) -> tuple[_GroupKey, _GroupKey]:
    """Give a cell's row of the matrix, and its agent."""
    agent, model = cell.agent.shown, cell.cell.model_ref
    return (cell.pack.ref, agent, model), (None, agent, model)


def _with_planned(cells: Sequence[CellStanding]) -> list[CellStanding]:
    """Fill in what cells that have not loaded their tasks will have: as others of their pack."""
    known = {cell.cell.pack.uuid: cell.planned for cell in cells if cell.planned is not None}
    return [
        cell
        if cell.planned is not None or cell.cell.pack.uuid not in known
        else replace(cell, planned=known[cell.cell.pack.uuid])
        for cell in cells
    ]


def _moment(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo is not None else None


def _seconds_between(began: str, ended: datetime) -> float:
    """Give the seconds from one moment to another; 0 where a clock was set back between them."""
    start = _moment(began)
    return 0.0 if start is None else max(0.0, (ended - start).total_seconds())
