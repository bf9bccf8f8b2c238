"""Trials within their walls: what is put in, how they end, what is found after them."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from steelyard.fix.local_runner import LocalRunner
from steelyard.fix.trial import Limits, Outcome, PlacedFile, Program, run_trial
from tests.fix.attacks import (
    FOUND,
    HONEST,
    reaches,
    running,
)
from tests.fix.world import PYTHON, World, try_out

pytestmark = pytest.mark.integration


def test_overlays_and_inputs_are_put_into_every_tree(tmp_path: Path) -> None:
    source = tmp_path / "cases.txt"
    source.write_text("frozen cases\n")
    import hashlib

    placed = PlacedFile(
        "data/cases.txt", source, hashlib.sha256(source.read_bytes()).hexdigest(), is_input=True
    )
    code = """
    import os
    folder = os.environ["STEELYARD_INPUTS_DIR"]
    assert os.environ["AGENTAGON_INPUTS_DIR"] == folder
    assert open("data/cases.txt").read() == "frozen cases\\n"
    assert open(folder + "/data/cases.txt").read() == "frozen cases\\n"
    """
    world = World(tmp_path / "w")
    world.rules = replace(world.rules, placed=("data/cases.txt",))
    assert try_out(world, reaches(code), placed=(placed,)).metrics == {"answer": FOUND}
    changes = reaches(code.rstrip() + "\n    open('data/cases.txt', 'w').write('easy')\n")
    result = try_out(world, changes, placed=(placed,))
    assert result.outcome is Outcome.FAILED
    assert "files of the evaluation changed while it ran: data/cases.txt" in str(result.reason)
    assert source.read_text() == "frozen cases\n"
    source.write_text("other\n")
    result = try_out(world, {}, placed=(placed,))
    assert result.outcome is Outcome.ERROR, "an input that is not what was frozen"


def test_a_benchmark_that_never_ends_and_one_that_is_stopped(tmp_path: Path) -> None:
    world = World(tmp_path / "w")
    edits = {"src/app.py": "import time\ndef answer():\n    time.sleep(60)\n"}
    result = try_out(world, edits, limits=Limits(timeout_s=0.8))
    assert (result.outcome, result.metrics) == (Outcome.TIMED_OUT, {})

    async def main() -> None:
        runner = world.runner()
        await runner.prepare()
        plan = await world.plan(runner, edits)
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            task = group.create_task(run_trial(plan, runner, stop=stop))
            await asyncio.sleep(0.6)
            stop.set()
        assert task.result().outcome is Outcome.CANCELLED
        task = asyncio.ensure_future(run_trial(replace(plan, trial="t2"), runner))
        await asyncio.sleep(0.6)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert list(runner.base.glob("trial-*")) == [], "no trial leaves a folder"
        runner.close()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("argv", "outcome", "said"),
    [
        (("no-such-program",), Outcome.ERROR, "cannot be started"),
        ((PYTHON, "-c", "raise SystemExit(3)"), Outcome.FAILED, "ended with 3"),
        ((PYTHON, "-c", "pass"), Outcome.FAILED, "wrote no result"),
        ((PYTHON, "-c", "import os; os.kill(os.getpid(), 11)"), Outcome.FAILED, "by signal 11"),
    ],
    ids=["absent", "exit code", "no result", "signal"],
)
def test_how_a_benchmark_falls_short(
    tmp_path: Path, argv: tuple[str, ...], outcome: Outcome, said: str
) -> None:
    result = try_out(World(tmp_path / "w"), {}, benchmark=Program(argv))
    assert result.outcome is outcome, result
    assert said in str(result.reason)


def test_the_search_path_and_a_virtual_environment_in_the_checkout_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path / "w", {".gitignore": ".venv/\n"})
    venv = world.origin / ".venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "pyvenv.cfg").write_text("")
    (venv / "bin" / "own-tool").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (venv / "bin" / "own-tool").chmod(0o755)
    monkeypatch.setenv("PATH", f"{venv / 'bin'}:{os.environ['PATH']}")
    result = try_out(world, {}, benchmark=Program(("own-tool", "bench/benchmark.py")))
    assert result.metrics == {"answer": HONEST}, result
    assert not result.is_marked, "no Python that we could put anything in front of"


DRIVER = """
import asyncio, sys
from dataclasses import replace
from pathlib import Path
sys.path.insert(0, {root!r})
from steelyard.fix.trial import run_trial
from tests.fix.world import World
async def main():
    world = World(Path({folder!r}))
    runner = world.runner()
    await runner.prepare()
    plan = await world.plan(runner, {{"src/app.py": {code!r}}})
    await run_trial(replace(plan, trial="t41"), runner)
asyncio.run(main())
"""


def test_a_trial_ends_with_whoever_started_it_and_its_folder_is_found(tmp_path: Path) -> None:
    marker = f"m{os.getpid()}{time.monotonic_ns()}"
    code = f"""
import os, subprocess, sys, time
def answer():
    words = [sys.executable, "-c", "import time; time.sleep(60)  # {marker}"]
    subprocess.Popen(words, start_new_session=True, env={{}})
    subprocess.run(words)
"""
    program = DRIVER.format(
        root=str(Path(__file__).parents[2]), folder=str(tmp_path / "w"), code=code
    )
    driver = subprocess.Popen([sys.executable, "-c", program], cwd="/")
    deadline = time.monotonic() + 60
    while len([pid for pid in running(marker) if pid != driver.pid]) < 2:
        assert driver.poll() is None, "it ended too soon"
        assert time.monotonic() < deadline
        time.sleep(0.05)
    driver.kill()
    driver.wait()
    deadline = time.monotonic() + 20
    while running(marker):
        assert time.monotonic() < deadline, "processes of the trial outlive its driver"
        time.sleep(0.05)
    origin = tmp_path / "w" / "app"
    runner = LocalRunner(origin, origin / ".steelyard" / "trials")
    assert runner.remove_leftovers({"t40"}) == []
    assert len(runner.remove_leftovers({"t41"})) == 1
    assert list(runner.base.glob("trial-*")) == []
