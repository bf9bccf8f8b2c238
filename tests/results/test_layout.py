"""Where things lie: no name of a task or run leads elsewhere, or to what another has."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.results.layout import (
    ResultsNotWritable,
    RunIdInUse,
    RunPaths,
    attempt_folder,
    task_folder,
)
from steelyard.results.run_folder import create_run
from tests.results.workload import DOCUMENT, FixedClock, a_run


@settings(deadline=None)
@given(st.text(max_size=600))
def test_a_task_folder_is_one_safe_component(task_id: str) -> None:
    name = task_folder(task_id)
    assert name not in ("", ".", "..")
    assert "/" not in name
    assert "\0" not in name
    assert len(name.encode()) <= 200


@settings(deadline=None)
@given(st.lists(st.text(max_size=30), min_size=2, max_size=2, unique=True))
def test_two_tasks_never_share_a_folder_even_where_case_is_ignored(ids: list[str]) -> None:
    first, second = map(task_folder, ids)
    assert first.lower() != second.lower()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("a/b", "a-b"),
        ("Task", "task"),
        ("x" * 500, "x" * 501),
        ("🦀", "🐍"),
        ("", "-"),
        ("..", "."),
        ("a/b", task_folder("a/b")),
    ],
)
def test_ids_that_look_alike_have_folders_of_their_own(first: str, second: str) -> None:
    assert task_folder(first).lower() != task_folder(second).lower()


def test_a_plain_id_is_its_own_folder() -> None:
    assert attempt_folder("case-17", 3) == "tasks/case-17/attempt-3"


@pytest.mark.parametrize("task_id", ["con", "NUL", "a" * 500, "../../etc", "\ud800"])
def test_a_difficult_id_can_be_made_on_disk(task_id: str, tmp_path: Path) -> None:
    (tmp_path / attempt_folder(task_id, 1)).mkdir(parents=True)
    assert [path.name for path in tmp_path.iterdir()] == ["tasks"]


def test_the_run_id_is_the_utc_start_and_then_numbered(tmp_path: Path) -> None:
    names = [a_run(tmp_path).run_id for _ in range(3)]
    assert names == ["20260806_120000", "20260806_120000-2", "20260806_120000-3"]


def test_an_explicit_run_id_must_be_unused(tmp_path: Path) -> None:
    a_run(tmp_path, "mine")
    with pytest.raises(RunIdInUse, match="mine"):
        a_run(tmp_path, "mine")
    with pytest.raises(RunIdInUse):
        RunPaths(tmp_path, None, "toy", "mine").check()
    RunPaths(tmp_path, None, "toy", "other").check()


def test_the_run_name_is_a_folder_above_and_made_safe(tmp_path: Path) -> None:
    paths = RunPaths(tmp_path, "my runs/2026", "a_b_c", "id")
    assert paths.namespace_dir == tmp_path / "my-runs-2026" / "a_b_c"


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    paths = RunPaths(tmp_path / "file", None, "toy")
    with pytest.raises(ResultsNotWritable, match="file"):
        paths.check()
    with pytest.raises(ResultsNotWritable, match="file"):
        create_run(paths, DOCUMENT, clock=FixedClock())


def test_a_namespace_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "toy").write_text("")
    with pytest.raises(ResultsNotWritable, match="toy"):
        a_run(tmp_path)


def test_a_check_makes_nothing(tmp_path: Path) -> None:
    RunPaths(tmp_path / "not" / "there", None, "toy").check()
    assert list(tmp_path.iterdir()) == []


def test_a_run_folder_holds_its_document_and_its_lock(tmp_path: Path) -> None:
    folder = a_run(tmp_path)
    assert sorted(path.name for path in folder.root.iterdir()) == ["lock", "run.json"]
    assert folder.document["schema"] == "run/1"
    assert folder.document["run_id"] == folder.run_id
    assert folder.document["created_at"].endswith("Z")
