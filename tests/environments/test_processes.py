"""Programs are started few at a time, read within bounds and never leave descriptors behind."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from steelyard.environments import processes
from steelyard.environments.processes import Command, Ended, ProgramNotStarted, run
from steelyard.environments.spawn import spawn

ENV = {"PATH": os.environ["PATH"]}


def command(*argv: str, stdin: bytes = b"") -> Command:
    return Command(argv, ENV, "/", stdin)


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.integration
def test_at_most_eight_programs_start_at_once() -> None:
    starting = 0
    most = 0

    async def on_start(_process: processes.Process) -> None:
        nonlocal starting, most
        starting += 1
        most = max(most, starting)
        await asyncio.sleep(0.01)
        starting -= 1

    async def go() -> None:
        await asyncio.gather(
            *(run(command("true"), max_output_bytes=10, on_start=on_start) for _ in range(40))
        )

    asyncio.run(go())
    assert most == processes.MAX_STARTS


@pytest.mark.integration
def test_the_deadline_starts_when_the_program_has_started() -> None:
    async def slow_start(_process: processes.Process) -> None:
        await asyncio.sleep(0.5)

    ended = asyncio.run(
        run(command("true"), timeout_s=0.4, max_output_bytes=10, on_start=slow_start)
    )
    assert not ended.timed_out


@pytest.mark.integration
def test_a_failed_start_leaves_no_process_and_no_descriptor() -> None:
    before = 0

    async def failing(_process: processes.Process) -> None:
        raise OSError("no limits here")

    async def go() -> None:
        nonlocal before
        before = open_descriptors()
        running: set[processes.Process] = set()
        with pytest.raises(OSError, match="no limits here"):
            await run(
                command("sleep", "600"), max_output_bytes=10, on_start=failing, running=running
            )
        with pytest.raises(ProgramNotStarted):
            await run(command("no-such-program"), max_output_bytes=10)
        assert not running
        assert open_descriptors() == before

    asyncio.run(go())


@pytest.mark.integration
def test_no_thread_waits_for_a_program() -> None:
    async def go() -> int:
        jobs = [run(command("sleep", "0.5"), max_output_bytes=10) for _ in range(32)]
        waiting = asyncio.gather(*jobs)
        await asyncio.sleep(0.3)
        count = threading.active_count()
        await waiting
        return count

    before = threading.active_count()
    assert asyncio.run(go()) - before <= processes.MAX_STARTS


@pytest.mark.integration
def test_a_program_gets_no_descriptor_of_ours() -> None:
    held, other = os.pipe()
    os.set_inheritable(held, True)
    os.set_inheritable(other, True)
    listed = "import os; print(sorted(int(n) for n in os.listdir('/proc/self/fd')))"
    ended = asyncio.run(run(command(sys.executable, "-c", listed), max_output_bytes=1000))
    os.close(held)
    os.close(other)
    assert ended.stdout == b"[0, 1, 2, 3]\n"  # 3 is the listing's own


@pytest.mark.integration
def test_a_start_that_is_cancelled_leaves_no_process() -> None:
    async def go() -> None:
        for delay_s in (0.0, 0.0005, 0.001, 0.002, 0.005):
            starting = asyncio.ensure_future(run(command("sleep", "600"), max_output_bytes=10))
            await asyncio.sleep(delay_s)
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        names = [Path(f"/proc/{pid}/comm").read_text().strip() for pid in children]
        assert "sleep" not in names

    asyncio.run(go())


@pytest.mark.integration
def test_a_start_that_is_cancelled_twice_leaves_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []
    may_start = threading.Event()

    def slow(*args: Any, **named: Any) -> int:
        may_start.wait(10)
        started.append(spawn(*args, **named))
        return started[0]

    monkeypatch.setattr(processes, "spawn", slow)

    async def go() -> None:
        starting = asyncio.ensure_future(run(command("sleep", "600"), max_output_bytes=10))
        for _ in range(2):
            await asyncio.sleep(0.01)
            starting.cancel()
        await asyncio.sleep(0.01)
        may_start.set()
        await asyncio.gather(starting, return_exceptions=True)
        assert not Path(f"/proc/{started[0]}").exists()

    asyncio.run(go())


@pytest.mark.integration
def test_a_pipe_that_another_process_holds_does_not_delay_the_result() -> None:
    # The holder left its process group, and nobody ends it here: the read must end all the same.
    script = (
        "import subprocess\nprint(subprocess.Popen(['sleep', '600'], start_new_session=True).pid)"
    )

    async def go() -> Ended:
        async with asyncio.timeout(60):
            return await run(command(sys.executable, "-c", script), max_output_bytes=100)

    ended = asyncio.run(go())
    os.kill(int(ended.stdout), 9)
    assert ended.returncode == 0


@pytest.mark.integration
def test_a_watch_ends_the_program_and_says_why() -> None:
    async def watch() -> str | None:
        return "disk"

    ended = asyncio.run(
        run(command("sleep", "600"), max_output_bytes=10, watch=watch, watch_every_s=0.01)
    )
    assert (ended.stopped_by, ended.timed_out, ended.returncode) == ("disk", False, -9)


@pytest.mark.integration
def test_the_loop_stays_free_while_a_program_floods_its_output() -> None:
    async def go() -> tuple[Ended, int]:
        turns = 0
        flood = asyncio.ensure_future(run(command("yes"), timeout_s=0.5, max_output_bytes=1000))
        while not flood.done():
            await asyncio.sleep(0)
            turns += 1
        return await flood, turns

    ended, turns = asyncio.run(go())
    assert ended.truncated
    assert len(ended.stdout) == 1000
    assert turns > 20


@pytest.mark.integration
def test_a_launcher_steps_behind_the_loop_only_where_several_start_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    behind: list[bool] = []

    def noted(*args: Any, is_behind_us: bool) -> int:
        behind.append(is_behind_us)
        return spawn(*args, is_behind_us=is_behind_us)

    monkeypatch.setattr(processes, "spawn", noted)
    launcher = replace(command("true"), only_launches=True)

    async def go() -> None:
        await run(launcher, max_output_bytes=10)
        await run(command("true"), max_output_bytes=10)
        assert behind == [False, True]
        behind.clear()
        await asyncio.gather(*(run(launcher, max_output_bytes=10) for _ in range(6)))

    asyncio.run(go())
    assert True in behind
    assert False in behind
