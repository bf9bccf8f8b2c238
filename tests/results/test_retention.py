"""What goes and what stays: the rule on values, then real folders."""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.results.retention import (
    LEAVING,
    KeptRun,
    Part,
    Rule,
    StillRunning,
    find_runs,
    judge,
    look_at,
    remove_rubbish,
    remove_run,
)

NOW = datetime(2026, 11, 30, tzinfo=UTC)
FIRST = Path(__file__).parent.parent / "fixtures/formats/first"


def run(name: str, days: float | None, size: int = 10, *, running: bool = False) -> KeptRun:
    root = Path("results") / name
    created = None if days is None else NOW - timedelta(days=days)
    return KeptRun(root, root.parent, created, running, {Part.TASKS: size})


def gone(runs: Sequence[KeptRun], rule: Rule) -> set[str]:
    return {str(v.run.root.relative_to("results")) for v in judge(runs, rule, NOW) if v.goes}


def test_what_is_older_goes() -> None:
    runs = [run("a/1", 40), run("a/2", 29), run("b/1", 31)]
    assert gone(runs, Rule(older_than=timedelta(days=30))) == {"a/1", "b/1"}


def test_the_newest_of_each_request_stay() -> None:
    runs = [run("a/1", 3), run("a/2", 2), run("a/3", 1), run("b/1", 9)]
    assert gone(runs, Rule(keep_last=1)) == {"a/1", "a/2"}
    assert gone(runs, Rule(keep_last=0)) == {"a/1", "a/2", "a/3", "b/1"}


def test_the_oldest_go_until_the_rest_fits() -> None:
    runs = [run("a/1", 3, 50), run("a/2", 2, 50), run("b/1", 9, 50)]
    assert gone(runs, Rule(max_bytes=100)) == {"b/1"}
    assert gone(runs, Rule(max_bytes=99)) == {"b/1", "a/1"}
    assert gone(runs, Rule(max_bytes=1000)) == set()


def test_bounds_are_met_together() -> None:
    runs = [run("a/1", 40), run("a/2", 35), run("a/3", 1)]
    assert gone(runs, Rule(older_than=timedelta(days=30), keep_last=2)) == {"a/1"}


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        (Rule(older_than=timedelta(days=1)), "2 days old"),
        (Rule(keep_last=1), "not among the newest 1 of its request"),
        (Rule(max_bytes=0), "the runs take more than they may"),
        (Rule(timedelta(0), keep_last=1), "2 days old, not among the newest 1 of its request"),
    ],
)
def test_a_run_goes_for_the_bounds_that_are_given(rule: Rule, why: str) -> None:
    first, *_ = judge([run("a/1", 2), run("a/2", 1)], rule, NOW)
    assert (first.goes, first.why) == (True, why)


def test_running_runs_and_those_of_unknown_age_stay() -> None:
    runs = [run("a/1", 400, running=True), run("a/2", None)]
    verdicts = judge(runs, Rule(keep_last=0), NOW)
    assert not any(verdict.goes for verdict in verdicts)
    assert {verdict.why.partition(":")[0] for verdict in verdicts} == {
        "it is running",
        "its age is not known",
    }


def test_a_rule_without_bounds_lets_none_go() -> None:
    assert gone([run("a/1", 4000)], Rule()) == set()


@given(
    st.lists(st.tuples(st.integers(0, 3), st.floats(0, 100), st.integers(0, 1000)), max_size=12),
    st.integers(0, 4) | st.none(),
    st.integers(0, 5000) | st.none(),
)
def test_the_newest_stay_and_never_more_goes_than_must(
    drawn: list[tuple[int, float, int]], keep_last: int | None, max_bytes: int | None
) -> None:
    runs = [run(f"{space}/{i}", days, size) for i, (space, days, size) in enumerate(drawn)]
    verdicts = judge(runs, Rule(keep_last=keep_last, max_bytes=max_bytes), NOW)
    assert len(verdicts) == len(runs)
    going = [v.run for v in verdicts if v.goes]
    if keep_last is not None:
        for space in {one.namespace for one in runs}:
            of_it = [one for one in runs if one.namespace == space]
            left = [one for one in of_it if one not in going]
            assert len(left) >= min(keep_last, len(of_it))
    if max_bytes is not None and going:
        assert sum(one.bytes for one in runs) > max_bytes


def copied(tmp_path: Path) -> Path:
    results = tmp_path / "results"
    shutil.copytree(FIRST, results)
    return results


def test_runs_are_found_and_measured_by_part(tmp_path: Path) -> None:
    results = copied(tmp_path)
    (results / "link").symlink_to(results / "chat")
    found = {one.root.parent.name: one for one in find_runs(results)}
    assert set(found) == {"ceiling", "chat"}
    assert found["chat"].bytes_by_part[Part.RECORDS] > 0
    assert found["chat"].bytes_by_part[Part.TASKS] > 0
    assert not found["chat"].is_running
    assert next(find_runs(results / "chat" / "first")).root == results / "chat" / "first"


def test_a_run_is_removed_whole_and_its_empty_folder_with_it(tmp_path: Path) -> None:
    results = copied(tmp_path)
    remove_run(look_at(results / "chat" / "first"))
    assert not (results / "chat").exists()
    assert (results / "ceiling" / "first" / "run.json").exists()


def test_a_run_that_is_held_is_not_removed(tmp_path: Path) -> None:
    results = copied(tmp_path)
    found = look_at(results / "chat" / "first")
    with (found.root / "lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert look_at(found.root).is_running
        with pytest.raises(StillRunning, match="is running"):
            remove_run(found)
    assert found.root.exists()


def test_links_out_of_a_run_are_not_followed(tmp_path: Path) -> None:
    results = copied(tmp_path)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("x" * 100_000)
    (results / "chat/first/tasks/out").symlink_to(outside)
    found = look_at(results / "chat" / "first")
    assert found.bytes < 100_000
    remove_run(found)
    assert (outside / "precious").exists()


def test_what_a_killed_removal_left_is_no_run_and_goes_with_the_next(tmp_path: Path) -> None:
    results = copied(tmp_path)
    (results / "chat" / "first").rename(results / "chat" / f"{LEAVING}first")
    assert [one.namespace.name for one in find_runs(results)] == ["ceiling"]
    assert remove_rubbish(results) == [results / "chat" / f"{LEAVING}first"]
    assert (results / "ceiling" / "first").exists()


def test_a_run_is_as_large_as_du_says(tmp_path: Path) -> None:
    for one in find_runs(copied(tmp_path)):
        every = [one.root, *one.root.rglob("*")]
        assert one.bytes == sum(path.lstat().st_blocks * 512 for path in every)
