"""Find an agent's program, and say what is wrong with the one that is there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Final

from steelyard.components.environment import ExecResult
from steelyard.harnesses.cli_agent.agent import Agent, Place
from steelyard.harnesses.cli_agent.cache import DamagedInstall, Wanted

_VERSION: Final = re.compile(r"(?<![\w.])[0-9]+(?:\.[0-9]+)+(?:[-+][0-9A-Za-z.]+)?")
_CANNOT_RUN: Final = (126, 127)


def install_command(wanted: Wanted, data_dir: Path | None) -> str:
    """Give the command that installs it."""
    words = ["steelyard", "agent", "install", wanted.agent.id]
    if wanted.version != wanted.agent.version:
        words += ["--version", wanted.version]
    if data_dir is not None:
        words += ["--data-dir", str(data_dir)]
    return shlex.join(words)


def find_program(agent: Agent, folder: Path, place: Place) -> tuple[str, ...]:
    """Give the words that start an installed program, as sessions see it.

    Args:
        agent: whose.
        folder: where it was installed on this machine.
        place: where it is inside.

    Raises:
        DamagedInstall: there is no such file, or more than one.
    """
    first, *others = agent.program
    pattern = first.removeprefix("{agent}/")
    if pattern == first:
        return tuple(map(place.filled, agent.program))
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        raise DamagedInstall(
            f"{agent.id}: {folder} holds {len(found) or 'no'} programs {pattern}",
            remedy="this version may lie elsewhere in its package: ask for the default version, or "
            f"remove the folder (steelyard agent remove {agent.id}) and install it again",
        )
    program = f"{place.agent}/{found[0].relative_to(folder).as_posix()}"
    return (program, *map(place.filled, others))


def other_version(agent: Agent, version: str, said: ExecResult) -> str | None:
    """Say why the environment's own program will not do; None where it will.

    Args:
        agent: whose.
        version: that is asked for.
        said: how asking it for its version ended.
    """
    name = agent.own_program[0]
    bring = f"take an image that brings {name} {version}, or write `install: cache`"
    if said.exit_code in _CANNOT_RUN and not said.stdout:
        return f"the environment has no program {name}; {bring}"
    if said.exit_code != 0 or said.timed_out:
        return f"{name} cannot say its version ({_last(said)}); {bring}"
    found = _VERSION.findall(said.stdout_text + said.stderr_text)
    if version in found:
        return None
    if not found:
        return f"{name} says no version; {bring}"
    return (
        f"the environment's {name} is {found[0]}, and {version} is asked for; "
        f"write `version: {found[0]}`, or {bring}"
    )


def unstartable(agent: Agent, ended: ExecResult, *, in_image: bool) -> str | None:
    """Say why the program could not even be started; None where it was."""
    if ended.exit_code not in _CANNOT_RUN or ended.stdout or ended.timed_out or ended.stopped_by:
        return None
    remedy = (
        "write `install: cache`"
        if in_image
        else "the environment needs /bin/sh and glibc no older than this machine's, as images of "
        "Debian, Ubuntu and Fedora have"
    )
    return f"the program of {agent.id} cannot be run in the environment ({_last(ended)}); {remedy}"


def _last(ended: ExecResult) -> str:
    said = (ended.stderr_text or ended.stdout_text).strip()[-300:]
    return said or f"exit code {ended.exit_code}"
