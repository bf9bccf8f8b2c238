"""Whether a set runs, and how its latest submission ended: read again only where it changed."""

from __future__ import annotations

from steelyard.evalset.set_reader import OpenedSet, SetUnreadable
from steelyard.evalset.states import SetState
from steelyard.evalset.submissions import Submission
from steelyard.evalset.watched_cell import Mark, mark_of


class StateFollower:
    """Looks at a set's lock and submissions whenever it is asked to."""

    def __init__(self, opened: OpenedSet) -> None:
        self._opened = opened
        self._folder: Mark = None
        self._submissions: tuple[Submission, ...] = ()
        self.damage: str | None = None
        """What was wrong with the files."""

    def look(self) -> tuple[SetState, Submission | None]:
        """Say where the set stands, and what was asked of it last."""
        # The lock first: what ends meanwhile has written how before it let go.
        is_running = self._is_running()
        self._read_submissions()
        last = self._submissions[-1] if self._submissions else None
        if is_running:
            return SetState.RUNNING, last
        if last is not None and last.outcome is not None:
            return SetState(last.outcome.value), last
        # It may have been resumed between the two looks.
        return SetState.RUNNING if self._is_running() else SetState.INTERRUPTED, last

    def _is_running(self) -> bool:
        try:
            return self._opened.is_running()
        except OSError as error:
            self.damage = f"lock: {error.strerror or error}"
            return False

    def _read_submissions(self) -> None:
        mark = mark_of(self._opened.files.submissions)
        if mark == self._folder and mark is not None:
            return
        self.damage = None
        try:
            self._submissions = tuple(self._opened.submissions())
            self._folder = mark
        except SetUnreadable as error:
            self._submissions = ()
            self.damage = error.problems[0].message
