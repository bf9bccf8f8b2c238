"""Checks of the environment contract: sessions that are kept, entered again, and ended by token."""

# ruff: noqa: S101 — a check is an assertion
from __future__ import annotations

import asyncio

from steelyard.components.environment import EnvironmentFault, Kept, Session
from steelyard.testing.environment_suite import Trial, needs

_NOTE_STANDS = 'test "$(cat note)" = kept && exit 7'
_ONLY_LOOPBACK = (
    "import socket, sys\n"
    "names = sorted(name for _, name in socket.if_nameindex())\n"
    "sys.exit(7 if names == ['lo'] else 1)"
)


async def _kept(session: Session) -> Kept:
    kept = await session.keep()
    assert kept is not None, "keep() kept nothing of a session that holds a file"
    assert kept.description, kept
    return kept


async def _entered(trial: Trial, kept: Kept, *argv: str) -> int:
    """Run a program in a kept session; 7 where the provider has a command of its own for that."""
    if kept.enter:
        assert all(isinstance(word, str) and word for word in kept.enter), kept.enter
        return 7
    async with asyncio.timeout(60):
        return await trial.environment.enter(trial.token, kept.state, argv)


@needs("keeps_sessions")
async def a_kept_session_stands_without_its_programs(trial: Trial) -> None:
    """Its token finds it, no program runs in it, and nothing more can be started by it."""
    async with trial.session() as session:
        await session.write_file("note", b"kept")
        running = asyncio.ensure_future(session.exec(["sleep", "600"]))
        await asyncio.sleep(0.3)
        await _kept(session)
        async with asyncio.timeout(20):
            await asyncio.gather(running, return_exceptions=True)
        found = await trial.environment.find_leftovers([trial.token])
        assert found, "find_leftovers does not see what was kept"
        assert not any(item.description.startswith("process") for item in found), found
        try:
            await session.exec(["true"])
        except EnvironmentFault:
            return
    raise AssertionError("a kept session still runs programs")


@needs("keeps_sessions")
async def a_kept_session_is_ended_by_its_token(trial: Trial) -> None:
    """By any later process: the session's object is not needed."""
    async with trial.session() as session:
        await session.write_file("note", b"kept")
        await _kept(session)
        found = await trial.environment.find_leftovers([trial.token])
        await trial.environment.end_leftovers(found)
        left = await trial.environment.find_leftovers([trial.token])
    assert not left, f"still there: {[item.description for item in left]}"


@needs("keeps_sessions")
async def keeping_twice_is_safe(trial: Trial) -> None:
    """The second call finds the same, and a close afterwards ends it."""
    async with trial.session() as session:
        await session.write_file("note", b"kept")
        first = await _kept(session)
        assert await _kept(session) == first
        await session.close()
        left = await trial.environment.find_leftovers([trial.token])
    assert not left, f"a close leaves what was kept: {[item.description for item in left]}"


@needs("keeps_sessions")
async def a_kept_session_can_be_entered(trial: Trial) -> None:
    """A program finds the files where they were; leaving ends nothing."""
    async with trial.session() as session:
        await session.write_file("note", b"kept")
        kept = await _kept(session)
        for _ in range(2):
            status = await _entered(trial, kept, "sh", "-c", _NOTE_STANDS)
            assert status == 7, f"the program in the kept session ended with {status}"
        found = await trial.environment.find_leftovers([trial.token])
        assert found, "leaving ended what was kept"


@needs("keeps_sessions")
async def what_is_gone_cannot_be_entered(trial: Trial) -> None:
    """It is the provider's fault, not an empty folder."""
    async with trial.session() as session:
        await session.write_file("note", b"kept")
        kept = await _kept(session)
        if kept.enter:
            return
        await trial.environment.end_leftovers(await trial.environment.find_leftovers([trial.token]))
        try:
            await trial.environment.enter(trial.token, kept.state, ["true"])
        except EnvironmentFault:
            return
    raise AssertionError("a session that is gone was entered")


@needs("keeps_sessions", "closes_network")
async def a_kept_session_has_no_more_network_than_before(trial: Trial) -> None:
    """Its walls stand for whoever looks into it, too."""
    async with trial.session(network="none") as session:
        await session.write_file("note", b"kept")
        kept = await _kept(session)
        status = await _entered(trial, kept, trial.traits.python, "-c", _ONLY_LOOPBACK)
    assert status == 7, "there is more than loopback"
