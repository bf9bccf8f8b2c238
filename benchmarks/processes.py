"""Run the product as a process, and read what the kernel says that it used."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

STEELYARD = (str(Path(sys.executable).with_name("steelyard")),)
"""The command as a user calls it: the console script of this venv."""
METER = Path(__file__).with_name("meter.py")


class CommandFailed(Exception):
    """A measured command did not end as it must; its figures would say nothing."""


@dataclass(frozen=True, slots=True)
class Used:
    """What one process and the children it waited for used."""

    cpu_s: float
    wall_s: float
    max_rss_mib: float
    started_at: float
    """Unix time just before the start."""
    stdout: str


def clean_environment(**extra: str) -> dict[str, str]:
    """Copy the environment without what would stop bytecode, and add to it."""
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return env | {"PYTHONDONTWRITEBYTECODE": ""} | extra


def run(
    command: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    expect: int = 0,
) -> Used:
    """Run a command to its end.

    Raises:
        CommandFailed: it exited with another status than expected.
    """
    figures, theirs = os.pipe()
    with os.fdopen(figures, "rb") as told:
        try:
            meter = [sys.executable, "-I", "-S", str(METER), str(theirs), *command]
            process = subprocess.Popen(
                meter,
                cwd=cwd,
                env=env or clean_environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=(theirs,),
                text=True,
            )
        finally:
            os.close(theirs)
        stdout, _ = process.communicate()
        words = told.read().split()
    if process.returncode != 0 or not words:
        raise CommandFailed(f"{' '.join(command)} could not be measured:\n{stdout[-4000:]}")
    status, cpu_s, wall_s, max_rss_mib, started_at = map(float, words)
    if status != expect:
        raise CommandFailed(
            f"{' '.join(command)} exited with {status:g}, not {expect}:\n{stdout[-4000:]}"
        )
    return Used(cpu_s, wall_s, max_rss_mib, started_at, stdout)


def median_cpu_s(command: Sequence[str], *, times: int, cwd: Path | None = None) -> float:
    """CPU seconds of a command, the first run unmeasured (it warms files and bytecode)."""
    run(command, cwd=cwd)
    return median(run(command, cwd=cwd).cpu_s for _ in range(times))
