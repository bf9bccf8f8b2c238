"""The plain calls: inside a running loop, in threads, and stopped by signals."""

from __future__ import annotations

import asyncio
import contextvars
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import steelyard as sy
from tests.sdk.parts import Say, Sums


def test_inside_a_running_loop_the_call_uses_a_loop_of_its_own() -> None:
    async def cell() -> tuple[sy.RunResult, sy.RunResult]:
        first = sy.run(Sums, Say)  # as in a notebook's cell
        again = await sy.arun(Sums, Say)
        await asyncio.sleep(0)
        return first, again

    for result in asyncio.run(cell()):
        assert result.is_complete


def test_context_variables_reach_the_call_inside_a_loop() -> None:
    user: contextvars.ContextVar[str] = contextvars.ContextVar("user", default="nobody")
    found: set[str] = set()

    async def cell() -> None:
        user.set("somebody")
        sy.run(Sums, Say, on_event=lambda _: found.add(user.get()))

    asyncio.run(cell())
    assert found == {"somebody"}


def test_a_loop_that_the_caller_has_set_stays_set() -> None:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        assert sy.run(Sums, Say).is_complete
        assert asyncio.get_event_loop_policy().get_event_loop() is loop
        assert loop.run_until_complete(sy.arun(Sums, Say)).is_complete
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def test_an_exception_comes_out_of_the_call_inside_a_loop_too() -> None:
    async def cell() -> None:
        sy.run(Sums, Say, k=0)

    with pytest.raises(sy.BadInput, match="k: found 0"):
        asyncio.run(cell())


def test_threads_launch_beside_each_other() -> None:
    found: dict[int, sy.RunResult] = {}

    def work(n: int) -> None:
        found[n] = sy.run(Sums, Say(Say.Params(text=str(n), sleep_s=0.1)), run_name=f"t{n}")

    threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    answers = {n: {record.answer for record in run.attempts()} for n, run in found.items()}
    assert answers == {0: {"0"}, 1: {"1"}, 2: {"2"}}
    assert not [t for t in threading.enumerate() if t.name == "steelyard-launch"]


def test_signal_handlers_are_put_back() -> None:
    def own(number: int, frame: object) -> None:
        """A caller's own."""

    before = [signal.signal(signal.SIGINT, own), signal.getsignal(signal.SIGTERM)]
    try:
        sy.run(Sums, Say)
        assert signal.getsignal(signal.SIGINT) is own
        assert signal.getsignal(signal.SIGTERM) is before[1]
    finally:
        signal.signal(signal.SIGINT, before[0])


SCRIPT = """
import asyncio, signal, sys, threading, time
import steelyard as sy
from tests.sdk.parts import Say, Sums

def told(event):
    if event.kind == "attempt_finished":
        print("ready", flush=True)

def work():
    harness = Say(Say.Params(text="1", sleep_s=0.2))
    return sy.run({"id": Sums, "tasks": 500}, harness, task_concurrency=1, on_event=told)

async def cell():
    return work()

before = signal.getsignal(signal.SIGINT)
try:
    result = asyncio.run(cell()) if sys.argv[1] == "loop" else work()
    print("no interrupt", result)
except KeyboardInterrupt:
    ends = time.monotonic() + 10
    while threading.active_count() > 1 and time.monotonic() < ends:
        time.sleep(0.01)  # a pool's thread may need a moment to end
    print("interrupted", signal.getsignal(signal.SIGINT) is before, threading.active_count())
"""


@pytest.mark.integration
@pytest.mark.parametrize("where", ["plain", "loop"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_in_order_and_then_does_what_it_always_did(
    where: str, number: signal.Signals, own_folder: Path
) -> None:
    (own_folder / "script.py").write_text(SCRIPT)
    root = Path(__file__).parents[2]
    process = subprocess.Popen(
        [sys.executable, "script.py", where],
        env={"PATH": "", "PYTHONPATH": str(root), "HOME": str(own_folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert err == ""
    last = out.splitlines()[-1]
    if number is signal.SIGINT:
        assert last == "interrupted True 1"
        assert process.returncode == 0
    else:
        assert process.returncode == -signal.SIGTERM
    result = sy.load_run(own_folder / "results" / "none_Sums_Say")
    assert result.outcome is sy.RunOutcome.CANCELLED
    assert result.reason is not None
    assert 1 <= result.counts[sy.Outcome.SCORED] < 500
    assert sum(result.counts.values()) == result.planned == 500


def test_a_deadline_of_the_caller_s_loop_is_kept() -> None:
    began = time.monotonic()

    async def work() -> None:
        harness = Say(Say.Params(sleep_s=60))
        await asyncio.wait_for(sy.arun(Sums, harness, task_concurrency=1), 0.3)

    with pytest.raises(asyncio.TimeoutError):
        asyncio.run(work())
    assert time.monotonic() - began < 20


STUBBORN = """
import asyncio
import steelyard as sy
from tests.sdk.parts import Say, Sums

class Stubborn(Say):
    api = 1
    id = "stubborn"

    async def run(self, context):
        print("ready", flush=True)
        try:
            await asyncio.sleep(60)
        finally:
            print("cleaning", flush=True)
            await asyncio.sleep(60)

sy.run({"id": Sums, "tasks": 1}, Stubborn(Stubborn.Params()))
"""


@pytest.mark.integration
def test_a_second_interrupt_gives_up_the_clean_up(own_folder: Path) -> None:
    (own_folder / "script.py").write_text(STUBBORN)
    root = Path(__file__).parents[2]
    process = subprocess.Popen(
        [sys.executable, "script.py"],
        env={"PATH": "", "PYTHONPATH": str(root), "HOME": str(own_folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    for line in ("ready\n", "cleaning\n"):
        assert process.stdout.readline() == line
        process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)  # the grace alone would be 30 s
    assert err.splitlines()[-1].startswith("KeyboardInterrupt")
    assert process.returncode == -signal.SIGINT
    run = sy.load_run(own_folder / "results" / "none_Sums_Stubborn")
    assert run.outcome is sy.RunOutcome.CANCELLED
    assert run.counts[sy.Outcome.CANCELLED] == 1
