"""Runs of a request whose owner died: what they left running on this machine is reported.

Only reported: nothing is ended here. A run is dead where nobody holds its lock and its journal
has no last word; on doubt it counts as alive.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from steelyard.components.environment import Environment, Leftover
from steelyard.components.values import Usage
from steelyard.config.errors import SteelyardError
from steelyard.engine.loading import in_daemon
from steelyard.engine.request_plan import RequestPlan
from steelyard.engine.work import AGENT_SUFFIX, SCORER_SUFFIX
from steelyard.results.figures import usd
from steelyard.results.journal import EventKind
from steelyard.results.layout import RunFiles
from steelyard.results.lock import is_alive
from steelyard.results.reader import RunReader

log = logging.getLogger(__name__)

MAX_RUNS: Final = 50
"""The newest runs of a request that are looked at."""
_TAIL_BYTES: Final = 4096
_LIMIT_S: Final = 20.0
_SHOWN: Final = 5
_LAST_WORD: Final = f'"kind":"{EventKind.FINISHED}"'.encode()


def dead_sessions(namespace_dir: Path, own_run_id: str) -> dict[str, str]:
    """Give the tokens of sessions that dead runs may have left, with their runs' ids. Blocking."""
    found: dict[str, str] = {}
    try:
        roots = sorted((path for path in namespace_dir.iterdir() if path.is_dir()), reverse=True)
    except OSError:
        return found
    for root in roots[:MAX_RUNS]:
        if root.name == own_run_id or not _is_dead(root):
            continue
        try:
            flights = RunReader(root).in_flight
        except SteelyardError:
            continue
        for flight in flights:
            found[flight.token + AGENT_SUFFIX] = root.name
            found[flight.token + SCORER_SUFFIX] = root.name
    return found


def _is_dead(root: Path) -> bool:
    files = RunFiles(root)
    try:
        with files.events.open("rb") as events:
            events.seek(max(0, files.events.stat().st_size - _TAIL_BYTES))
            if _LAST_WORD in events.read():
                return False
        return not is_alive(files.lock)
    except OSError:
        return False


async def report_leftovers(
    plan: RequestPlan, own_run_id: str, notice: Callable[[str | None, str], None]
) -> None:
    """Tell an observer what dead runs of a request left behind; says nothing where nothing is."""
    environment, folder = plan.services.environment, plan.paths.namespace_dir
    for said in (
        await leftovers_said(folder, own_run_id, environment),
        await unfinished_said(folder, own_run_id),
    ):
        if said is not None:
            notice(plan.request.name, said)


async def leftovers_said(
    namespace_dir: Path, own_run_id: str, environment: Environment
) -> str | None:
    """Say what dead runs of a request left behind; None where that is nothing, or unknown."""
    try:
        async with asyncio.timeout(_LIMIT_S):
            sessions = await in_daemon(dead_sessions, namespace_dir, own_run_id)
            if not sessions:
                return None
            left = await environment.find_leftovers(list(sessions))
    except Exception:  # a provider may raise anything, and this only informs
        log.exception("leftovers of dead runs could not be looked for")
        return None
    return _said(left, sessions) if left else None


async def unfinished_said(namespace_dir: Path, own_run_id: str) -> str | None:
    """Say what the last run of a request was doing when it died, with what that had cost.

    None where it did not die, or nothing was under way.
    """
    try:
        async with asyncio.timeout(_LIMIT_S):
            return await in_daemon(_unfinished, namespace_dir, own_run_id)
    except Exception:
        log.exception("the last run could not be looked at")
        return None


def _unfinished(namespace_dir: Path, own_run_id: str) -> str | None:
    others = [root for root in namespace_dir.iterdir() if root.name != own_run_id]
    last = max((root for root in others if root.is_dir()), default=None)
    if last is None or not _is_dead(last):
        return None
    try:
        reader = RunReader(last)
        flights = reader.in_flight
        named = [
            f"{flight.task_id} attempt {flight.attempt} ({_cost(reader.spent_in_flight(flight))})"
            for flight in flights[:_SHOWN]
        ]
    except SteelyardError:
        return None
    if not flights:
        return None
    more = f"; and {len(flights) - _SHOWN} more" if len(flights) > _SHOWN else ""
    return f"{last.name} died with {len(flights)} attempts under way: {'; '.join(named)}{more}"


def _cost(usage: Usage | None) -> str:
    if usage is None:
        return "cost unknown"
    known = "cost unknown" if usage.cost_usd is None else f"${usd(usage.cost_usd)}"
    return f"{usage.requests} model calls, {known} so far"


def _said(items: Sequence[Leftover], sessions: Mapping[str, str]) -> str:
    runs = sorted({sessions.get(item.token, "?") for item in items})
    shown = "; ".join(item.description for item in items[:_SHOWN])
    more = f"; and {len(items) - _SHOWN} more" if len(items) > _SHOWN else ""
    return (
        f"{' and '.join(runs)} died and left {len(items)} behind: {shown}{more}; nothing of it is "
        "ended by itself"
    )
