"""What an engine cannot do is learnt once, also by containers that are created side by side."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from steelyard.environments.docker.engine import EngineRefusal
from steelyard.environments.docker.opening import Opener
from steelyard.environments.docker.params import DockerParams


class Bare:
    """An engine without storage limits or filters of others."""

    def __init__(self, *words: str) -> None:
        self.words = words
        self.asked = 0

    async def call(self, method: str, path: str, **rest: Any) -> dict[str, str]:
        self.asked += 1
        await asyncio.sleep(0)  # every call is under way before the first is refused
        host = rest["body"]["HostConfig"]
        wanted = {
            "storage-opt is not supported": "StorageOpt" in host,
            "seccomp profile cannot be read": len(host["SecurityOpt"]) > 1,
        }
        for said in self.words:
            if wanted[said]:
                raise EngineRefusal("creating a container", 500, said)
        return {"Id": "made"}


@pytest.mark.parametrize(
    "words",
    [
        ("storage-opt is not supported",),
        ("seccomp profile cannot be read",),
        (
            "storage-opt is not supported",
            "seccomp profile cannot be read",
        ),
    ],
    ids=len,
)
def test_containers_that_are_refused_side_by_side_are_all_created(words: tuple[str, ...]) -> None:
    engine = Bare(*words)

    async def create() -> list[str]:
        opener = Opener(engine, DockerParams())  # type: ignore[arg-type]
        bodies = [
            {"HostConfig": {"StorageOpt": {}, "SecurityOpt": ["seccomp=x", "no-new-privileges"]}}
            for _ in range(6)
        ]
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(opener._created(f"c{n}", body)) for n, body in enumerate(bodies)
            ]
        return [task.result() for task in tasks]

    assert asyncio.run(create()) == ["made"] * 6
