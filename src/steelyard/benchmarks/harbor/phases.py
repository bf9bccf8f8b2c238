"""Give each phase of a task the network that the task declares for it.

Agent and tests may share one environment and yet reach different hosts. Where a task says so, its
environment is opened with the agent's network, changed for the tests, and changed back.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from steelyard.benchmarks.harbor.document import LEAVE_OUT
from steelyard.benchmarks.harbor.folder import Part, TaskFolder
from steelyard.benchmarks.harbor.needs import (
    agent_access,
    is_separate,
    shared_accesses,
    verifier_access,
)
from steelyard.components.environment import Session
from steelyard.components.issues import AttemptFault, IssueCode


async def check_networks(session: Session, task: TaskFolder) -> None:
    """See, before the agent works, whether later phases can have their networks.

    Raises:
        AttemptFault: TASK_INVALID: they cannot, in this environment.
    """
    first, *later = shared_accesses(task).items()
    if not later:
        return
    why = await session.fixed_network([access.network for access, _ in later])
    if why is None:
        return
    who, wanted = later[0][1], later[0][0].network
    raise AttemptFault(
        IssueCode.TASK_INVALID,
        f"{who} shares the environment of {first[1]} and asks for another network ({wanted}, not "
        f"{first[0].network}): {why}; name an environment that can change it (`docker`), write "
        f'environment_mode = "separate" below [verifier], or {LEAVE_OUT}',
    )


async def give_agents_network(session: Session, task: TaskFolder, part: Part) -> None:
    """Give the agent what it may reach in this step.

    Raises:
        EnvironmentFault: it cannot be changed.
    """
    if len(shared_accesses(task)) > 1:
        access = agent_access(task, part)
        await session.change_network(access.network, access.hosts)


@asynccontextmanager
async def verifiers_network(session: Session, task: TaskFolder, part: Part) -> AsyncIterator[None]:
    """Give tests that share the agent's session what they may reach, and take it away again.

    Raises:
        EnvironmentFault: it cannot be changed.
    """
    if is_separate(task, part) or len(shared_accesses(task)) == 1:
        yield
        return
    access = verifier_access(task, part)
    await session.change_network(access.network, access.hosts)
    try:
        yield
    finally:
        # What an agent left running must not keep it.
        await give_agents_network(session, task, part)


def agents_networks(task: TaskFolder) -> dict[str, Any]:
    """Give, for the identity, what the agent may reach in each step, where that changes."""
    found = [agent_access(task, part) for part in task.parts]
    return {"networks": [one.as_json() for one in found]} if len(set(found)) > 1 else {}


def verifiers_networks(task: TaskFolder) -> dict[str, Any]:
    """Give, for the identity, what tests may reach beside the agent, where that is another."""
    if len(shared_accesses(task)) == 1:
        return {}
    return {"networks": [verifier_access(task, part).as_json() for part in task.parts]}
