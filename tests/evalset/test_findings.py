"""Findings on the disk: nothing twice, nothing lost, and what people say of them."""

from __future__ import annotations

import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from steelyard.components.clock import SystemClock
from steelyard.components.issues import Outcome
from steelyard.config.errors import BadInput
from steelyard.evalset.evidence import evidence_context
from steelyard.evalset.finding_store import FindingsBusy, FindingStore, NewerFindings
from steelyard.evalset.finding_values import TriageState, work_digest
from steelyard.evalset.findings import FindingLog, NoSuchFinding
from steelyard.evalset.layout import SetFiles
from steelyard.results.files import OF_SETS, StorageFailed, WritePoint
from steelyard.results.lines import encode
from steelyard.results.lock import RunLock
from steelyard.results.records import Timing
from steelyard.testing.fake_run import sample_record
from steelyard.testing.faults import FailAt, KillAt, kill_plans
from tests.evalset.findings_child import scanned
from tests.evalset.living_sets import living_set
from tests.evalset.scanner_of_tests import Words
from tests.evalset.scanning_sets import made
from tests.evalset.scanning_sets import scanned as scan

CHILD = Path(__file__).with_name("findings_child.py")
CLOCK = SystemClock()


def store_in(root: Path, **options: object) -> FindingStore:
    return FindingStore(SetFiles(root), clock=CLOCK, **options)  # type: ignore[arg-type]


def log_in(root: Path) -> FindingLog:
    return FindingLog(SetFiles(root))


def has_read(log: FindingLog, case: str) -> bool:
    return log.has_read("s", "1", (0, case, 1), f"digest-{case}")


def add_all(root: Path, cases: int) -> None:
    """Add what the child adds, in this process."""
    store = store_in(root)
    for number in range(cases):
        store.add([scanned(f"case-{number}", f"first {number}", f"second {number}")])


def child(root: Path, plan: str, *words: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, str(CHILD), str(root), plan, *words]
    return subprocess.run(command, capture_output=True, check=False, timeout=60)


def test_what_is_added_is_read_back(tmp_path: Path) -> None:
    new = store_in(tmp_path).add([scanned("a", "one", "two"), scanned("b")])
    assert [one.evidence for one in new] == ["one", "two"]
    log = log_in(tmp_path)
    assert list(log.findings.values()) == new
    assert has_read(log, "a")
    assert has_read(log, "b")
    assert not has_read(log, "c")
    assert log.warnings == ()


def test_the_same_is_added_once_within_a_call_and_over_processes(tmp_path: Path) -> None:
    first, second = store_in(tmp_path), store_in(tmp_path)
    assert len(first.add([scanned("a", "one", "one")])) == 1
    assert second.add([scanned("a", "one")]) == []
    assert len(log_in(tmp_path).findings) == 1


def test_people_say_what_they_make_of_a_finding_and_it_can_be_taken_back(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    (one,) = store.add([scanned("a", "one")])
    store.judge(one.id[:6], TriageState.DISMISSED, by="ann", why="it is a test")
    store.judge(one.id, TriageState.OPEN, by="bob", why="no, it is not")
    (view,) = log_in(tmp_path).views()
    assert view.state is TriageState.OPEN
    assert [(said.by, said.state.value, said.why) for said in view.triage] == [
        ("ann", "dismissed", "it is a test"),
        ("bob", "open", "no, it is not"),
    ]


def test_an_id_may_be_cut_while_it_is_of_one_finding(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    found = store.add([scanned(str(number), "one") for number in range(400)])
    with pytest.raises(NoSuchFinding, match="too short"):
        store.log.find(found[0].id[:2])
    with pytest.raises(NoSuchFinding, match="no finding"):
        store.log.find("zzzzzz")
    assert store.log.find(found[7].id[:12]) == found[7]
    twin = replace(found[7], id=found[7].id[:8] + "~")
    store.log.findings[twin.id] = twin
    with pytest.raises(NoSuchFinding, match="2 findings"):
        store.log.find(found[7].id[:8])


# -- damage ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["findings.jsonl", "scans.jsonl"])
@pytest.mark.parametrize("damage", [b'{"torn": ', b"edited by hand\n", b"{}\t00000000\n{}\n"])
def test_damage_is_said_kept_aside_and_gone_on_behind_the_last_valid_line(
    tmp_path: Path, name: str, damage: bytes
) -> None:
    store_in(tmp_path).add([scanned("a", "one")])
    path = tmp_path / name
    with path.open("ab") as file:
        file.write(damage)
    log = log_in(tmp_path)
    assert has_read(log, "a")
    assert any(name in warning for warning in log.warnings)
    store_in(tmp_path).add([scanned("b", "two")])
    log = log_in(tmp_path)
    assert log.warnings == ()
    assert len(log.findings) == 2
    assert has_read(log, "b")
    assert (tmp_path / f"{name}.damaged-1").read_bytes() == damage


def test_where_findings_were_lost_their_attempt_is_read_again(tmp_path: Path) -> None:
    store_in(tmp_path).add([scanned("a", "one"), scanned("b")])
    (tmp_path / "findings.jsonl").unlink()
    log = log_in(tmp_path)
    assert not has_read(log, "a")
    assert has_read(log, "b")
    assert len(store_in(tmp_path).add([scanned("a", "one")])) == 1


def test_lines_that_are_none_of_ours_are_left_out_and_said(tmp_path: Path) -> None:
    store_in(tmp_path).add([scanned("a", "one")])
    with (tmp_path / "findings.jsonl").open("ab") as file:
        file.write(encode({"schema": "finding/1", "id": 7}))
        file.write(encode({"schema": "triage/1", "finding": "x", "state": "loved"}))
    log = log_in(tmp_path)
    assert len(log.findings) == 1
    assert log.warnings == ("2 lines are none of this product's, and left out",)


def test_files_of_a_newer_version_are_not_gone_on_with(tmp_path: Path) -> None:
    store_in(tmp_path).add([scanned("a", "one")])
    path = tmp_path / "findings.jsonl"
    with path.open("ab") as file:
        file.write(encode({"schema": "finding/2", "id": "x"}))
    before = path.read_bytes()
    with pytest.raises(NewerFindings, match="newer than finding/1"):
        store_in(tmp_path).add([scanned("b", "two")])
    assert path.read_bytes() == before


@pytest.mark.parametrize("make", ["folder", "fifo", "link"])
def test_what_is_no_file_is_said_and_not_written_to(tmp_path: Path, make: str) -> None:
    import os

    path = tmp_path / "findings.jsonl"
    elsewhere = tmp_path / "elsewhere"
    if make == "folder":
        path.mkdir()
    elif make == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to(elsewhere)
    assert list(log_in(tmp_path).views()) == []
    with pytest.raises(StorageFailed):
        store_in(tmp_path).add([scanned("a", "one")])
    assert not elsewhere.exists()


def test_a_full_disk_keeps_what_was_written_whole(tmp_path: Path) -> None:
    store_in(tmp_path).add([scanned("a", "one")])
    faults = FailAt(WritePoint.FINDINGS_APPENDED, bytes_taken=20)
    with pytest.raises(StorageFailed):
        store_in(tmp_path, faults=faults).add([scanned("b", "two")])
    log = log_in(tmp_path)
    assert len(log.findings) == 1
    assert log.warnings == ()
    assert not has_read(log, "b")


def test_who_holds_the_findings_for_too_long_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("steelyard.evalset.finding_store.LOCK_WAIT_S", 0.1)
    lock = RunLock.acquire(SetFiles(tmp_path).findings_lock)
    with pytest.raises(FindingsBusy):
        store_in(tmp_path).add([scanned("a", "one")])
    lock.release()
    assert len(store_in(tmp_path).add([scanned("a", "one")])) == 1


# -- identity ----------------------------------------------------------------------------------


def test_the_same_work_has_one_digest_and_another_execution_another() -> None:
    record = replace(sample_record("t", 1, Outcome.SCORED), timing=Timing(agent_s=1.25))
    same = replace(
        record,
        metrics={"passed": False},
        evaluation="other",
        reused_from={"run_id": "r", "path": "p"},
        timing=Timing(agent_s=1.25, evaluate_s=9.0, started_at="2026-12-01T00:00:00.000Z"),
    )
    assert work_digest(same) == work_digest(record)
    for change in (
        {"timing": Timing(agent_s=1.250001)},
        {"answer": "43"},
        {"attempt": 2},
        {"trajectory": {"path": "p", "sha256": "0" * 64}},
        {"artifacts": ({"path": "p", "sha256": "0" * 64},)},
    ):
        assert work_digest(replace(record, **change)) != work_digest(record)  # type: ignore[arg-type]


def test_evidence_is_shown_where_it_stands(tmp_path: Path) -> None:
    living = living_set(tmp_path, agents=("base",), repeats=1)
    living.run(0, harness={"steps": True})
    one = scan(living, made(Words)).new[0]
    context = evidence_context(living.opened, one)
    assert (context.source, context.place) == ("agent", "message")
    assert (context.before, context.span, context.after) == ("", "think", "ing")
    assert "no step 99" in str(evidence_context(living.opened, replace(one, step=99)).missing)
    assert "not in its step" in str(
        evidence_context(living.opened, replace(one, evidence="no")).missing
    )
    assert "of no step" in str(evidence_context(living.opened, replace(one, step=None)).missing)
    assert "gone" in str(evidence_context(living.opened, replace(one, digest="x")).missing)
    assert "not in the set" in str(evidence_context(living.opened, replace(one, cell=9)).missing)


# -- processes ---------------------------------------------------------------------------------

NTH = {WritePoint.FINDINGS_CREATED: 2, WritePoint.FINDINGS_SCANS_CREATED: 2}
POINTS = [
    point
    for point in WritePoint
    if point in OF_SETS and point.startswith("findings_") and "damage" not in point
]
PLANS = [plan for point in POINTS for plan in kill_plans(point, NTH.get(point, 1))]
PLANS += [plan for point in POINTS for plan in kill_plans(point, 2) if point not in NTH]
DAMAGE = [
    plan
    for point in (
        WritePoint.FINDINGS_DAMAGE_WRITTEN,
        WritePoint.FINDINGS_DAMAGE_RENAMED,
        WritePoint.TAIL_CUT,
    )
    for plan in kill_plans(point)
]


@pytest.mark.integration
@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_a_killed_scan_loses_nothing_and_adds_nothing_twice(plan: KillAt, tmp_path: Path) -> None:
    killed = child(tmp_path, str(plan), "add", "3")
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    told = killed.stdout.decode().split()
    log = log_in(tmp_path)
    for case in told:
        assert has_read(log, case)
        assert sum(one.case == case for one in log.findings.values()) == 2
    # Whatever is said to be read has all that was found in it.
    for number in range(3):
        if has_read(log, f"case-{number}"):
            assert sum(one.case == f"case-{number}" for one in log.findings.values()) == 2
    add_all(tmp_path, 3)
    log = log_in(tmp_path)
    assert log.warnings == ()
    assert len(log.findings) == 6
    written = (tmp_path / "findings.jsonl").read_bytes().count(b"\n")
    assert written == 6, "a finding was written twice"


@pytest.mark.integration
@pytest.mark.parametrize("plan", DAMAGE, ids=str)
def test_a_kill_while_damage_is_kept_aside_loses_nothing(plan: KillAt, tmp_path: Path) -> None:
    store_in(tmp_path).add([scanned("old", "one")])
    with (tmp_path / "findings.jsonl").open("ab") as file:
        file.write(b"torn")
    killed = child(tmp_path, str(plan), "add", "1")
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    add_all(tmp_path, 1)
    log = log_in(tmp_path)
    assert log.warnings == ()
    assert len(log.findings) == 3
    aside = [path.read_bytes() for path in tmp_path.glob("findings.jsonl.damaged-*")]
    assert b"torn" in aside


@pytest.mark.integration
def test_processes_that_scan_and_judge_at_once_do_not_mix(tmp_path: Path) -> None:
    (one,) = store_in(tmp_path).add([scanned("known", "one")])
    command = [sys.executable, str(CHILD), str(tmp_path), "-"]
    children = [subprocess.Popen([*command, "add", "40"]) for _ in range(3)]
    children += [subprocess.Popen([*command, "judge", one.id]) for _ in range(3)]
    assert [process.wait(60) for process in children] == [0] * 6
    log = log_in(tmp_path)
    assert log.warnings == ()
    assert len(log.findings) == 81
    assert len(log.triage[one.id]) == 3
    assert (tmp_path / "findings.jsonl").read_bytes().count(b"\n") == 84


def test_the_matrix_has_a_row_for_every_write_of_findings() -> None:
    wanted = {point for point in WritePoint if point.startswith("findings_")}
    assert {plan.point for plan in (*PLANS, *DAMAGE)} >= wanted


def test_a_triage_of_nothing_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(BadInput):
        store_in(tmp_path).judge("abcdef", TriageState.TRIAGED, by="me", why="x")
    assert not (tmp_path / "findings.jsonl").exists()
