"""Serve the mock endpoint for as long as one command runs, which learns its address."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Sequence
from typing import Final

from steelyard.config.errors import BadInput
from steelyard.models.mock.main import Announcement
from steelyard.models.mock.server import MockSettings, listening

URL_VARIABLE: Final = "MODEL_URL"
"""The command's variable that holds the endpoint's URL."""


def serve_command(
    settings: MockSettings, announce: Callable[[Announcement], None], command: Sequence[str]
) -> int:
    """Serve until the command ends.

    Args:
        settings: what the endpoint does.
        announce: told once where it listens.
        command: a program and its arguments; no shell.

    Returns:
        The command's exit status; 128 and the signal's number where a signal ended it.

    Raises:
        BadInput: there is no such program, or it cannot be started.
    """
    return asyncio.run(_serve_command(settings, announce, command))


async def _serve_command(
    settings: MockSettings, announce: Callable[[Announcement], None], command: Sequence[str]
) -> int:
    loop = asyncio.get_running_loop()
    process: asyncio.subprocess.Process | None = None
    early: list[signal.Signals] = []

    def pass_on(number: signal.Signals) -> None:
        if process is None:
            early.append(number)
        elif process.returncode is None:
            process.send_signal(number)

    # Before the command starts: a signal between its start and ours would leave it behind.
    loop.add_signal_handler(signal.SIGTERM, pass_on, signal.SIGTERM)
    # A terminal sends Ctrl-C to both; the endpoint stays until the command has stopped.
    loop.add_signal_handler(signal.SIGINT, lambda: None)
    async with listening(settings) as found:
        announce(Announcement(found.url, found.port, os.getpid()))
        try:
            process = await asyncio.create_subprocess_exec(
                *command, env={**os.environ, URL_VARIABLE: found.url}
            )
        except OSError as error:
            raise BadInput(
                f"{command[0]!r} cannot be started: {error.strerror}",
                remedy="check the program behind `--`",
            ) from error
        for number in early:
            process.send_signal(number)
        status = await process.wait()
    return status if status >= 0 else 128 - status
