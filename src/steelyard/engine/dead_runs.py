"""Runs of a request whose owner died: what they left on this machine is reported, or ended.

Ended is only what is asked for (`--reap`), and only of a run that is proven dead.
"""

from __future__ import annotations

import asyncio
import logging
import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from steelyard.components.environment import Environment
from steelyard.components.values import Usage
from steelyard.config.errors import SteelyardError
from steelyard.engine.leftovers import Providers, Standing, end_standing, find_standing
from steelyard.engine.loading import in_daemon
from steelyard.engine.request_plan import RequestPlan
from steelyard.results.figures import usd
from steelyard.results.reader import RunReader
from steelyard.results.remains import (
    Remains,
    RemainsState,
    has_last_word,
    ownership_of,
    remains_of,
)

log = logging.getLogger(__name__)

MAX_RUNS: Final = 50
"""The newest runs of a request that are looked at."""
_LIMIT_S: Final = 20.0
_SHOWN: Final = 5

Notice = Callable[[str | None, str], None]


def dead_remains(namespace_dir: Path, own_run_id: str | None) -> list[Remains]:
    """Give what runs without a last word may have left, that of live ones not. Blocking."""
    found: list[Remains] = []
    try:
        roots = sorted((path for path in namespace_dir.iterdir() if path.is_dir()), reverse=True)
    except OSError:
        return found
    for root in roots[:MAX_RUNS]:
        if root.name == own_run_id or _ended(root):
            continue
        found += [
            one
            for one in remains_of(root)
            if one.state in (RemainsState.LEFT, RemainsState.UNKNOWN)
        ]
    return found


def _ended(root: Path) -> bool:
    try:
        return has_last_word(root)
    except OSError:
        return True


async def report_leftovers(plan: RequestPlan, own_run_id: str, notice: Notice) -> None:
    """Tell an observer what dead runs of a request left behind; says nothing where nothing is."""
    environment, folder = plan.services.environment, plan.paths.namespace_dir
    for said in await leftovers_said(folder, own_run_id, environment):
        notice(plan.request.name, said)
    unfinished = await unfinished_said(folder, own_run_id)
    if unfinished is not None:
        notice(plan.request.name, unfinished)


async def leftovers_said(
    namespace_dir: Path, own_run_id: str, environment: Environment
) -> list[str]:
    """Say of each dead run of a request what it left, and what ends it."""
    try:
        async with asyncio.timeout(_LIMIT_S), Providers([environment]) as providers:
            remains = await in_daemon(dead_remains, namespace_dir, own_run_id)
            if not remains:
                return []
            found = await find_standing(remains, providers)
    except Exception:  # a provider may raise anything, and this only informs
        log.exception("leftovers of dead runs could not be looked for")
        return []
    for problem in found.problems:
        log.warning("leftovers of dead runs: %s", problem)
    return [_said(run, standing) for run, standing in _by_run(found.standing)]


async def reap_leftovers(plan: RequestPlan, notice: Notice) -> None:
    """End what dead runs of a request left, and say what was ended and what was not."""
    name, folder = plan.request.name, plan.paths.namespace_dir
    async with Providers([plan.services.environment]) as providers:
        remains = await in_daemon(dead_remains, folder, None)
        found = await find_standing([one for one in remains if one.may_end], providers)
        for run, standing in _by_run(found.standing):
            failed = await end_standing(standing, providers)
            stays = {one.standing.remains.token for one in failed}
            ended = [one for one in standing if one.remains.token not in stays]
            if ended:
                notice(name, f"ended what {run.name} left when it died: {_listed(ended)}")
            for one in failed:
                notice(name, f"warning: {run.name} left {one.standing.said}, not ended: {one.why}")
        for problem in found.problems:
            notice(name, f"warning: leftovers of dead runs: {problem}")


def _by_run(standing: Sequence[Standing]) -> Iterator[tuple[Path, list[Standing]]]:
    runs: dict[Path, list[Standing]] = {}
    for one in standing:
        runs.setdefault(one.remains.run, []).append(one)
    yield from sorted(runs.items())


def _said(run: Path, standing: Sequence[Standing]) -> str:
    count = sum(len(one.items) for one in standing)
    unknown = next((one.remains.why for one in standing if not one.remains.may_end), None)
    if unknown is not None:
        return (
            f"{run.name} left {count} behind: {_listed(standing)}; {unknown}, so that nobody can "
            "say from here that it is over: nothing of it is ended; where you know it, remove that "
            "by hand"
        )
    return (
        f"{run.name} died and left {count} behind: {_listed(standing)}; "
        f"`{close_command(run, standing)}` ends it, and so does --reap"
    )


def close_command(run: Path, standing: Sequence[Standing]) -> str:
    """Give the command that ends exactly these things of a run."""
    ids = [word for one in standing for word in ("--id", one.remains.token)]
    return shlex.join(["steelyard", "env", "close", str(run.absolute()), *ids])


def _listed(standing: Sequence[Standing]) -> str:
    items = [item for one in standing for item in one.items]
    more = f"; and {len(items) - _SHOWN} more" if len(items) > _SHOWN else ""
    return "; ".join(item.description for item in items[:_SHOWN]) + more


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
    if last is None or _ended(last) or not ownership_of(last).is_over:
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
    attempts = f"{len(flights)} attempt{'' if len(flights) == 1 else 's'}"
    return f"{last.name} died with {attempts} under way: {'; '.join(named)}{more}"


def _cost(usage: Usage | None) -> str:
    if usage is None:
        return "cost unknown"
    known = "cost unknown" if usage.cost_usd is None else f"${usd(usage.cost_usd)}"
    return f"{usage.requests} model calls, {known} so far"
