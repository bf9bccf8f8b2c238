"""The live view: what a launch does, on a terminal, and keys to steer it.

`screen` decides what is shown, `screen_terminal` shows it; this brings both and the launch's
controls together.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Final, TextIO

from steelyard.cli.many_requests import Endings
from steelyard.cli.pace import Paces
from steelyard.cli.progress import ended_line
from steelyard.cli.screen import RequestView, View
from steelyard.cli.screen_keys import Keyboard
from steelyard.cli.screen_terminal import Drawer
from steelyard.config import printable
from steelyard.config.errors import SteelyardError
from steelyard.engine.control import Controls, LaunchState
from steelyard.engine.events import Progress, RequestResult

_BY: Final = "the keyboard"
_STEP_ABOVE: Final = 20
"""Below it `+` and `-` change concurrency by one, above by a tenth."""


class Live:
    """Draws on a real terminal. One that has gone away is written to no more."""

    shows_notices = True

    def __init__(
        self, stream: TextIO, controls: Controls | None = None, *, keys_from: int | None = None
    ) -> None:
        self._controls = controls or Controls()
        self._paces = Paces()
        self._endings = Endings()
        self._drawer = Drawer(stream)
        fd = _keys_from() if keys_from is None else keys_from
        self._keyboard = Keyboard(fd, self._on_key) if fd >= 0 and controls is not None else None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._view: View | None = None
        self._asked: tuple[str, Callable[[], None]] | None = None
        self._shows_help = False

    # -- what observers are told ---------------------------------------------------------------

    def tick(self, progress: tuple[Progress, ...]) -> None:
        """Draw a snapshot in place of the last."""
        self._listen()
        self._endings.see(progress)
        standings, total = self._paces.see(progress), self._paces.overall(progress)
        begun = [request for request in progress if request.state != "waiting"]
        view = View(
            tuple(RequestView(request, standings[request.name]) for request in begun),
            total,
            unbegun=len(progress) - len(begun),
        )
        if self._is_steerable:
            status = self._controls.status()
            known = {o.progress.name: o for o in status.requests if o.progress.state != "ended"}
            view = replace(
                view,
                requests=tuple(
                    replace(shown, waits_for=one.waits_for, budget=one.budget)
                    if (one := known.get(shown.progress.name)) is not None
                    else shown
                    for shown in view.requests
                ),
                state=status.state.value,
                concurrency=status.task_concurrency,
                budget=status.budget,
            )
        self._view = view
        self._show()

    def notice(self, request: str | None, message: str) -> None:
        """Print above what is drawn."""
        self._drawer.say(printable.lines(f"{request}: {message}" if request else message))

    def request_ended(self, result: RequestResult) -> None:
        """Print how it ended, above what is drawn."""
        if self._endings.takes(result):
            self._drawer.say(printable.lines(ended_line(result)))

    def close(self) -> None:
        """Take what is drawn away; what was printed stays. Keys are keys again."""
        for line in self._endings.rest():
            self._drawer.say(printable.lines(line))
        if self._keyboard is not None:
            self._keyboard.stop()
        self._drawer.close()

    # -- keys ----------------------------------------------------------------------------------

    @property
    def _is_steerable(self) -> bool:
        return self._controls.state not in (LaunchState.STARTING, LaunchState.ENDED)

    def _on_key(self, key: str) -> None:
        """Do what a key stands for; others are ignored."""
        if not self._is_steerable:
            return
        asked, self._asked = self._asked, None
        try:
            if asked is not None:
                if key in "yY":
                    asked[1]()
            else:
                self._do(key)
        except SteelyardError as error:
            self._drawer.say(printable.lines(str(error)))
        self._refresh()

    def _do(self, key: str) -> None:
        controls = self._controls
        match key:
            case "p" if controls.state is LaunchState.PAUSED:
                controls.resume(by=_BY)
            case "p":
                controls.pause(by=_BY)
            case "d" if controls.state in (LaunchState.RUNNING, LaunchState.PAUSED):
                drains = "drain: what runs ends, nothing more starts?"
                self._asked = (drains, lambda: _ignore(controls.drain(by=_BY)))
            case "q" if controls.state is LaunchState.STOPPING:
                self._asked = ("give up the clean-up?", lambda: controls.cancel(by=_BY))
            case "q":
                self._asked = ("stop: end what runs?", lambda: controls.cancel(by=_BY))
            case "+" | "=":
                self._change_concurrency(1)
            case "-" | "_":
                self._change_concurrency(-1)
            case "?" | "h":
                self._shows_help = not self._shows_help
            case _:
                return

    def _change_concurrency(self, direction: int) -> None:
        now = self._controls.status().task_concurrency
        step = 1 if now < _STEP_ABOVE else max(1, now // 10)
        self._controls.set_concurrency(max(1, now + direction * step), by=_BY)

    # -- drawing -------------------------------------------------------------------------------

    def _refresh(self) -> None:
        if self._view is not None and self._is_steerable:
            status = self._controls.status()
            self._view = replace(
                self._view, state=status.state.value, concurrency=status.task_concurrency
            )
        self._show()

    def _show(self) -> None:
        if self._view is None:
            return
        self._drawer.show(
            replace(
                self._view,
                question=None if self._asked is None else self._asked[0],
                shows_help=self._shows_help,
                has_keys=self._keyboard is not None and self._keyboard.is_reading,
            )
        )

    def _listen(self) -> None:
        """Take keys and signals, once there is a loop to take them on."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        if self._keyboard is not None:
            self._keyboard.look_after(loop)
        if self._loop is loop:
            return
        self._loop = loop
        with suppress(ValueError, RuntimeError):  # not the main thread
            loop.add_signal_handler(signal.SIGWINCH, self._show)
            loop.add_signal_handler(signal.SIGCONT, self._continue)
            if signal.getsignal(signal.SIGTSTP) is not signal.SIG_IGN:
                loop.add_signal_handler(signal.SIGTSTP, self._suspend)

    def _suspend(self) -> None:
        """Give the terminal back, then stop as ctrl-z asks; go on where that left off."""
        if self._keyboard is not None:
            self._keyboard.stop()
        self._drawer.suspend()
        os.kill(os.getpid(), signal.SIGSTOP)
        # From here on somebody has said `fg` or `bg`: SIGCONT, which `_continue` is told of.
        self._drawer.resume()

    def _continue(self) -> None:
        """Go on after a stop, ours or one that nobody could see coming (SIGSTOP)."""
        if self._keyboard is not None:
            self._keyboard.start_anew()
        self._drawer.start_anew()
        self._listen()
        self._show()


def _keys_from() -> int:
    """The descriptor of the terminal that keys come from; -1 where there is none."""
    try:
        fd = sys.stdin.fileno()
        return fd if os.isatty(fd) else -1
    except (OSError, ValueError, AttributeError):
        return -1


def _ignore(_: object) -> None:
    """Take an answer that nobody needs."""
