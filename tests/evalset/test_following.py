"""Where a set stands: looked at again and again, and never wrong about its end."""

from __future__ import annotations

import json
import os
import shutil
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from steelyard.components.clock import SystemClock, utc_text
from steelyard.components.issues import Outcome
from steelyard.engine.events import RunOutcome
from steelyard.evalset.expansion import Cell
from steelyard.evalset.following import SetFollower, standing_of
from steelyard.evalset.set_document import SetCell
from steelyard.evalset.set_reader import OpenedSet, SetUnreadable
from steelyard.evalset.states import EXIT_STATUS, TERMINAL, CellState, SetState
from steelyard.results.layout import RunFiles
from steelyard.results.lock import RunLock
from tests.evalset.living_sets import LivingSet, living_set


class SteppingClock(SystemClock):
    """A wall clock that a test sets."""

    def __init__(self) -> None:
        self.wall = datetime.now(UTC)
        self.steady_s = 1_000.0

    def now(self) -> datetime:
        return self.wall

    def monotonic(self) -> float:
        return self.steady_s


def progress_file(root: Path, **fields: Any) -> None:
    RunFiles(root).progress.write_text(json.dumps({"schema": "progress/1", **fields}))


def running_cell(made: LivingSet, index: int, **progress: Any) -> RunLock:
    """Put a cell where a live process runs it, as far as files say."""
    other = made.run(index, run_id="elsewhere")
    (other / "progress.json").unlink()
    fields = {"planned": 10, "ended": 4, "running": 2, "outcomes": {"scored": 4}, **progress}
    progress_file(other, **fields)
    return RunLock.acquire(other / "lock")


def test_a_set_is_counted_by_cells_attempts_and_agents(tmp_path: Path) -> None:
    made = living_set(tmp_path, packs=("a", "b"))
    made.run(0)
    made.run(1, harness={"right": {"t0": [1], "t1": [2]}})
    made.run(2, harness={"errors": ["t1"]})
    standing = standing_of(made.opened)
    assert standing.state is SetState.RUNNING
    assert standing.exit_status is None
    assert standing.states == {CellState.PENDING: 5, CellState.COMPLETED: 3}
    assert standing.cells[3].planned == 2  # as others of its pack
    assert standing.cells[4].planned is None
    assert standing.planned is None
    assert (standing.ended, standing.failed) == (6, 1)
    assert standing.issues == {"agent_failed": 1}
    base, new = standing.agents
    assert (base.agent, base.ended, base.failed) == ("base", 4, 0)
    assert base.score is not None
    assert (base.score.value, base.score.cases, base.score.attempts) == (0.75, 2, 4)
    assert new.score is not None
    assert new.score.value == 0.5  # a failure is 0, by the benchmark's rule
    assert [(row.pack, row.agent) for row in standing.rows] == [
        ("a", "base"),
        ("a", "new"),
        ("b", "base"),
        ("b", "new"),
    ]


def test_what_rests_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = living_set(tmp_path)
    made.run(0)
    follower = SetFollower(made.opened)
    first = follower.look()
    assert follower.changed == (0,)

    def read(*_: object) -> None:
        raise AssertionError("it is read again")

    monkeypatch.setattr(OpenedSet, "status", read)
    monkeypatch.setattr(OpenedSet, "submissions", read)
    monkeypatch.setattr("steelyard.evalset.watched_cell.read_run_document", read)
    again = follower.look()
    assert follower.changed == ()
    assert again.cells == first.cells
    assert again.agents == first.agents


def test_a_cell_that_ends_is_seen_and_no_other_is(tmp_path: Path) -> None:
    made = living_set(tmp_path)
    follower = SetFollower(made.opened)
    follower.look()
    made.run(2)
    standing = follower.look()
    assert follower.changed == (2,)
    assert standing.cells[2].state is CellState.COMPLETED
    made.run(2, run_id="again", harness={"right": {"t0": [2], "t1": [2]}})
    standing = follower.look()
    assert standing.cells[2].run_dir == made.opened.files.cell(made.opened.cells[2].folder) / (
        "again"
    )
    assert standing.cells[2].score is not None
    assert standing.cells[2].score.value == 0.0


def test_a_running_cell_shows_its_snapshot_and_then_that_its_process_died(tmp_path: Path) -> None:
    made = living_set(tmp_path)
    slow = {"task_id": "t7", "attempt": 1, "phase": "run", "phase_s": 9.0, "age_s": 12.0}
    lock = running_cell(made, 1, slowest=[slow], issues={"turn_limit": 3}, cost_usd=0.5)
    follower = SetFollower(made.opened)
    cell = follower.look().cells[1]
    assert (cell.state, cell.ended, cell.running) == (CellState.RUNNING, 4, 2)
    assert cell.issues == {"turn_limit": 3}
    assert cell.spent.cost_usd == 0.5
    assert follower.look().slowest()[0].attempt.task_id == "t7"
    assert follower.changed == ()
    assert cell.run_dir is not None
    older = {**slow, "age_s": 13.0}
    fields = {"outcomes": {"scored": 4}, "issues": {"turn_limit": 3}, "cost_usd": 0.5}
    progress_file(cell.run_dir, planned=10, running=2, slowest=[older], **fields)
    assert follower.look().slowest()[0].attempt.age_s == 13.0
    assert follower.changed == ()  # that time passes is no news
    events = cell.run_dir / "events.jsonl"
    events.write_bytes(b"".join(events.read_bytes().splitlines(keepends=True)[:-1]))
    lock.release()
    standing = follower.look()
    assert standing.cells[1].state is CellState.INTERRUPTED
    assert standing.slowest() == []


@pytest.mark.parametrize("state", sorted(TERMINAL))
def test_every_terminal_state_is_told_with_its_exit_status(tmp_path: Path, state: SetState) -> None:
    made = living_set(tmp_path, agents=("base",), repeats=1)
    follower = SetFollower(made.opened)
    assert follower.look().exit_status is None
    if state is SetState.INTERRUPTED:
        made.let_go()
    else:
        made.end(RunOutcome(state.value), EXIT_STATUS[state])
    standing = follower.look()
    assert standing.state is state
    assert standing.exit_status == EXIT_STATUS[state]
    assert standing_of(made.opened).exit_status == EXIT_STATUS[state]


def test_a_missed_gate_is_the_exit_status_that_the_submission_had(tmp_path: Path) -> None:
    made = living_set(tmp_path)
    made.end(RunOutcome.COMPLETED, 3)
    assert standing_of(made.opened).exit_status == 3


def test_only_attempts_with_a_result_have_ended(tmp_path: Path) -> None:
    made = living_set(tmp_path)
    words = {"scored": 2, "failed_error": 1, "skipped_passed": 1}
    undone = {"skipped_budget": 4, "cancelled": 3, "not_started": 5}
    root = made.run(0)
    progress_file(root, outcome="budget_exceeded", planned=16, outcomes=words | undone)
    other = made.run(1)
    progress_file(other, outcome="budget_exceeded", planned=9, outcomes={"skipped_budget": 9})
    made.end(RunOutcome.BUDGET_EXCEEDED, 4)
    standing = standing_of(made.opened)
    assert (standing.cells[0].ended, standing.cells[1].ended) == (4, 0)
    assert (standing.ended, standing.failed) == (4, 1)
    assert standing.undone == {Outcome.SKIPPED_BUDGET: 13, Outcome.CANCELLED: 3}
    document = standing.as_json()
    assert document["attempts"]["undone"] == {"cancelled": 3, "skipped_budget": 13}
    assert document["agents"][0]["ended"] == 4
    assert document["cells"][0]["outcomes"] == words | undone


def test_what_a_killed_set_had_under_way_has_not_ended(tmp_path: Path) -> None:
    made = living_set(tmp_path, agents=("base",), repeats=1)
    lock = running_cell(made, 0, planned=2)
    root = made.opened.run_dirs(made.opened.cells[0])[0]
    events = (root / "events.jsonl").read_bytes().splitlines(keepends=True)
    (root / "events.jsonl").write_bytes(b"".join(events[:-1]))
    records = (root / "attempts.jsonl").read_bytes().splitlines(keepends=True)
    (root / "attempts.jsonl").write_bytes(records[0])
    lock.release()
    made.let_go()
    standing = standing_of(made.opened)
    assert standing.state is SetState.INTERRUPTED
    assert (standing.ended, standing.planned) == (1, 2)
    assert standing.undone == {Outcome.CANCELLED: 1}


def test_cells_that_a_resume_has_yet_to_begin_are_pending_again(tmp_path: Path) -> None:
    made = living_set(tmp_path, agents=("base",), repeats=2)
    skipped = {"scored": 1, "skipped_budget": 1}
    for index in (0, 1):
        root = made.run(index)
        progress_file(root, outcome="budget_exceeded", planned=2, outcomes=skipped)
    made.end(RunOutcome.BUDGET_EXCEEDED, 4)
    follower = SetFollower(made.opened)
    assert set(follower.look().states) == {CellState.SKIPPED_BUDGET}
    time.sleep(0.002)  # moments are written to the millisecond
    made.begin("resume")
    standing = follower.look()
    assert standing.states == {CellState.PENDING: 2}
    assert follower.changed == (0, 1)
    assert (standing.ended, standing.undone) == (2, {})
    assert follower.look().cells == standing.cells
    assert follower.changed == ()
    made.run(0, run_id="again")
    standing = follower.look()
    assert [cell.state for cell in standing.cells] == [CellState.COMPLETED, CellState.PENDING]
    made.let_go()
    standing = follower.look()
    assert standing.cells[1].state is CellState.SKIPPED_BUDGET
    assert standing.undone == {Outcome.SKIPPED_BUDGET: 1}
    assert follower.changed == (1,)


def test_a_set_that_is_resumed_runs_again(tmp_path: Path) -> None:
    made = living_set(tmp_path)
    follower = SetFollower(made.opened)
    made.let_go()
    assert follower.look().state is SetState.INTERRUPTED
    made.begin("resume")
    standing = follower.look()
    assert standing.state is SetState.RUNNING
    assert standing.exit_status is None
    assert standing.submission is not None
    assert standing.submission.kind == "resume"


def test_a_resume_between_lock_and_submissions_is_no_interruption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = living_set(tmp_path)
    made.end(RunOutcome.BUDGET_EXCEEDED, 4)
    follower = SetFollower(made.opened)
    real, calls = OpenedSet.is_running, 0

    def resumed_after_the_first_look(opened: OpenedSet) -> bool:
        nonlocal calls
        calls += 1
        found = real(opened)
        if calls == 1:
            made.begin("resume")
        return found

    monkeypatch.setattr(OpenedSet, "is_running", resumed_after_the_first_look)
    assert follower.look().state is SetState.RUNNING


def test_cells_that_are_added_meanwhile_are_followed(tmp_path: Path) -> None:
    made = living_set(tmp_path, repeats=1)
    made.run(0)
    follower = SetFollower(made.opened)
    assert len(follower.look().cells) == 2
    assert made.owned is not None
    document = made.opened.document
    old = document.cells[1]
    key = "refunds/new/2"
    cell = Cell(2, key, old.cell.pack_ref, old.cell.agent_ref, None, None, 2, 7)
    more = SetCell(2, "0002-more", cell, old.pack, old.agent)
    made.owned.replace_document(replace(document, cells=(*document.cells, more)))
    standing = follower.look()
    assert [one.cell.matrix_key for one in standing.cells][-1] == key
    assert standing.cells[0].state is CellState.COMPLETED


def test_clocks_that_step_make_no_time_negative(tmp_path: Path) -> None:
    made = living_set(tmp_path)
    made.run(0)
    clock = SteppingClock()
    clock.wall -= timedelta(days=3)
    follower = SetFollower(made.opened, clock=clock)
    assert follower.look().elapsed_s == 0.0
    clock.steady_s += 5
    clock.wall -= timedelta(days=300)
    assert follower.look().elapsed_s == pytest.approx(5.0)
    made.run(1)
    clock.steady_s += 5
    standing = follower.look()
    assert standing.elapsed_s == pytest.approx(10.0)
    assert standing.left_s is None or standing.left_s >= 0
    assert made.owned is not None
    assert made.submission is not None
    early = replace(made.submission, began_at=utc_text(datetime.now(UTC) + timedelta(days=9)))
    made.submission = early
    made.end()
    assert follower.look().elapsed_s == 0.0


def test_the_clock_of_a_dead_set_ends_with_the_last_that_it_wrote(tmp_path: Path) -> None:
    made = living_set(tmp_path, agents=("base",), repeats=2)
    clock = SteppingClock()
    files = RunFiles(made.run(0))
    assert made.submission is not None
    began = datetime.fromisoformat(made.submission.began_at).timestamp()
    for path in (files.document, files.events, files.progress):
        os.utime(path, (began + 3, began + 3))
    os.utime(files.attempts, (began + 6, began + 6))
    made.let_go()
    follower = SetFollower(made.opened, clock=clock)
    clock.wall += timedelta(seconds=400)
    assert follower.look().elapsed_s == pytest.approx(6.0, abs=0.01)
    clock.steady_s += 900
    assert follower.look().elapsed_s == pytest.approx(6.0, abs=0.01)


def test_the_time_left_follows_from_what_ended_of_late(tmp_path: Path) -> None:
    made = living_set(tmp_path, agents=("base",), repeats=4)
    clock = SteppingClock()
    follower = SetFollower(made.opened, clock=clock)
    assert follower.look().left_s is None  # nothing has ended
    made.run(0, tasks=10)
    clock.steady_s += 10
    standing = follower.look()
    assert standing.planned == 40
    assert standing.left_s == pytest.approx(30.0, rel=0.1)
    assert not standing.is_rough


def test_the_json_names_every_cell_or_only_those_that_changed(tmp_path: Path) -> None:
    made = living_set(tmp_path)
    made.run(0)
    follower = SetFollower(made.opened)
    document = json.loads(json.dumps(follower.look().as_json()))
    assert document["schema"] == "evalset-standing/1"
    assert document["is_whole"]
    assert len(document["cells"]) == 4
    assert document["cells"][0]["score"]["interval"]
    made.run(1)
    part = follower.look().as_json(follower.changed)
    assert [cell["index"] for cell in part["cells"]] == [1]
    assert not part["is_whole"]


# -- sets edited by hand -----------------------------------------------------------------------


def test_a_cut_document_is_refused_by_name(tmp_path: Path) -> None:
    made = living_set(tmp_path)
    follower = SetFollower(made.opened)
    document = made.root / "evalset.json"
    document.write_bytes(document.read_bytes()[:100])
    with pytest.raises(SetUnreadable, match=r"evalset\.json is not JSON"):
        follower.look()


def test_a_cell_that_is_no_folder_is_named_and_the_rest_is_shown(tmp_path: Path) -> None:
    made = living_set(tmp_path)
    made.run_all()
    cells = made.opened.cells
    for index, act in ((0, Path.write_text), (1, Path.symlink_to)):
        folder = made.opened.files.cell(cells[index].folder)
        shutil.rmtree(folder)
        act(folder, "/etc" if index else "no folder")
    shutil.rmtree(made.opened.files.cell(cells[2].folder))
    made.end()
    standing = standing_of(made.opened)
    assert standing.state is SetState.COMPLETED
    states = [cell.state for cell in standing.cells]
    assert states == [CellState.PENDING, CellState.PENDING, CellState.PENDING, CellState.COMPLETED]
    assert any(cells[0].folder in warning for warning in standing.warnings)
    assert any(cells[1].folder in warning for warning in standing.warnings)
    assert any("pruned" in warning for warning in standing.warnings)


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        '{"outcome": "completed", "planned": "many", "reason": ["x"], "elapsed_s": -5}',
        '{"outcome": "completed", "planned": "many", "outcomes": {"scored": "x"}}',
        '{"outcome": {"a": 1}, "elapsed_s": "long", "issues": [], "slowest": {}}',
        '{"planned": -4, "running": null, "slowest": [1, {"age_s": "x"}], "cost_usd": "free"}',
    ],
)
def test_a_snapshot_edited_by_hand_spoils_no_other_cell(tmp_path: Path, content: str) -> None:
    made = living_set(tmp_path)
    made.run_all()
    root = made.opened.run_dir(made.opened.cells[1])
    assert root is not None
    RunFiles(root).progress.write_text(content)
    standing = standing_of(made.opened)
    assert [standing.cells[place].state for place in (0, 2, 3)] == [CellState.COMPLETED] * 3
    json.dumps(standing.as_json())


def test_damaged_submissions_are_said_and_the_cells_are_shown(tmp_path: Path) -> None:
    made = living_set(tmp_path)
    made.run_all()
    made.end()
    for path in made.opened.files.submissions.iterdir():
        path.write_text('{"schema": "evalset-submission/1"}')
    standing = standing_of(made.opened)
    assert standing.state is SetState.INTERRUPTED
    assert standing.exit_status == 1
    assert any("submissions" in warning for warning in standing.warnings)
    assert standing.states == {CellState.COMPLETED: 4}


def test_of_a_cell_whose_newest_run_was_pruned_the_one_before_counts(tmp_path: Path) -> None:
    made = living_set(tmp_path)
    first = made.run(0, run_id="first")
    second = made.run(0, run_id="second")
    follower = SetFollower(made.opened)
    assert follower.look().cells[0].run_dir == second
    shutil.rmtree(second)
    assert follower.look().cells[0].run_dir == first
    shutil.rmtree(first)
    assert follower.look().cells[0].state is CellState.PENDING


def test_a_run_whose_document_is_not_there_yet_is_found_when_it_is(tmp_path: Path) -> None:
    made = living_set(tmp_path)
    follower = SetFollower(made.opened)
    ready = made.run(3)
    folder = ready.parent
    away = tmp_path / "away"
    shutil.move(ready, away)
    (folder / ready.name).mkdir()
    assert follower.look().cells[3].state is CellState.PENDING
    for path in away.iterdir():
        shutil.copy(path, folder / ready.name / path.name)
    assert follower.look().cells[3].state is CellState.COMPLETED


@pytest.mark.parametrize("folder", ["../../elsewhere", "/etc", "", "a/b", "twice", 7])
def test_a_document_never_leads_out_of_its_set(tmp_path: Path, folder: object) -> None:
    made = living_set(tmp_path)
    path = made.root / "evalset.json"
    document = json.loads(path.read_bytes())
    for cell in document["cells"][:2] if folder == "twice" else document["cells"][:1]:
        cell["folder"] = folder
    path.write_text(json.dumps(document))
    with pytest.raises(SetUnreadable):
        OpenedSet(made.root)
