"""A session that is closed again while it is still being removed."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from steelyard.components.environment import OpenRequest
from steelyard.environments import local_session
from steelyard.environments.host_process import HostProcess


def test_whoever_closes_again_waits_for_the_one_removal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads would unlink each other's files, and say that they cannot be removed."""
    going, may_end = threading.Event(), threading.Event()
    removals: list[Path] = []
    real = local_session.remove_tree

    def slow(path: Path) -> None:
        removals.append(path)
        going.set()
        assert may_end.wait(30)
        real(path)

    monkeypatch.setattr(local_session, "remove_tree", slow)

    async def run() -> Any:
        session = await HostProcess(HostProcess.Params()).open(OpenRequest("t1"))
        await session.write_file("a", b"x")
        first = asyncio.ensure_future(session.close())
        await asyncio.to_thread(going.wait, 30)
        for _ in range(2):  # a caller that is cancelled again and again
            first.cancel()
            await asyncio.sleep(0.01)
        assert first.done()
        again = asyncio.ensure_future(session.close())
        await asyncio.sleep(0.05)
        assert not again.done()
        may_end.set()
        await again
        await session.close()

    asyncio.run(run())
    assert len(removals) == 1
    assert not removals[0].exists()
