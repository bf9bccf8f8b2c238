"""Play a catalog pack's wrong answers through the engine and the real scoring."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from ruamel.yaml import YAML

from steelyard.benchmarks.pack import PackBenchmark
from steelyard.benchmarks.pack.check import PackReport, check_cases
from steelyard.cli.pack_play import opened_players
from steelyard.components.benchmark import Task
from steelyard.components.catalog import CATALOG, catalog_folder

PACKS: Final = tuple(CATALOG)
MIN_CASES: Final = 25

# What stands in place of `reference`: the case's field `wrong`, played as an agent would.
_WRONG_ANSWER: Final = "{{ wrong if wrong is string else wrong | tojson }}"
_WRONG_SCRIPT: Final = {"command": ["sh", "-c", 'sh -c "$1" || :', "sh", "{{ wrong }}"]}


@cache
def pack(name: str) -> PackBenchmark:
    """A catalog pack, loaded once."""
    return opened(catalog_folder() / name)


def opened(folder: Path) -> PackBenchmark:
    """The pack in a folder."""
    return PackBenchmark(PackBenchmark.Params.model_validate({"path": str(folder)}))


@cache
def cases(name: str) -> Mapping[str, Task]:
    """The cases of a catalog pack by their ids."""
    return {task.id: task for task in pack(name).load_tasks()}


def with_wrong_answers(name: str, folder: Path) -> PackBenchmark:
    """A copy of a catalog pack whose `oracle` plays the wrong answers."""
    copy = folder / name
    shutil.copytree(catalog_folder() / name, copy, symlinks=True)
    yaml = YAML(typ="safe", pure=True)
    data: dict[str, Any] = yaml.load(copy / "pack.yaml")
    has_script = isinstance(data["reference"], dict)
    data["reference"] = _WRONG_SCRIPT if has_script else _WRONG_ANSWER
    yaml.dump(data, copy / "pack.yaml")
    return opened(copy)


def played(benchmark: PackBenchmark) -> PackReport:
    """Let `oracle` and `nop` play every case, as `pack check` does."""

    async def play() -> PackReport:
        async with opened_players(benchmark, "auto") as player:
            return await check_cases(benchmark, benchmark.load_tasks(), player)

    return asyncio.run(play())


def scores_of_reference(benchmark: PackBenchmark) -> dict[str, float | None]:
    """Let `oracle` alone play every case; None where an attempt was not scored."""
    scores: dict[str, float | None] = {}
    waiting = iter(benchmark.load_tasks())

    async def play() -> None:
        async with opened_players(benchmark, "auto") as player:

            async def work() -> None:
                for task in waiting:
                    scores[task.id] = (await player("oracle", task)).score

            async with asyncio.TaskGroup() as group:
                for _ in range(4):
                    group.create_task(work())

    asyncio.run(play())
    return scores
