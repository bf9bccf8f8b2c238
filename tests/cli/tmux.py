"""A real terminal for tests: a tmux server of their own, with one shell in one pane."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.engine.launching import COMPONENTS

LAUNCH = f"{sys.executable} -m steelyard launch o.json"


class Pane:
    """One shell in a terminal of its own."""

    def __init__(self, folder: Path, *, width: int = 90, height: int = 24, **env: str) -> None:
        self.folder = folder
        self._socket = folder / "tmux"
        assert shutil.which("tmux"), "install tmux: scripts/system-packages.sh tmux=tmux"
        settings = {
            "PYTHONPATH": str(COMPONENTS.parents[2]),
            "XDG_RUNTIME_DIR": "",
            "PS1": "$ ",
            "LC_ALL": "C.UTF-8",
            **env,
        }
        # `exec` without a shell's own start files: what is typed is all there is.
        words = ["env", *(f"{name}={value}" for name, value in settings.items())]
        self.run(
            "-f", "/dev/null", "new-session", "-d", "-s", "t", "-x", str(width), "-y", str(height),
            "-c", str(folder), *words, "bash", "--norc", "--noprofile",
        )  # fmt: skip
        self.run("set-option", "-t", "t", "remain-on-exit", "on")
        self.until(lambda: "$" in self.screen())

    def run(self, *words: str) -> str:
        command = ["tmux", "-S", str(self._socket), "-u", *words]
        env = {name: value for name, value in os.environ.items() if name != "TMUX"}
        done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def type(self, text: str) -> None:
        self.run("send-keys", "-t", "t", "-l", text)
        self.run("send-keys", "-t", "t", "Enter")

    def press(self, *keys: str) -> None:
        self.run("send-keys", "-t", "t", *keys)

    def resize(self, width: int, height: int) -> None:
        self.run("resize-window", "-t", "t", "-x", str(width), "-y", str(height))

    def screen(self) -> str:
        return self.run("capture-pane", "-pt", "t")

    def history(self) -> str:
        """All that stands and has scrolled away."""
        return self.run("capture-pane", "-pJ", "-S", "-", "-t", "t")

    def has_cursor(self) -> bool:
        return self.run("display-message", "-pt", "t", "#{cursor_flag}").strip() == "1"

    def close_terminal(self) -> None:
        """As when its window is closed, or the connection is lost."""
        self.run("kill-session", "-t", "t")

    def kill(self) -> None:
        subprocess.run(
            ["tmux", "-S", str(self._socket), "kill-server"], capture_output=True, check=False
        )

    def until(self, claim: Callable[[], bool], within_s: float = 20.0) -> None:
        deadline = time.monotonic() + within_s
        while not claim():
            assert time.monotonic() < deadline, self._last_seen()
            time.sleep(0.05)

    def sees(self, text: str) -> None:
        self.until(lambda: text in self.screen())

    def _last_seen(self) -> str:
        try:
            return self.history()
        except AssertionError as error:
            return f"the terminal is gone: {error}"
