"""A disk that fills up in mid-run: the run ends `failed`, what is done is kept and goes on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from steelyard.components.issues import Outcome
from steelyard.config.errors import BadInput
from steelyard.engine.events import RunOutcome
from steelyard.results.files import StorageFailed, WritePoint
from steelyard.results.lock import is_alive
from steelyard.results.reader import RunReader, RunState
from steelyard.testing.faults import FailAt
from tests.bad_input.command import PACK, write_pack
from tests.engine.launching import records, request, run_all

INJECTED = {
    "the records": FailAt(WritePoint.ATTEMPTS_APPENDED, nth=4, bytes_taken=50),
    "the intents": FailAt(WritePoint.EVENTS_APPENDED, nth=6, bytes_taken=10),
    "a sync": FailAt(WritePoint.ATTEMPTS_SYNCED, nth=1),
    "the progress": FailAt(WritePoint.PROGRESS_WRITTEN, nth=2),
}


@pytest.mark.parametrize("what", INJECTED)
def test_a_full_disk_ends_the_run_and_keeps_what_is_done(tmp_path: Path, what: str) -> None:
    plan = INJECTED[what]
    faults = FailAt(plan.point, plan.nth, bytes_taken=plan.bytes_taken)
    slow = {"sleep_s": 0.05}  # the progress is written twice a second
    one = request(benchmark={"tasks": 20}, harness=slow, output={"run_id": "full"})
    result = run_all(tmp_path, one, faults=faults, task_concurrency=1)
    (ended,) = result.requests
    assert (ended.outcome, result.exit_status) == (RunOutcome.FAILED, 1)
    assert "No space left on device" in (ended.reason or "")
    assert "`--reuse` then goes on" in (ended.reason or "")
    assert sum(ended.counts.values()) == 20
    reader = RunReader(ended.run_dir)
    kept = list(reader.records())
    # What is told is what the disk has.
    assert ended.counts == {
        outcome: reader.settled_ledger.outcomes.get(outcome, 0) for outcome in Outcome
    }
    assert len(kept) < 20
    again = run_all(
        tmp_path, request(benchmark={"tasks": 20}, harness=slow, runtime={"reuse": True})
    )
    assert again.outcome is RunOutcome.COMPLETED
    taken = [record for record in records(again) if record.reused_from is not None]
    assert len(taken) == sum(record.outcome is Outcome.SCORED for record in kept)


def test_another_request_on_the_same_disk_is_judged_for_itself(tmp_path: Path) -> None:
    faults = FailAt(WritePoint.ATTEMPTS_APPENDED, nth=3, times=1)
    result = run_all(tmp_path, request("a"), request("b"), faults=faults, task_concurrency=1)
    outcomes = sorted(ended.outcome.value for ended in result.requests)
    assert (outcomes, result.exit_status) == (["completed", "failed"], 1)


SCRIPT = """\
mount -t tmpfs -o size=400k none small || exit 99
"$0" -m steelyard launch o.yaml --json > first.json 2> first.err; echo $? >> status
"$0" -m steelyard summary small/r/full/* > summary.md 2> summary.err; echo $? >> status
mount -o remount,size=8m small || exit 99
"$0" -m steelyard launch o.yaml --reuse --json > second.json 2> second.err; echo $? >> status
cat small/r/full/*/attempts.jsonl > records
"""


@pytest.mark.integration
def test_a_disk_that_is_really_full(project: Path) -> None:
    cases = [{"id": f"c{n}", "q": "?", "a": "z" * 3000 + str(n)} for n in range(300)]
    write_pack(project / "big", PACK.replace("tiny", "big"), cases)
    (project / "small").mkdir()
    (project / "o.yaml").write_text(
        "runtime: {results_dir: small/r}\ndefaults: {harness: {id: oracle}, model: {id: none}}\n"
        "requests: [{name: full, benchmark: {id: ./big}}]\n"
    )
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", SCRIPT, sys.executable],
        cwd=project, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = "".join((project / name).read_text() for name in ("first.err", "summary.err"))
    assert "Traceback" not in said
    assert (project / "status").read_text().split() == ["1", "1", "0"], said
    first, second = (json.loads((project / f"{n}.json").read_text()) for n in ("first", "second"))
    ledger = first["requests"][0]["outcomes"]
    assert first["requests"][0]["outcome"] == "failed"
    assert "No space left on device" in first["requests"][0]["reason"]
    assert sum(ledger.values()) == 300
    assert 0 < ledger["scored"] < 300
    # The figures can be read although the disk takes none.
    assert f"| scored | {ledger['scored']} |" in (project / "summary.md").read_text()
    assert "warning:" in (project / "summary.err").read_text()
    assert second["requests"][0]["outcomes"]["scored"] == 300
    lines = (project / "records").read_text().splitlines()
    whole = [json.loads(line.rpartition("\t")[0]) for line in lines]
    assert sum(record["reused_from"] is not None for record in whole) == ledger["scored"]


OPENING = {
    "the second folder": (FailAt(WritePoint.RUN_FOLDER_MADE, nth=2), BadInput),
    "the second document": (FailAt(WritePoint.RUN_DOCUMENT_WRITTEN, nth=2), StorageFailed),
    "the second journal": (FailAt(WritePoint.JOURNAL_CREATED, nth=3), StorageFailed),
}


@pytest.mark.parametrize("what", OPENING)
def test_a_request_that_cannot_be_opened_leaves_no_run_that_looks_alive_or_dead(
    tmp_path: Path, what: str
) -> None:
    plan, error = OPENING[what]
    faults = FailAt(plan.point, plan.nth)
    with pytest.raises(error, match="No space left on device"):
        run_all(tmp_path, request("a"), request("b"), faults=faults)
    (opened,) = (tmp_path / "results" / "a").iterdir()
    reader = RunReader(opened)
    assert reader.state is RunState.FINISHED
    assert "another request could not be opened" in (reader.finished or {})["reason"]
    for lock in (tmp_path / "results" / "b").glob("*/lock"):
        assert not is_alive(lock)
