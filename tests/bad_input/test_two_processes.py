"""Another process writes a run while we look at it, or wants the same one."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from steelyard.analyzers.failures import Failures
from steelyard.components.issues import Outcome
from steelyard.engine.analysis import analyze
from steelyard.results.comparison import compare_runs
from steelyard.results.formats import Standing, formats_of
from steelyard.results.reader import RunReader, RunState
from steelyard.results.records import AttemptRecord
from steelyard.results.retention import Rule, StillRunning, find_runs, judge, remove_run
from steelyard.results.reuse import (
    DecisionKind,
    PlanShape,
    ReuseSource,
    SourceUnusable,
    choose_source,
)
from steelyard.results.summary import summarise
from tests.bad_input.command import HEAD, steelyard
from tests.results.workload import EVALUATION, a_record, generation
from tests.results.written import write_run

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
COUNT = 600
LATER = datetime(2030, 1, 1, tzinfo=UTC)
SHAPE = PlanShape("toy", 2, "avg", False)

WRITER = """
import sys, time
from pathlib import Path
from steelyard.components.clock import SystemClock
from steelyard.results.journal import EventKind, Journal, Syncer
from tests.bad_input.test_two_processes import COUNT, record_of
from tests.results.workload import a_run
folder = a_run(Path(sys.argv[1]), "live")
syncer = Syncer()
journal = Journal(folder, clock=SystemClock(), syncer=syncer)
journal.event(EventKind.PLANNED, tasks=COUNT, k=1)
for number in range(COUNT):
    names = {"task_id": f"t{number}", "attempt": 1, "execution": 1, "token": f"x{number}"}
    journal.event(EventKind.STARTED, **names)
    journal.flush()
    journal.record(record_of(number))
    journal.flush()
    if number % 10 == 0:
        time.sleep(0.01)
print("written", flush=True)
sys.stdin.read()
"""

COPIER = """
import sys, time
from pathlib import Path
data, target = Path(sys.argv[1]).read_bytes(), Path(sys.argv[2])
with target.open("wb", buffering=0) as file:
    for at in range(0, len(data), 7001):
        file.write(data[at : at + 7001])
        time.sleep(0.002)
"""


def record_of(number: int) -> AttemptRecord:
    return a_record(f"t{number}", 1, metrics={"accuracy": number % 3 == 0}, answer="x" * 200)


@contextmanager
def started(code: str, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-c", code, *words],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def until_there(path: Path) -> None:
    deadline_s = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


def test_a_run_that_another_process_writes_is_seen_as_it_stands(tmp_path: Path) -> None:
    earlier = write_run(tmp_path, [a_record("t0", 1), a_record("t1", 1)], run_id="earlier").root
    live = tmp_path / "toy" / "live"
    with started(WRITER, str(tmp_path)) as writer:
        until_there(live / "events.jsonl")
        reader, position, followed, scored, looks = RunReader(live), 0, [], 0, 0
        while scored < COUNT:
            new, position = reader.tail(position)
            followed += [record.task_id for record in new]
            metrics = summarise(live)
            now = metrics["attempts"]["outcomes"]["scored"]
            assert scored <= now <= COUNT
            scored = now
            assert metrics["warnings"] == []
            view = RunReader(live)
            assert view.state is RunState.RUNNING
            assert sum(view.ledger.outcomes.values()) + view.ledger.in_flight == view.ledger.planned
            assert len(list(view.records())) == view.ledger.outcomes.get(Outcome.SCORED, 0)
            assert analyze(live, (Failures(Failures.Params()),)).faults == ()
            compare_runs([earlier, live], common_only=True)
            assert choose_source(live.parent, SHAPE).taken == "earlier"
            with pytest.raises(SourceUnusable, match="it is running now"):
                choose_source(live.parent, SHAPE, "live")
            (verdict,) = (
                one for one in judge(list(find_runs(tmp_path)), Rule(keep_last=0), LATER)
                if one.run.root == live
            )  # fmt: skip
            assert (verdict.goes, verdict.why) == (False, "it is running")
            with pytest.raises(StillRunning, match="is running"):
                remove_run(verdict.run)
            assert {file.standing for file in formats_of(live)} == {Standing.CURRENT}
            looks += 1
        assert looks > 1
        new, position = reader.tail(position)
        followed += [record.task_id for record in new]
        assert followed == [f"t{number}" for number in range(COUNT)]
        assert sorted(path.name for path in live.iterdir()) == [
            "attempts.jsonl", "events.jsonl", "lock", "run.json",
        ]  # fmt: skip
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"written\n"
    assert RunReader(live).state is RunState.DEAD


def test_a_run_that_is_being_copied_here_gives_what_has_arrived(tmp_path: Path) -> None:
    """Nobody holds its lock: all that tells is the lines."""
    whole = write_run(tmp_path, [record_of(n) for n in range(COUNT)], run_id="whole").root
    here = write_run(tmp_path, [], run_id="here").root
    taken = 0
    with started(COPIER, str(whole / "attempts.jsonl"), str(here / "attempts.jsonl")) as copier:
        while copier.poll() is None or taken < COUNT:
            source = ReuseSource(here)
            decisions = [
                source.decide(f"t{n}", 1, generation(f"t{n}"), EVALUATION) for n in range(COUNT)
            ]
            kinds = [one.kind for one in decisions]
            now = kinds.count(DecisionKind.REUSE)
            assert now >= taken
            taken = now
            assert kinds == [DecisionKind.REUSE] * now + [DecisionKind.EXECUTE] * (COUNT - now)
            for number, one in enumerate(decisions[:now]):
                assert one.record is not None
                assert one.record.metrics == {"accuracy": number % 3 == 0}
            assert summarise(here)["attempts"]["outcomes"]["scored"] >= now


def test_one_run_id_is_one_process_s_alone(project: Path) -> None:
    """Started at once: one runs, the others are told, and the run is whole."""
    (project / "o.yaml").write_text(HEAD + "  - name: a\n    output: {run_id: same}\n")
    command = [sys.executable, "-m", "steelyard", "launch", "o.yaml", "--json"]
    both = [
        subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(3)
    ]
    ended = [(one.communicate(timeout=120), one.returncode) for one in both]
    assert sorted(status for _, status in ended) == [0, 2, 2]
    for (out, err), status in ended:
        assert b"Traceback" not in out + err
        if status == 2:
            assert "is in use" in json.loads(out)["error"]["problems"][0]["message"]
    (run,) = (project / "results" / "a").iterdir()
    reader = RunReader(run)
    assert reader.ledger.outcomes[Outcome.SCORED] == 5
    assert len(list(reader.records())) == 5
    assert reader.warnings == ()
    steelyard(project, "summary", str(run), status=0)
