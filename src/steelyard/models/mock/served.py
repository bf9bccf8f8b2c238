"""`base_url: mock-model://BENCHMARK/ACCURACY`: the mock endpoint, served by whoever calls it.

For first steps and demos: no second terminal, no provider. It listens on loopback for as long as
its caller's connections are open.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from steelyard.components.registry import Kind, id_fault
from steelyard.config.errors import BadInput, Where

if TYPE_CHECKING:
    from steelyard.models.mock.answers import Source

SCHEME: Final = "mock-model"
_PREFIX: Final = f"{SCHEME}://"


@dataclass(frozen=True, slots=True)
class ServedMock:
    """What a `mock-model://` URL asks for."""

    benchmarks: tuple[str, ...]
    """Whose references are answered; none: every answer is `OK`."""
    accuracy: float


def is_mock_url(base_url: str) -> bool:
    """True for a URL of this scheme."""
    return base_url.startswith(_PREFIX)


def parse_mock_url(base_url: str) -> ServedMock:
    """Read `mock-model://BENCHMARK,BENCHMARK/ACCURACY`.

    Raises:
        BadInput: it is not that, or names no benchmark that there is.
    """
    names, _, chance = base_url.removeprefix(_PREFIX).partition("/")
    try:
        accuracy = float(chance or "1")
    except ValueError:
        accuracy = -1.0
    benchmarks = tuple(name for name in names.split(",") if name)
    if not 0 <= accuracy <= 1 or any(c.isspace() or c in "?#@" for c in names):
        raise BadInput(
            f"not of the form {_PREFIX}BENCHMARK/ACCURACY",
            where=Where(field="model.base_url"),
            remedy=f"write benchmarks of the catalog and a chance: {_PREFIX}code-review/0.8",
        )
    for name in benchmarks:
        if (fault := id_fault(Kind.BENCHMARK, name, None)) is not None:
            where = Where(field="model.base_url")
            raise BadInput(fault.message, where=where, remedy=fault.remedy)
    return ServedMock(benchmarks, accuracy)


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
