"""The end of a session: closed, or kept for a person where the request asks for that.

Kept is a session's files, never its programs: what an agent started must not go on spending.
"""

from __future__ import annotations

from steelyard.components.environment import Session
from steelyard.engine.work import Work


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
