"""The end of a session: closed, or kept for a person where the request asks for that.

Kept is a session's files, never its programs: what an agent started must not go on spending.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from steelyard.components.environment import Session
from steelyard.components.issues import IssueCode, Phase
from steelyard.engine.work import Work

log = logging.getLogger(__name__)


LEFT: Final = "; `steelyard env list` shows what is left of it"


async def close_or_say(work: Work, session: Session, suffix: str, whose: str) -> None:
    """Part with a session that scoring does not need; one that cannot be ended holds nothing up.

    Args:
        work: the execution's.
        session: one of its sessions.
        suffix: what the session's token ends with.
        whose: `agent` or `scorer`, for the WARNING.
    """
    grace_s = work.spec.request.cleanup_grace_s
    try:
        async with asyncio.timeout(grace_s or None) as scope:
            await part_with(work, session, suffix)
    except Exception as error:
        log.warning("%s%s did not close", work.spec.token, suffix, exc_info=True)
        late = isinstance(error, TimeoutError) and scope.expired()
        why = f"within {grace_s:g} s" if late else f"({type(error).__name__}: {error})"
        work.phase = Phase.CLEANUP
        message = f"the {whose}'s environment did not close {why}{LEFT}"
        work.add_issue(IssueCode.CLEANUP_FAILED, message)


async def part_with(work: Work, session: Session, suffix: str) -> None:
    """Close a session, or keep it, and say which; of one that cannot be kept nothing stays.

    Args:
        work: the execution's.
        session: one of its sessions.
        suffix: what the session's token ends with.

    Raises:
        EnvironmentFault: it could not be ended.
    """
    token, provider = work.spec.token + suffix, work.services.environment.id
    if work.spec.request.keep_environment:
        kept = await session.keep()
        if kept is not None:
            work.observer.kept(token, provider, kept)
            return
    else:
        await session.close()
    work.observer.session(token, "closed", provider)
