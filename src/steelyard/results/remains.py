"""What runs may have left on this machine, read from their journals: kept, left behind, in use.

Only reading. Whether something still exists, a provider is asked; nobody keeps a list that could
disagree. On doubt a run counts as one that may still go on.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from steelyard.config.errors import SteelyardError
from steelyard.results.journal import EventKind
from steelyard.results.layout import RunFiles
from steelyard.results.lines import MAX_LINE_BYTES
from steelyard.results.lock import OwnerIdentity, is_alive
from steelyard.results.newest import runs_below
from steelyard.results.plain_files import open_plain
from steelyard.results.reader import RunReader
from steelyard.results.session_tokens import Role, session_tokens, split_token

_TAIL_BYTES: Final = 4096
_CHUNK_BYTES: Final = 1 << 20
_LAST_WORD: Final = f'"kind":"{EventKind.FINISHED}"'.encode()
_NOTHING: Final[Mapping[str, Any]] = {}
_KINDS: Final = tuple(
    f'"kind":"{kind}"'.encode() for kind in (EventKind.OPENED, EventKind.CLOSED, EventKind.KEPT)
)


class RemainsState(StrEnum):
    """What may be done with it."""

    KEPT = "kept"
    """Its run is over, and was asked to keep it."""
    LEFT = "left"
    """Its run is over, or proven dead, and did not end it."""
    LIVE = "live"
    """Its run goes on and may use it."""
    UNKNOWN = "unknown"
    """Nobody can prove from here that its run is over."""


_FORBIDS_MOST: Final = (
    RemainsState.LIVE,
    RemainsState.UNKNOWN,
    RemainsState.LEFT,
    RemainsState.KEPT,
)


@dataclass(frozen=True, slots=True)
class Remains:
    """Something that a run may have left, by its token."""

    token: str
    run: Path
    task_id: str
    attempt: int
    execution: int
    role: Role
    provider: str
    state: RemainsState
    why: str | None = None
    """Of what is live or unknown: what says so."""
    description: str | None = None
    """Of what was kept: a folder, a container's name."""
    enter: tuple[str, ...] = ()
    """Of what was kept: the command that enters it."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """Of what was kept: what the provider needs to enter it."""

    @property
    def may_end(self) -> bool:
        """True where its run is over for certain."""
        return self.state in (RemainsState.KEPT, RemainsState.LEFT)


@dataclass(frozen=True, slots=True)
class Ownership:
    """Whether a run may still go on."""

    is_over: bool
    is_live: bool = False
    why: str | None = None
    """Where it is not over."""


def enter_command(run: Path, token: str) -> tuple[str, ...]:
    """Give the command that enters a kept session whose provider has none of its own.

    It can be pasted wherever a shell stands.
    """
    return ("steelyard", "env", "enter", "--in", str(run.absolute()), token)


def remains_below(folder: Path) -> Iterator[Remains]:
    """Find what the runs in and below a folder may have left; unreadable runs are passed over."""
    for root in runs_below(folder):
        yield from remains_of(root)


def remains_of(root: Path) -> list[Remains]:
    """Find what a run may have left; empty where it cannot be read."""
    ownership = ownership_of(root)
    try:
        if ownership.is_over and has_last_word(root) and _closed_all(root):
            return []
        return _read(RunReader(root), ownership)
    except (SteelyardError, OSError):
        return []


def by_token(remains: Iterable[Remains]) -> dict[str, Remains]:
    """Give one for each token: of a run and its copies the one that forbids most."""
    found: dict[str, Remains] = {}
    for one in remains:
        known = found.get(one.token)
        if known is None or _FORBIDS_MOST.index(one.state) < _FORBIDS_MOST.index(known.state):
            found[one.token] = one
    return found


def kept_of(reader: RunReader) -> list[Remains]:
    """List what a run kept, by its journal alone; does not depend on who holds the lock."""
    return [one for one in _read(reader, Ownership(True)) if one.state is RemainsState.KEPT]


def ownership_of(root: Path) -> Ownership:
    """Find out whether a run may still go on.

    A run that wrote its last word and holds no lock is over. One without is over only where its
    owner is proven dead: the lock is free and names a process of this host, boot and process
    namespace that runs no more. A folder may be a copy: its lock is free while the original goes
    on, and the process is what tells.
    """
    files = RunFiles(root)
    try:
        if is_alive(files.lock):
            return Ownership(False, is_live=True, why="its run goes on")
        if has_last_word(root):
            return Ownership(True)
        owner = RunReader(root).owner
    except (SteelyardError, OSError) as error:
        return Ownership(False, why=f"its run cannot be read: {error}")
    if owner is None:
        return Ownership(False, why="its lock does not say who ran it")
    here = OwnerIdentity.of_this_process()
    for what, theirs, ours in (
        ("host", owner.hostname, here.hostname),
        ("boot of this machine", owner.boot_id, here.boot_id),
        ("process namespace", owner.pid_namespace, here.pid_namespace),
    ):
        if theirs is None or theirs != ours:
            return Ownership(False, why=f"its run was started on another {what} ({theirs})")
    if owner.may_live():
        return Ownership(False, why=f"process {owner.pid}, which started its run, goes on")
    return Ownership(True)


def has_last_word(root: Path) -> bool:
    """True where a run's journal ends with its outcome.

    Raises:
        OSError: the journal cannot be read.
    """
    with open_plain(RunFiles(root).events) as events:
        events.seek(max(0, os.fstat(events.fileno()).st_size - _TAIL_BYTES))
        return _LAST_WORD in events.read()


def _closed_all(root: Path) -> bool:
    """True where every session that was opened was closed, by a look at the bytes alone."""
    opened = closed = kept = 0
    rest = b""
    with open_plain(RunFiles(root).events) as events:
        while chunk := events.read(_CHUNK_BYTES):
            whole, newline, rest = (rest + chunk).rpartition(b"\n")
            if len(rest) > MAX_LINE_BYTES:  # no line of ours: a disk's zeros, without end
                return False
            whole += newline
            opened += whole.count(_KINDS[0])
            closed += whole.count(_KINDS[1])
            kept += whole.count(_KINDS[2])
    return kept == 0 and opened <= closed


@dataclass(slots=True)
class _Seen:
    """What a journal says of sessions."""

    executions: dict[str, tuple[str, int, int]] = field(default_factory=dict)
    providers: dict[str, str] = field(default_factory=dict)
    """Of those that were opened and not closed."""
    kept: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)

    def add(self, event: Mapping[str, Any]) -> None:
        kind, token = event.get("kind"), str(event.get("token", ""))
        if kind == EventKind.STARTED:
            place = (str(event["task_id"]), int(event["attempt"]), int(event["execution"]))
            self.executions[token] = place
        elif kind == EventKind.OPENED:
            self.providers[token] = str(event["provider"])
        elif kind == EventKind.CLOSED:
            self.providers.pop(token, None)
            self.ended.add(token)
        elif kind == EventKind.KEPT:
            self.providers.pop(token, None)
            self.kept[token] = event


def _read(reader: RunReader, ownership: Ownership) -> list[Remains]:
    seen = _Seen()
    for event in reader.events():
        try:
            seen.add(event)
        except (KeyError, TypeError, ValueError):
            continue
    default = str(reader.document.get("environment") or "")
    providers = dict(seen.providers)
    for flight in reader.in_flight:
        if flight.is_waiting:
            continue
        for token, role in session_tokens(flight.token).items():
            # A task in stages opens one environment after another for its scorer.
            has_ended = token in seen.ended and role != "evaluator"
            if not has_ended and token not in seen.kept:
                # Files of the host are looked for as `host_process` looks for its own.
                providers.setdefault(token, "host_process" if role == "files" else default)
    found: list[Remains] = []
    for token, provider in providers.items():
        state = RemainsState.LEFT if ownership.is_over else _undecided(ownership)
        found += _one(reader.root, seen, token, provider, state, ownership.why)
    for token, told in seen.kept.items():
        state = RemainsState.LIVE if ownership.is_live else RemainsState.KEPT
        found += _one(reader.root, seen, token, str(told.get("provider")), state, ownership.why)
    return sorted(found, key=lambda one: (one.task_id, one.attempt, one.execution, one.role))


def _undecided(ownership: Ownership) -> RemainsState:
    return RemainsState.LIVE if ownership.is_live else RemainsState.UNKNOWN


def _one(
    root: Path, seen: _Seen, token: str, provider: str, state: RemainsState, why: str | None
) -> Iterator[Remains]:
    parts = split_token(token)
    if parts is None:
        return
    task_id, attempt, execution = seen.executions.get(parts[0], ("?", 0, 0))
    nothing: Mapping[str, Any] = {}
    event = seen.kept.get(token, nothing)
    enter, details = event.get("enter"), event.get("state")
    description = event.get("description")
    yield Remains(
        token=token,
        run=root,
        task_id=task_id,
        attempt=attempt,
        execution=execution,
        role=parts[1],
        provider=provider,
        state=state,
        why=None if state in (RemainsState.KEPT, RemainsState.LEFT) else why,
        description=None if description is None else str(description),
        enter=tuple(map(str, enter)) if isinstance(enter, list) else (),
        details=details if isinstance(details, Mapping) else {},
    )
