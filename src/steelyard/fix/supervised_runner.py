"""Run a trial's programs held by nothing, and end all they leave behind: trust `host`."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import secrets
import select
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from steelyard.components.environment import TOKEN_VARIABLE
from steelyard.environments import processes
from steelyard.environments.process_trees import descendants, end_marked
from steelyard.environments.sandbox_limits import MIB
from steelyard.fix import supervisor
from steelyard.fix.runner_values import (
    WATCH_EVERY_S,
    RunnerFault,
    Stage,
    StageEnd,
    UnknownEnd,
    Watch,
    refused,
)
from steelyard.fix.trial_tree import TrialTree

FIRST_FD: Final = 5
"""The number of a program's first descriptor of `Stage.fds`."""
_PATIENCE_S: Final = 10.0
_LAST_CHANCE_MS: Final = 2000


async def run_supervised(stage: Stage, tree: TrialTree, watch: Watch) -> StageEnd:
    """Run a program below a supervisor of its own, to the end of all it started.

    Raises:
        RunnerFault: this system has no subreapers.
        UnknownEnd: the supervisor was ended, or something does not end.
        OSError: this machine can start no process.
    """
    token = f"fix-{tree.folder.name}-{secrets.token_hex(8)}"
    status_read, status_write = os.pipe2(os.O_CLOEXEC)
    control_read, control_write = os.pipe2(os.O_CLOEXEC)
    ours, theirs = [status_read, control_write], [status_write, control_read]
    told = {
        "argv": list(stage.argv),
        "cwd": str(tree.top / stage.cwd),
        "timeout_s": stage.timeout_s,
        "processes": stage.limits.processes,
        "patience_s": _PATIENCE_S,
        "rlimits": {
            "RLIMIT_CORE": 0,
            "RLIMIT_FSIZE": stage.limits.disk_mb * MIB,
            "RLIMIT_DATA": stage.limits.memory_mb * MIB,
        },
    }
    program = Path(supervisor.__file__)
    command = processes.Command(
        [sys.executable, "-I", "-S", str(program), "3", "4", json.dumps(told)],
        {**stage.variables, TOKEN_VARIABLE: token},
        "/",
        pass_fds=(status_write, control_read, *stage.fds),
        only_launches=True,
    )

    async def let_go(_process: processes.Process) -> None:
        while theirs:
            os.close(theirs.pop())

    def ask_for_the_end() -> None:
        ours.remove(control_write)
        os.close(control_write)  # the supervisor ends everything, then itself

    def last_chance(pid: int) -> list[int]:
        """Let the supervisor do it where we were cancelled: once it is gone, nobody adopts."""
        if control_write in ours:
            ask_for_the_end()
        with suppress(ProcessLookupError):
            pidfd = os.pidfd_open(pid)
            try:
                waiting = select.poll()
                waiting.register(pidfd, select.POLLIN)
                waiting.poll(_LAST_CHANCE_MS)
            finally:
                os.close(pidfd)
        return descendants(pid)

    async def look() -> str | None:
        if (reason := await watch()) is not None and control_write in ours:
            watch.reason = reason
            ask_for_the_end()
        return None

    async def end_rest() -> None:
        if await asyncio.to_thread(end_marked, token):
            raise OSError(errno.EBUSY, "processes of the trial do not end")

    try:
        ended = await processes.run(
            command,
            timeout_s=stage.timeout_s + 3 * _PATIENCE_S,
            max_output_bytes=stage.limits.output_bytes,
            keeps_last=True,
            on_start=let_go,
            watch=look,
            watch_every_s=WATCH_EVERY_S,
            end_tree=end_rest,
            find_more=last_chance,
        )
        said = os.read(status_read, 65536)
    finally:
        for fd in ours + theirs:
            os.close(fd)
    return await _supervised_end(said, ended, watch, stage)


async def _supervised_end(
    said: bytes, ended: processes.Ended, watch: Watch, stage: Stage
) -> StageEnd:
    try:
        told: Mapping[str, Any] = json.loads(said)
    except ValueError as error:
        raise UnknownEnd(
            f"what started the program was itself ended ({ended.returncode}): nobody can say "
            "how it went"
        ) from error
    if fault := told.get("fault"):
        raise RunnerFault(str(fault))
    if not told["is_empty"]:
        raise UnknownEnd("processes of the trial do not end")
    stopped_by = watch.reason or await watch.last_look()
    if told["why"] == "processes":
        stopped_by = f"processes: more than {stage.limits.processes}"
    elif told["why"] == "request" and stopped_by is None:
        stopped_by = "stopped"
    if refusal := told["refusal"]:
        return refused(f"{stage.argv[0]}: {refusal}")
    return StageEnd(
        told["exit_code"],
        ended.stdout,
        ended.stderr,
        told["why"] == "time",
        stopped_by,
        float(told["duration_s"]),
    )
