"""Two processes on one run: one writes, and who was taken over can write nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from steelyard.fix.ledger import candidates, leases, readings, reviews, runs, trials
from steelyard.fix.ledger.database import NAME, Database
from steelyard.fix.ledger.errors import Fenced, RunBusy
from steelyard.fix.ledger.values import (
    CandidateEnd,
    NewReview,
    RunStage,
    Sealed,
    Slot,
)
from steelyard.results.lock import OwnerIdentity
from tests.fix.ledger.story import (
    BASELINE,
    LIMITS,
    RUN,
    WORKER,
    completed,
    new_run,
    proposal,
    started,
)

ROOT = Path(__file__).parents[3]
HERE = OwnerIdentity.of_this_process()
ELSEWHERE = replace(HERE, pid_namespace=-1, pid=7)
"""A process that can neither be asked nor be proved gone."""


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database.open(tmp_path) as opened:
        yield opened


def test_a_run_has_one_holder_at_a_time(database: Database) -> None:
    runs.start(database, new_run(), 1.0)
    leases.acquire(database, RUN, ELSEWHERE, 1.0, lease_s=60.0)
    with pytest.raises(RunBusy, match=r"process 7 .* is at work on the run r1"):
        leases.acquire(database, RUN, HERE, 60.0)
    assert leases.acquire(database, RUN, HERE, 61.0).token == 2


def test_who_holds_a_run_keeps_the_token_and_gets_more_time(database: Database) -> None:
    runs.start(database, new_run(), 1.0)
    first = leases.acquire(database, RUN, HERE, 1.0, lease_s=10.0)
    again = leases.acquire(database, RUN, HERE, 5.0, lease_s=10.0)
    assert (again.token, again.expires_at) == (first.token, 15.0)
    assert leases.renew(database, first, 9.0, lease_s=10.0).expires_at == 19.0


def test_a_run_that_is_given_back_is_free_at_once(database: Database) -> None:
    runs.start(database, new_run(), 1.0)
    lease = leases.acquire(database, RUN, ELSEWHERE, 1.0)
    leases.release(database, lease, 2.0)
    leases.release(database, lease, 2.0)
    assert leases.acquire(database, RUN, HERE, 3.0).token == 2
    leases.release(database, lease, 4.0)  # of an older holder: nothing happens
    with pytest.raises(RunBusy):
        leases.acquire(database, RUN, ELSEWHERE, 5.0)


@pytest.mark.integration
def test_the_run_of_a_process_that_died_is_taken_over_at_once(database: Database) -> None:
    runs.start(database, new_run(), 1.0)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        text = Path(f"/proc/{child.pid}/stat").read_text()
        ticks = int(text.rpartition(")")[2].split()[19])
        holder = replace(HERE, pid=child.pid, start_ticks=ticks)
        leases.acquire(database, RUN, holder, 1.0)
        with pytest.raises(RunBusy):
            leases.acquire(database, RUN, HERE, 1.0)
        child.kill()
        child.wait()
    assert leases.acquire(database, RUN, HERE, 1.0).token == 2


def test_a_process_of_another_boot_is_gone_and_of_an_unknown_one_is_not() -> None:
    assert leases.is_gone(replace(HERE, boot_id="before"), HERE)
    assert not leases.is_gone(replace(HERE, boot_id=None, pid=4_000_001), HERE)
    assert not leases.is_gone(replace(ELSEWHERE, pid=4_000_001), HERE)
    assert leases.is_gone(replace(HERE, pid=4_000_001), HERE)
    assert not leases.is_gone(replace(HERE, pid=os.getpid()), HERE)


def test_every_write_of_a_holder_that_was_taken_over_is_refused(database: Database) -> None:
    old = started(database)
    trial = trials.reserve(database, old, Slot(BASELINE, 0, 11), 3.0, owner=WORKER).trial.trial
    with database.writing() as writer:
        writer.execute("UPDATE leases SET token = token + 1")
    before = readings.snapshot(database, RUN, 4.0)
    writes: list[Callable[[], object]] = [
        lambda: trials.reserve(database, old, Slot(BASELINE, 1, 22), 4.0),
        lambda: trials.launch(database, old, trial, WORKER, 4.0),
        lambda: trials.end(database, old, trial, completed(), 4.0),
        lambda: candidates.reserve(database, old, proposal(0), 4.0),
        lambda: candidates.begin_editing(database, old, BASELINE, 4.0),
        lambda: candidates.seal(database, old, BASELINE, Sealed("t", "m"), 4.0),
        lambda: candidates.end(database, old, BASELINE, CandidateEnd.FAILED, None, 4.0),
        lambda: candidates.release(database, old, BASELINE, 4.0),
        lambda: reviews.record(database, old, NewReview(BASELINE, "bob", "pass", {}), 4.0),
        lambda: runs.open_run(database, old, 4.0),
        lambda: runs.set_clock(database, old, 4.0, is_running=False),
        lambda: runs.set_stage(database, old, RunStage.STOPPED, "so", 4.0),
        lambda: runs.delete(database, old, 4.0),
        lambda: leases.renew(database, old, 4.0),
    ]
    for write in writes:
        with pytest.raises(Fenced, match="not held under token 1 any more: it is at 2"):
            write()
    assert readings.snapshot(database, RUN, 4.0) == before


@pytest.mark.integration
def test_processes_that_write_at_once_lose_nothing_and_spend_no_more_than_there_is(
    database: Database, tmp_path: Path
) -> None:
    started(database, limits={**LIMITS, "max_scans": 12.0})
    child = str(Path(__file__).with_name("race_child.py"))
    racing = [
        subprocess.Popen(
            [sys.executable, child, str(tmp_path), name, "5"],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
        )
        for name in "abc"
    ]
    said = [process.communicate()[0].split() for process in racing]
    assert [process.returncode for process in racing] == [0, 0, 0]
    assert sum(len(words) for words in said) == 3
    found = readings.snapshot(database, RUN, 9.0)
    assert [one.place for one in found.operations] == list(range(1, 13))
    assert found.run.revision == 2 + 12  # opened once, steered twelve times


PROBE = """
import sqlite3, sys
try:
    sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None).execute("BEGIN IMMEDIATE")
except sqlite3.OperationalError as error:
    print(error)
"""


def probe(folder: Path) -> bytes:
    """What another process is told that wants to write now."""
    command = [sys.executable, "-c", PROBE, str(folder / NAME)]
    return subprocess.run(command, capture_output=True, check=True).stdout


@pytest.mark.integration
def test_a_second_opening_in_one_process_leaves_the_locks_of_the_first(
    database: Database, tmp_path: Path
) -> None:
    with database.writing() as writer, Database.open(tmp_path):
        writer.execute("DELETE FROM events")
        assert b"locked" in probe(tmp_path)


@pytest.mark.integration
def test_a_transaction_is_the_only_one_from_its_beginning_to_its_end(
    database: Database, tmp_path: Path
) -> None:
    with database.writing():
        assert b"locked" in probe(tmp_path)
    with database.reading():
        assert probe(tmp_path) == b""
    assert probe(tmp_path) == b""
