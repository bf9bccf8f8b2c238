"""Run a package manager for an agent, and say what it said where it failed."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from steelyard.config.errors import Fault

_SHOWN_LINES: Final = 6


class NotInstalled(Fault):
    """An agent's program that could not be installed."""


def run_installer(
    words: Sequence[str],
    folder: Path,
    *,
    what: str,
    timeout_s: float,
    variables: Mapping[str, str] | None = None,
) -> None:
    """Run a package manager to its end. Blocking.

    Args:
        words: its program and arguments.
        folder: where it runs.
        what: is installed, for messages.
        timeout_s: until it is ended.
        variables: over those of this process.

    Raises:
        NotInstalled: it is missing, failed, or took too long; its last words are given.
    """
    if shutil.which(words[0]) is None:
        raise NotInstalled(
            f"{what} cannot be installed: {words[0]} is not found",
            remedy=_MISSING.get(Path(words[0]).name, f"install {words[0]}"),
        )
    try:
        done = subprocess.run(  # noqa: S603 — an argument vector; ids and versions were checked
            words, cwd=folder, capture_output=True, text=True, errors="replace",
            timeout=timeout_s, check=False, stdin=subprocess.DEVNULL,
            env={**os.environ, **(variables or {})},
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotInstalled(f"{what} could not be installed: {error}", remedy=_AGAIN) from error
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines()
        told = [line for line in lines if line.strip() and "A complete log of" not in line]
        shown = "\n".join(told[-_SHOWN_LINES:])[-2000:]
        raise NotInstalled(
            f"{what} could not be installed (exit status {done.returncode}): {shown}",
            remedy=_AGAIN,
        )


_AGAIN: Final = (
    "see that the version exists and that the package registry can be reached, then try again; "
    "once installed, no network is needed"
)
_MISSING: Final = {
    "npm": "install Node.js 20 or newer, which brings npm; it is needed for installing alone",
    "uv": "install uv or pip",
}
