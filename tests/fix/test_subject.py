"""The subject form: many conversations at once, plain bytes, and nothing left of any of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.fix.trial import Limits, Outcome, Program
from tests.fix.attacks import expected_trust, running
from tests.fix.world import PYTHON, World, try_out

pytestmark = pytest.mark.integration

TALK = """
import json, os, socket
def opened():
    speaker = socket.socket(socket.AF_UNIX)
    speaker.connect(os.environ["STEELYARD_SUBJECT"])
    return speaker.makefile("rwb")
files = [opened() for _ in range(3)]
for number, file in enumerate(files):
    file.write(b"%d" % number * 300_000 + b"\\n")
    file.flush()
said = [file.readline() for file in files]
answer = sum(line == b"%d" % number * 300_000 + b"\\n" for number, line in enumerate(said))
files[0].write(b"count\\n")
files[0].flush()
with open(os.environ["STEELYARD_RESULT_PATH"], "w") as out:
    json.dump({"metrics": {"answer": answer, "lines": int(files[0].readline())}}, out)
"""
ECHO = """
import sys
lines = 0
for line in sys.stdin.buffer:
    lines += 1
    sys.stdout.buffer.write(b"%d\\n" % lines if line == b"count\\n" else line)
    sys.stdout.buffer.flush()
"""


def subject(folder: Path) -> Program:
    """Give a subject whose processes can be told from those of other tests."""
    return Program((PYTHON, "src/echo.py", str(folder)))


BENCHMARK = Program((PYTHON, "bench/talk.py"))


def test_each_connection_is_a_subject_of_its_own(tmp_path: Path) -> None:
    world = World(tmp_path / "w", {"bench/talk.py": TALK, "src/echo.py": ECHO})
    result = try_out(
        world, {}, benchmark=BENCHMARK, subject=subject(tmp_path), metrics=("answer", "lines")
    )
    assert result.outcome is Outcome.COMPLETED, result
    assert result.metrics == {"answer": 3.0, "lines": 2.0}
    assert result.trust is expected_trust(has_subject=True)
    assert result.stages[0].name == "benchmark"
    assert running(f"src/echo.py\0{tmp_path}") == []
    assert list((world.state / "trials").glob("trial-*")) == []


def test_a_subject_that_does_not_answer_is_ended_with_the_trial(tmp_path: Path) -> None:
    silent = "import time\ntime.sleep(60)  # silent-subject\n"
    world = World(tmp_path / "w", {"bench/talk.py": TALK, "src/echo.py": silent})
    result = try_out(
        world,
        {},
        benchmark=BENCHMARK,
        subject=subject(tmp_path),
        metrics=("answer", "lines"),
        limits=Limits(timeout_s=2),
    )
    assert (result.outcome, result.metrics) == (Outcome.TIMED_OUT, {})
    assert running(f"src/echo.py\0{tmp_path}") == []


def test_a_subject_that_crashes_is_an_end_of_the_stream_to_the_benchmark(tmp_path: Path) -> None:
    world = World(tmp_path / "w", {"bench/talk.py": TALK, "src/echo.py": "raise SystemExit(3)\n"})
    result = try_out(world, {}, benchmark=BENCHMARK, subject=subject(tmp_path), metrics=("answer",))
    assert result.outcome is Outcome.FAILED, result
    assert result.reason
    assert "the benchmark ended with 1" in result.reason
