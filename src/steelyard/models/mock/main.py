"""Run the mock endpoint in a process of its own, until a signal ends it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from steelyard.config.errors import BadInput
from steelyard.models.mock.answers import Source, echo, fixed, from_function, read_file
from steelyard.models.mock.server import MockSettings, listening


@dataclass(frozen=True, slots=True)
class Announcement:
    """Where a server listens."""

    url: str
    port: int
    pid: int


def source_list(
    *,
    function: str | None,
    answers: Path | None,
    benchmark: str | None,
    benchmark_params: str,
    accuracy: Sequence[str],
    echo_prompt: bool,
    text: str | None,
    seed: int,
) -> tuple[Source, ...]:
    """Make the sources of answers that options name, in the order they are asked.

    Raises:
        BadInput: one cannot be made, or two contradict each other.
    """
    if echo_prompt and text is not None:
        raise BadInput("--echo and --text contradict each other", remedy="give one of them")
    default, by_model = parse_accuracy(accuracy)
    sources: list[Source] = []
    if function is not None:
        sources.append(from_function(function))
    if answers is not None:
        sources.append(read_file(answers))
    if benchmark is not None:
        from steelyard.models.mock.references import from_benchmark

        sources.append(
            from_benchmark(
                benchmark,
                _object(benchmark_params),
                accuracy=default,
                accuracy_by_model=by_model,
                seed=seed,
            )
        )
    elif accuracy:
        raise BadInput("--accuracy needs --benchmark", remedy="name the benchmark")
    if echo_prompt:
        sources.append(echo)
    if text is not None:
        sources.append(fixed(text))
    return tuple(sources)


def parse_accuracy(values: Sequence[str]) -> tuple[float, dict[str, float]]:
    """Read `0.7` and `MODEL=0.3`; the default is 1.

    Raises:
        BadInput: a value is not a chance.
    """
    default = 1.0
    by_model: dict[str, float] = {}
    for value in values:
        model, equals, number = value.rpartition("=")
        try:
            chance = float(number)
        except ValueError:
            chance = -1.0
        if not 0 <= chance <= 1:
            raise BadInput(
                f"--accuracy {value!r} is not a chance", remedy="write 0.7, or MODEL=0.7"
            )
        if equals:
            by_model[model] = chance
        else:
            default = chance
    return default, by_model


def _object(text: str) -> dict[str, object]:
    try:
        data = json.loads(text)
    except ValueError as error:
        raise BadInput(f"--benchmark-params is not JSON: {error}") from None
    if not isinstance(data, dict):
        raise BadInput("--benchmark-params is not a JSON object")
    return data


def serve(settings: MockSettings, announce: Callable[[Announcement], None]) -> None:
    """Serve until SIGTERM or SIGINT; connections are dropped then, at once.

    Args:
        settings: what it does.
        announce: told once where it listens.
    """
    asyncio.run(_serve(settings, announce))


async def _serve(settings: MockSettings, announce: Callable[[Announcement], None]) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    async with listening(settings) as found:
        announce(Announcement(found.url, found.port, os.getpid()))
        await stopped.wait()
