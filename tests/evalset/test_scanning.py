"""Scanners over sets: all is read once, a fault is named, what judges cost is held."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from steelyard.components.model import ToolCall
from steelyard.components.scanner import Finding, FindingSeverity, ScannedAttempt
from steelyard.components.steps import Step
from steelyard.config.redaction import Redactor
from steelyard.config.secrets import SecretStore
from steelyard.evalset.chosen_scanners import version_of
from steelyard.evalset.findings import finding_counts, findings_by_attempt
from steelyard.evalset.scan_helpers import HelperSpec
from steelyard.evalset.scanned_attempt import is_work
from steelyard.results.layout import RunFiles
from steelyard.results.lock import RunLock
from steelyard.results.reader import RunReader
from tests.evalset import scanner_of_tests
from tests.evalset.living_sets import LivingSet, living_set
from tests.evalset.scanner_of_tests import (
    Artifacts,
    DiesInHelpers,
    FailsAtOne,
    LengthParams,
    NewerWords,
    Slow,
    Wild,
    Words,
)
from tests.evalset.scanning_sets import log_of, made, scanned, views

STEPS = {"harness": {"steps": True}}


@pytest.fixture
def thinking(tmp_path: Path) -> LivingSet:
    """Four cells of two cases; in each the agent says `thinking`."""
    living = living_set(tmp_path)
    living.run_all(**STEPS)
    living.end()
    return living


def test_attempts_in_which_nothing_can_be_read_are_counted_and_remembered(tmp_path: Path) -> None:
    living = living_set(tmp_path)
    for index in (0, 1):
        living.run(index, **STEPS)
    for index in (2, 3):
        living.run(index)  # these agents leave no step at all
    living.end()
    result = scanned(living, made(Words))
    assert (result.attempts, result.read, result.silent) == (8, 8, 4)
    assert result.as_json()["silent"] == 4
    again = scanned(living, made(Words))
    assert (again.read, again.silent) == (0, 4)
    only = scanned(living, made(Words), cells=[living.opened.cells[3]])
    assert only.silent == 2
    assert log_of(living).reading().as_json() == {"attempts": 8, "silent": 4}


def test_who_reads_no_steps_says_nothing_of_them(tmp_path: Path) -> None:
    living = living_set(tmp_path, repeats=1)
    living.run_all()
    living.end()
    assert scanned(living, made(Artifacts)).silent == 0
    assert scanned(living, made(Words)).silent == 4


@pytest.mark.parametrize(
    ("step", "is_readable"),
    [
        (Step("agent", " \n"), False),
        (Step("system", "you are"), False),
        (Step("user", "do it"), False),
        (Step("agent", "done"), True),
        (Step("agent", "", reasoning="hm"), True),
        (Step("agent", "", tool_calls=(ToolCall("1", "bash", "{}"),)), True),
    ],
)
def test_a_call_or_words_of_the_agent_can_be_read(step: Step, is_readable: bool) -> None:
    assert is_work(step) is is_readable


class Counts(Words):
    """Remembers what it was handed."""

    id = "counts"
    seen: ClassVar[list[str]] = []

    async def scan(self, attempt: ScannedAttempt) -> Sequence[Finding]:
        self.seen.append(attempt.record.task_id)
        return await super().scan(attempt)


def test_every_attempt_is_read_and_what_is_found_is_kept(thinking: LivingSet) -> None:
    result = scanned(thinking, made(Words))
    assert (result.attempts, result.read, len(result.new)) == (8, 8, 8)
    assert result.exit_status == 0
    (view, *_) = views(thinking)
    one = view.finding
    assert (one.scanner, one.version, one.category, one.step) == ("words", "1", "word", 0)
    assert (one.matrix_key, one.evidence, one.confidence) == ("refunds/base/1", "think", 0.5)
    assert len({view.finding.id for view in views(thinking)}) == 8


def test_scanning_twice_reads_nothing_twice_and_adds_nothing(thinking: LivingSet) -> None:
    Counts.seen.clear()
    scanned(thinking, made(Counts))
    assert len(Counts.seen) == 8
    before = thinking.opened.files.findings.read_bytes()
    again = scanned(thinking, made(Counts))
    assert len(Counts.seen) == 8
    assert (again.attempts, again.read, again.new) == (8, 0, ())
    assert thinking.opened.files.findings.read_bytes() == before


def test_only_chosen_cells_are_read_and_the_rest_later(thinking: LivingSet) -> None:
    cells = thinking.opened.cells
    assert scanned(thinking, made(Words), cells=cells[:1]).read == 2
    assert scanned(thinking, made(Words)).read == 6


def test_a_newer_version_reads_all_anew_and_supersedes(thinking: LivingSet) -> None:
    scanned(thinking, made(Words))
    assert len(scanned(thinking, made(NewerWords)).new) == 8
    states = [(view.finding.version, view.shown_state) for view in views(thinking)]
    assert states == [("1", "superseded")] * 8 + [("2", "open")] * 8
    counts = finding_counts(thinking.opened)
    assert {
        "scanner": "words",
        "severity": "low",
        "state": "open",
        "agent": "base",
        "model": None,
        "count": 4,
    } in (counts)
    by_attempt = findings_by_attempt(thinking.opened)
    assert len(by_attempt) == 8
    assert [view.finding.version for view in by_attempt[0, "t0", 1]] == ["2"]


def test_other_parameters_are_another_version(thinking: LivingSet) -> None:
    one, other = made(Artifacts, least=1)[0], made(Artifacts, least=2)[0]
    assert version_of(one) != version_of(other)
    assert version_of(one) == version_of(Artifacts(LengthParams(least=1)))
    assert version_of(made(Words)[0]) == "1"
    assert version_of(one) == "1", "what is so by default is part of the version"


def test_an_attempt_that_was_executed_again_supersedes_what_was_found_before(
    thinking: LivingSet,
) -> None:
    scanned(thinking, made(Words))
    thinking.run(0, run_id="again", **STEPS)
    stale = [view.finding.cell for view in views(thinking) if view.is_superseded]
    assert stale == [0, 0]  # before any scanner has read the new execution
    assert len(scanned(thinking, made(Words)).new) == 2
    found = views(thinking)
    assert len(found) == 10
    assert sorted(view.finding.run == "again" for view in found if not view.is_superseded) == (
        [False] * 6 + [True] * 2
    )


def test_what_was_taken_over_by_another_run_is_not_read_again(thinking: LivingSet) -> None:
    scanned(thinking, made(Words))
    thinking.run(0, run_id="taken", runtime={"reuse": True}, **STEPS)
    reader = RunReader(thinking.opened.files.cell(thinking.opened.cells[0].folder) / "taken")
    assert all(record.reused_from for record in reader.records())
    result = scanned(thinking, made(Words))
    assert (result.attempts, result.read) == (8, 0)
    assert not any(view.is_superseded for view in views(thinking))


def test_a_record_at_which_a_scanner_fails_is_named_and_the_rest_goes_on(
    thinking: LivingSet,
) -> None:
    result = scanned(thinking, made(FailsAtOne, Words))
    assert result.exit_status == 1
    assert result.fault_count == len(result.faults) == 4
    assert str(result.faults[0]) == "fails-at-one: refunds/base/1 t1 #1: RuntimeError: as asked"
    assert len(result.new) == 12
    again = scanned(thinking, made(FailsAtOne))
    assert again.fault_count == 4  # what was not read is tried again


def test_what_is_no_list_of_findings_is_a_fault_of_the_scanner(thinking: LivingSet) -> None:
    result = scanned(thinking, made(Wild))
    assert result.exit_status == 1
    assert "not a Finding" in result.faults[0].message


@pytest.mark.parametrize(
    "bad",
    [
        Finding("c", FindingSeverity.LOW, "m", "e", 0, 1.5),
        Finding("c", FindingSeverity.LOW, "m", "e", 0, float("nan")),
        Finding("c", FindingSeverity.LOW, "m", "e", -1),
        Finding("c", FindingSeverity.LOW, "m", "e", True),
        Finding("c", "grave", "m", "e"),  # type: ignore[arg-type]
        Finding("c", FindingSeverity.LOW, None, "e"),  # type: ignore[arg-type]
    ],
)
def test_a_malformed_finding_is_never_kept(thinking: LivingSet, bad: Finding) -> None:
    class Malformed(Words):
        id = "malformed"

        async def scan(self, attempt: ScannedAttempt) -> Sequence[Finding]:
            return [bad]

    assert scanned(thinking, made(Malformed)).fault_count == 8
    assert views(thinking) == []


def test_a_damaged_trajectory_is_a_fault_at_its_record_alone(thinking: LivingSet) -> None:
    root = thinking.opened.run_dir(thinking.opened.cells[0])
    assert root is not None
    (path,) = root.glob("tasks/t0/attempt-1/trajectory.json")
    path.write_text("{}")
    result = scanned(thinking, made(Words))
    assert [(fault.case, fault.matrix_key) for fault in result.faults] == [("t0", "refunds/base/1")]
    assert len(result.new) == 7


def test_a_run_that_cannot_be_read_is_named_and_the_rest_is_read(thinking: LivingSet) -> None:
    root = thinking.opened.run_dir(thinking.opened.cells[1])
    assert root is not None
    RunFiles(root).document.write_text("{}")
    result = scanned(thinking, made(Words))
    assert len(result.unreadable) == 1
    assert result.exit_status == 1
    assert len(result.new) == 6


def test_secrets_are_hidden_by_value_before_anything_is_cut(thinking: LivingSet) -> None:
    secret = "sk-very-secret-0123456789"
    store = SecretStore({})
    store.put("env:KEY", secret)

    class Leaks(Words):
        id = "leaks"

        async def scan(self, attempt: ScannedAttempt) -> Sequence[Finding]:
            if attempt.record.task_id == "t1":
                raise RuntimeError("x" * 990 + secret)
            return [
                Finding("c", FindingSeverity.HIGH, f"said {secret}", "x" * 3_990 + secret * 3, 0)
            ]

    result = scanned(thinking, made(Leaks), redact=Redactor(store).text)
    written = thinking.opened.files.findings.read_text() + thinking.opened.files.scans.read_text()
    for text in (written, json.dumps(result.as_json())):
        assert "sk-very" not in text
        assert "said [redacted]" in text


def test_artifacts_are_handed_over_by_their_paths(tmp_path: Path) -> None:
    living = living_set(tmp_path, agents=("base",), repeats=1)
    root = living.run(
        0,
        harness={"execs": "cp /etc/hostname out.txt"},
        execution={"save_artifacts": [{"paths": ["out.txt"]}]},
    )
    records = list(RunReader(root).records())
    assert all(record.artifacts for record in records)
    result = scanned(living, made(Artifacts))
    host = Path("/etc/hostname").read_text()
    assert [one.evidence for one in result.new] == [f"out.txt: {host}"] * 2


def test_a_scan_waits_for_another_process_that_scans(thinking: LivingSet) -> None:
    lock = RunLock.acquire(thinking.opened.files.scan_lock)
    waits = threading.Event()

    async def both() -> int:
        from steelyard.evalset.scanning import scan_set

        async with asyncio.TaskGroup() as tasks:
            scan = tasks.create_task(scan_set(thinking.opened, made(Words), on_wait=waits.set))
            while not waits.is_set():
                await asyncio.sleep(0.01)
            assert not thinking.opened.files.scans.exists()
            lock.release()
        return scan.result().read

    assert asyncio.run(both()) == 8


# -- helpers -----------------------------------------------------------------------------------


@pytest.fixture
def helped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let processes help at once, whatever this machine has; the scan waits for them."""
    monkeypatch.setenv(scanner_of_tests.HELPER_BEGAN, str(tmp_path / "began"))
    monkeypatch.setattr("steelyard.evalset.scanning.HELPERS_AFTER_S", 0.0)
    monkeypatch.setattr("steelyard.evalset.scanning.helpers_worthwhile", lambda _cells: 2)


def helper(living: LivingSet, name: str) -> HelperSpec:
    return HelperSpec(living.root, (f"{scanner_of_tests.__file__}:{name}",), living.tmp_path)


@pytest.mark.integration
@pytest.mark.usefixtures("helped")
def test_processes_that_help_find_the_same_and_nothing_twice(tmp_path: Path) -> None:
    living = living_set(tmp_path, repeats=4)
    living.run_all(tasks=4, **STEPS)
    living.end()
    result = scanned(living, made(Slow), helpers=helper(living, "Slow"))
    assert result.exit_status == 0, result
    assert (result.attempts, result.read, len(result.new)) == (32, 32, 32)
    assert {one.message for one in result.new} == {"own", "helper"}
    assert len(log_of(living).findings) == 32
    again = scanned(living, made(Slow), helpers=helper(living, "Slow"))
    assert (again.attempts, again.read) == (32, 0)


@pytest.mark.integration
@pytest.mark.usefixtures("helped")
def test_a_helper_that_dies_is_said_of_its_cell_which_is_read_the_next_time(
    tmp_path: Path,
) -> None:
    living = living_set(tmp_path, repeats=4)
    living.run_all(tasks=4, **STEPS)
    living.end()
    result = scanned(living, made(DiesInHelpers), helpers=helper(living, "DiesInHelpers"))
    assert result.exit_status == 1
    assert 1 <= len(result.unreadable) <= 2
    assert "status -9" in result.unreadable[0]
    assert result.read == 32 - 4 * len(result.unreadable)
    rest = scanned(living, made(DiesInHelpers))
    assert (rest.read, rest.unreadable) == (32 - result.read, ())


@pytest.mark.integration
@pytest.mark.usefixtures("helped")
def test_helpers_that_cannot_begin_cost_nothing(
    thinking: LivingSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(scanner_of_tests.HELPER_BEGAN)
    result = scanned(thinking, made(Slow), helpers=helper(thinking, "NoSuchClass"))
    assert (result.exit_status, result.read) == (0, 8)
