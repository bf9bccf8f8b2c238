"""`base_url: mock-model://BENCHMARK/ACCURACY`: the mock endpoint, served by whoever calls it.

For first steps and demos: no second terminal, no provider. It listens on loopback for as long as
its caller's connections are open.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.components.id_forms import is_path
from steelyard.components.registry import Kind, id_fault
from steelyard.config.errors import BadInput, Where
from steelyard.config.mock_urls import PREFIX as _PREFIX
from steelyard.config.mock_urls import is_mock_url as is_mock_url
from steelyard.config.mock_urls import mock_parts

if TYPE_CHECKING:
    from steelyard.models.mock.answers import Source


@dataclass(frozen=True, slots=True)
class ServedMock:
    """What a `mock-model://` URL asks for."""

    benchmarks: tuple[str, ...]
    """Whose references are answered; none: every answer is `OK`."""
    accuracy: float


def parse_mock_url(base_url: str) -> ServedMock:
    """Read `mock-model://BENCHMARK,BENCHMARK/ACCURACY`; a pack may be named by its folder.

    Relative folders start from the working folder, which the settings have seen to.

    Raises:
        BadInput: it is not that, or names no benchmark that there is.
    """
    names, chance = mock_parts(base_url)
    try:
        accuracy = float(chance or "1")
    except ValueError:
        accuracy = -1.0
    benchmarks = tuple(name.removeprefix("catalog/") for name in names)
    if not 0 <= accuracy <= 1 or not all(map(_may_be_named, benchmarks)):
        raise BadInput(
            f"not of the form {_PREFIX}BENCHMARK/ACCURACY",
            where=Where(field="model.base_url"),
            remedy=f"write benchmarks and a chance: {_PREFIX}code-review/0.8, or a pack's folder: "
            f"{_PREFIX}./my-pack/0.8",
        )
    for name in benchmarks:
        if (fault := id_fault(Kind.BENCHMARK, name, Path.cwd())) is not None:
            where = Where(field="model.base_url")
            remedy = fault.remedy
            if not is_path(name):
                remedy += f"; a pack is named by its folder: {_PREFIX}./FOLDER/{accuracy:g}"
            raise BadInput(fault.message, where=where, remedy=remedy)
    return ServedMock(benchmarks, accuracy)


def _may_be_named(name: str) -> bool:
    return is_path(name) or not any(c.isspace() or c in "/?#@" for c in name)


@asynccontextmanager
async def served(wanted: ServedMock) -> AsyncIterator[int]:
    """Serve while the block runs; gives the port on 127.0.0.1.

    Raises:
        BadInput: there is no such benchmark, or it has no reference answers.
        Fault: nothing can listen here.
    """
    import asyncio  # a dry run reads URLs, and needs no loop

    from steelyard.models.mock.references import from_benchmark
    from steelyard.models.mock.server import MockSettings, listening

    def sources() -> list[Source]:
        accuracy = wanted.accuracy
        return [
            from_benchmark(name, {}, accuracy=accuracy, accuracy_by_model={}, seed=0)
            for name in wanted.benchmarks
        ]

    found = await asyncio.to_thread(sources)  # packs are read
    async with listening(MockSettings(sources=found)) as server:
        yield server.port
