"""The one way to read a run: while it goes on, after it ended, after it died.

Memory does not grow with what records hold: a digest and a number are kept for each attempt.
Readers stop at the last valid line of a file and say so in `warnings`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from steelyard.components.analyzer import FinishedAttempt
from steelyard.components.issues import Outcome
from steelyard.components.steps import Step
from steelyard.components.values import Usage
from steelyard.results.documents import (
    FutureSchema,
    RunUnreadable,
    part,
    read_run_document,
)
from steelyard.results.index import KNOWN_ATTEMPT_SCHEMAS, AttemptIndex, attempt_key
from steelyard.results.journal import EventKind
from steelyard.results.json_values import count, text
from steelyard.results.layout import RunFiles
from steelyard.results.lines import Damage, DamageKind, LineFile
from steelyard.results.lock import OwnerIdentity, is_alive, read_owner
from steelyard.results.records import AttemptRecord
from steelyard.results.records_io import MalformedRecord, record_from_json
from steelyard.results.step_log import usage_so_far
from steelyard.results.trajectory_reader import read_steps, read_text

KNOWN_EVENT_SCHEMAS: Final = {"event": 1}


class RunState(StrEnum):
    """Where a run stands."""

    RUNNING = "running"
    """Its owner holds the lock."""
    FINISHED = "finished"
    """Its journal ends with the outcome."""
    DEAD = "dead"
    """Its owner ended without saying how."""


@dataclass(frozen=True, slots=True)
class InFlight:
    """An execution whose intent is in the journal and whose record is not."""

    task_id: str
    attempt: int
    execution: int
    token: str
    """By which what it left behind can be found."""
    started_at: str
    earlier_usage: Usage | None = None
    """What the executions before it consumed; None where it is the first."""
    is_waiting: bool = False
    """True where it has ended and another one was to follow: only `earlier_usage` was spent."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """What became of every planned attempt; `outcomes` and `in_flight` add up to `planned`."""

    planned: int
    """Tasks x k; at least what the journal names, where `planned` itself was not written."""
    outcomes: Mapping[Outcome, int]
    """`not_started` is what is left over. In a run that is not running, what was in flight
    counts as `cancelled`: it was begun, and nothing says how it ended."""
    in_flight: int
    """0 unless the run is running."""

    def as_json(self) -> dict[str, int]:
        """Give every outcome, those with 0 too."""
        return {outcome.value: self.outcomes.get(outcome, 0) for outcome in Outcome}


class RunReader:
    """A run directory, opened for reading only.

    It is a view of the moment it was made: open another to see what was added since, or `tail`.
    """

    def __init__(self, root: Path) -> None:
        """Read `run.json`.

        Raises:
            RunUnreadable: this is no run.
            FutureSchema: a newer version wrote it.
        """
        self.root = root
        self.files = RunFiles(root)
        self.document = read_run_document(root)
        self._warnings: dict[str, None] = {}
        # Asked first: a run that ends meanwhile is then read to its end or called running, and
        # never called dead.
        self._was_alive = self._is_alive()

    @property
    def run_id(self) -> str:
        """The run's id."""
        return str(self.document.get("run_id", self.root.name))

    @property
    def plan(self) -> Mapping[str, Any]:
        """`{k, strategy, early_stop}` as `run.json` has it."""
        return part(self.document, "plan")

    @property
    def owner(self) -> OwnerIdentity | None:
        """Who owns or owned it."""
        return read_owner(self.files.lock)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was wrong with the files read so far; complete after `ledger`."""
        return tuple(self._warnings)

    @cached_property
    def state(self) -> RunState:
        """Where the run stood when it was opened."""
        if self._was_alive:
            return RunState.RUNNING
        return RunState.FINISHED if self.finished is not None else RunState.DEAD

    @cached_property
    def finished(self) -> Mapping[str, Any] | None:
        """The last event, `{outcome, counts, reason}`; None where the run has none."""
        return self._event_facts[1]

    @cached_property
    def in_flight(self) -> tuple[InFlight, ...]:
        """Executions with an intent and without a record, in the order they began."""
        return self._event_facts[2]

    def spent_in_flight(self, flight: InFlight) -> Usage | None:
        """Give what an execution without a record has consumed so far; None where unknown.

        At least that much: a call under way when the run died is not in it. Known only of agents
        whose steps are recorded as they happen.
        """
        if flight.is_waiting:
            return flight.earlier_usage
        usage = usage_so_far(self.root, flight.task_id, flight.attempt)
        if flight.earlier_usage is None or usage is None:
            return usage or flight.earlier_usage
        return flight.earlier_usage + usage

    @cached_property
    def ledger(self) -> Ledger:
        """Count what became of every planned attempt."""
        return self._ledger(is_running=self.state is RunState.RUNNING)

    @cached_property
    def settled_ledger(self) -> Ledger:
        """The same as if the run were over; does not depend on who holds the lock."""
        return self._ledger(is_running=False)

    def _ledger(self, *, is_running: bool) -> Ledger:
        outcomes = self._index.outcomes()
        recorded = len(self._index)
        flying = len(self.in_flight)
        planned = max(self._event_facts[0], recorded + flying)
        outcomes[Outcome.NOT_STARTED] += planned - recorded - flying
        if not is_running:
            outcomes[Outcome.CANCELLED] += flying
        return Ledger(planned, dict(outcomes), flying if is_running else 0)

    def events(self) -> Iterator[dict[str, Any]]:
        """Iterate over the events, in order.

        Raises:
            FutureSchema: a newer version wrote the file.
            RunUnreadable: it cannot be read.
        """
        scan = LineFile(self.files.events, known=KNOWN_EVENT_SCHEMAS)
        try:
            for _, event in scan:
                yield event
        except OSError as error:
            raise _unreadable(self.files.events, error) from error
        self._note(self.files.events, scan.damage)

    def records(
        self, where: Callable[[AttemptRecord], bool] | None = None
    ) -> Iterator[AttemptRecord]:
        """Iterate over the records, in the order they were written, one an attempt.

        A line that is whole but no record is left out, with a warning.

        Args:
            where: keeps those for which it is true.

        Raises:
            FutureSchema: a newer version wrote the file.
        """
        for data in self._raw_records():
            try:
                record = record_from_json(data)
            except MalformedRecord as error:
                self._warn(f"task {data.get('task_id')!r}, attempt {data.get('attempt')}: {error}")
                continue
            if where is None or where(record):
                yield record

    def _raw_records(self) -> Iterator[dict[str, Any]]:
        try:
            yield from self._index.raw_records()
        except OSError as error:
            raise _unreadable(self.files.attempts, error) from error

    def page(
        self,
        offset: int,
        limit: int,
        where: Callable[[AttemptRecord], bool] | None = None,
    ) -> list[AttemptRecord]:
        """Give at most `limit` records, leaving out the first `offset` of those that match."""
        found: list[AttemptRecord] = []
        for number, record in enumerate(self.records(where)):
            if len(found) >= limit:
                break
            if number >= offset:
                found.append(record)
        return found

    def record(self, task_id: str, attempt: int) -> AttemptRecord | None:
        """Read one record; None where there is none.

        Raises:
            MalformedRecord: its line cannot be used.
        """
        return self._index.record(task_id, attempt)

    def steps(self, attempt: FinishedAttempt) -> Iterator[Step]:
        """Iterate over an attempt's trajectory, in bounded memory; empty where it has none.

        Raises:
            TrajectoryUnreadable: it is missing, damaged, or not what the record says.
        """
        return read_steps(self.root, attempt.trajectory)

    def answer_text(self, attempt: FinishedAttempt, *, max_bytes: int) -> str | None:
        """Give an answer's beginning, wherever it lies; None where there is none to be read."""
        if attempt.answer is not None:
            return attempt.answer.encode("utf-8", "replace")[:max_bytes].decode("utf-8", "ignore")
        if attempt.answer_file is None:
            return None
        return read_text(self.root, attempt.answer_file, max_bytes=max_bytes)

    def tail(self, position: int = 0) -> tuple[list[AttemptRecord], int]:
        """Read what was added to the records since `position`.

        A line that is being written now is left for the next call.

        Returns:
            The new records, and the position to go on from.
        """
        scan = LineFile(self.files.attempts, known=KNOWN_ATTEMPT_SCHEMAS, start=position)
        found: list[AttemptRecord] = []
        try:
            for _, data in scan:
                try:
                    found.append(record_from_json(data))
                except MalformedRecord as error:
                    self._warn(f"{data.get('task_id')!r}: {error}")
        except OSError as error:
            raise _unreadable(self.files.attempts, error) from error
        return found, scan.end

    @cached_property
    def _index(self) -> AttemptIndex:
        try:
            index = AttemptIndex(self.files.attempts)
        except OSError as error:
            raise _unreadable(self.files.attempts, error) from error
        self._note(self.files.attempts, index.damage)
        if index.malformed:
            self._warn(f"attempts.jsonl: {index.malformed} lines name no attempt")
        return index

    @cached_property
    def _event_facts(self) -> tuple[int, Mapping[str, Any] | None, tuple[InFlight, ...]]:
        """(planned attempts, the finished event, what is in flight), in one pass.

        Records are read first, so that only what is in flight has to be kept.
        """
        index = self._index
        planned = 0
        finished: Mapping[str, Any] | None = None
        started: dict[bytes, InFlight] = {}
        for event in self.events():
            kind = event.get("kind")
            if kind == EventKind.STARTED:
                if _is_recorded(event, index):
                    continue
                flight = _flight(event)
                if flight is None:
                    self._warn(f"events.jsonl: event {event.get('seq')} names no attempt")
                    continue
                key = attempt_key(flight.task_id, flight.attempt)
                if key not in index:
                    before = started.get(key)
                    spent = None if before is None else before.earlier_usage
                    started[key] = replace(flight, earlier_usage=spent)
            elif kind == EventKind.RETRY:
                waiting = _waiting(event)
                if waiting is not None:
                    key = attempt_key(waiting.task_id, waiting.attempt)
                    if key not in index:
                        started[key] = waiting
            elif kind == EventKind.PLANNED:
                planned = _planned(event)
            elif kind == EventKind.FINISHED:
                finished = event
        return planned, finished, tuple(started.values())

    def _is_alive(self) -> bool:
        try:
            return is_alive(self.files.lock)
        except OSError as error:
            self._warn(f"lock: {error.strerror or error}")
            return False

    def _note(self, path: Path, damage: Damage | None) -> None:
        if damage is None:
            return
        if damage.kind is DamageKind.FUTURE:
            raise FutureSchema(path, damage.detail)
        if damage.kind is DamageKind.TORN and self._was_alive:
            return  # the line is being written
        self._warn(f"{path.name}: {damage}; what follows is not used")

    def _warn(self, message: str) -> None:
        self._warnings[message] = None


def _planned(event: Mapping[str, Any]) -> int:
    try:
        return count(count(event.get("tasks")) * count(event.get("k", 1)))
    except (TypeError, ValueError):
        return 0


def _waiting(event: Mapping[str, Any]) -> InFlight | None:
    """Read an execution that another one was to follow."""
    flight = _flight(event)
    if flight is None:
        return None
    try:
        usage = Usage.from_json(event["usage"])
    except (KeyError, TypeError, ValueError, OverflowError):
        usage = Usage(cost_usd=None)
    return replace(flight, earlier_usage=usage, is_waiting=True)


def _is_recorded(event: Mapping[str, Any], index: AttemptIndex) -> bool:
    """True where the attempt of a `started` event has a record: nearly always."""
    task_id, attempt = event.get("task_id"), event.get("attempt")
    if not isinstance(task_id, str) or not isinstance(attempt, int):
        return False
    return attempt_key(task_id, attempt) in index


def _flight(event: Mapping[str, Any]) -> InFlight | None:
    try:
        return InFlight(
            text(event["task_id"]),
            count(event["attempt"], 1),
            count(event["execution"]),
            text(event["token"]),
            str(event.get("at", "")),
        )
    except (KeyError, TypeError, ValueError):
        return None


def _unreadable(path: Path, error: OSError) -> RunUnreadable:
    return RunUnreadable(path, f"cannot be read: {error.strerror or error}")
