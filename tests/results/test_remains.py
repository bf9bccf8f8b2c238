"""What runs may have left is read from their journals alone, and on doubt belongs to a live run."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from steelyard.results.lines import LineFile, encode
from steelyard.results.reader import RunReader
from steelyard.results.remains import (
    Remains,
    RemainsState,
    by_token,
    kept_of,
    ownership_of,
    remains_below,
    remains_of,
)
from steelyard.results.session_tokens import session_tokens, split_token
from tests.results.workload import a_record
from tests.results.written import write_run

STEM = "token-t0-1"


def a_dead_owner(root: Path) -> None:
    """Let the lock name a process that ran here and has ended."""
    with subprocess.Popen(["true"]) as ended:
        pid = ended.pid
    lock = root / "lock"
    lock.write_text(json.dumps(json.loads(lock.read_text()) | {"pid": pid, "start_ticks": 1}))


def add(root: Path, *events: dict[str, Any]) -> None:
    """Put events before the last word, or at the end where there is none."""
    path = root / "events.jsonl"
    found = [event for _, event in LineFile(path)]
    at = len(found) - (found[-1]["kind"] == "finished")
    found[at:at] = [{"seq": 99, "at": "", **event} for event in events]
    path.write_bytes(b"".join(map(encode, found)))


def session(kind: str, token: str, **fields: Any) -> dict[str, Any]:
    return {"kind": kind, "token": token, "provider": "sandbox", **fields}


def states(found: Sequence[Remains]) -> dict[str, str]:
    return {one.token: one.state.value for one in found}


def a_dead_run(tmp_path: Path) -> Path:
    root = write_run(tmp_path, [], tasks=1, outcome=None, started=[("t0", 1)]).root
    a_dead_owner(root)
    return root


def test_an_execution_without_an_end_may_have_left_each_of_its_sessions(tmp_path: Path) -> None:
    root = a_dead_run(tmp_path)
    found = remains_of(root)
    assert states(found) == dict.fromkeys(session_tokens(STEM), "left")
    assert {one.role: one.provider for one in found}["files"] == "host_process"
    assert all((one.task_id, one.attempt, one.execution) == ("t0", 1, 1) for one in found)
    assert list(remains_below(tmp_path)) == found


def test_what_was_closed_is_not_left(tmp_path: Path) -> None:
    root = a_dead_run(tmp_path)
    add(root, session("opened", STEM + "-a"), session("closed", STEM + "-a"))
    assert set(states(remains_of(root))) == {STEM + "-s", STEM + "-f"}


def test_a_session_that_a_finished_run_did_not_close_is_left(tmp_path: Path) -> None:
    root = write_run(tmp_path, [], tasks=1, started=[("t0", 1)]).root
    add(root, session("opened", STEM + "-a"), session("closed", STEM + "-a"))
    add(root, session("opened", STEM + "-s"))
    assert states(remains_of(root))[STEM + "-s"] == "left"


def test_a_finished_run_that_closed_all_is_not_even_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write_run(tmp_path, [a_record()]).root
    monkeypatch.setattr("steelyard.results.remains.RunReader", None)
    assert remains_of(root) == []


def test_what_was_kept_says_how_it_is_entered(tmp_path: Path) -> None:
    root = write_run(tmp_path, [], tasks=1, started=[("t0", 1)]).root
    told = {"description": "folder /x", "enter": ["steelyard", "env"], "state": {"folder": "x"}}
    add(root, session("opened", STEM + "-a"), session("kept", STEM + "-a", **told))
    one = {found.token: found for found in remains_of(root)}[STEM + "-a"]
    assert (one.state, one.description) == (RemainsState.KEPT, "folder /x")
    assert (one.enter, one.details) == (("steelyard", "env"), {"folder": "x"})
    assert [kept.token for kept in kept_of(RunReader(root))] == [STEM + "-a"]


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"enter": "rm", "state": [], "description": None},
        {"enter": [1], "state": "x", "description": 3},
    ],
)
def test_a_kept_event_of_another_form_is_no_crash(tmp_path: Path, told: dict[str, Any]) -> None:
    root = write_run(tmp_path, [], tasks=1, started=[("t0", 1)]).root
    add(root, session("kept", STEM + "-a", **told), session("kept", "of-nobody", **told))
    add(root, {"kind": "started"}, {"kind": "opened"}, {"kind": "kept", "token": 7})
    one = {found.token: found for found in remains_of(root)}[STEM + "-a"]
    assert all(isinstance(word, str) for word in one.enter)
    assert isinstance(one.details, dict)


def test_a_live_runs_things_are_live(tmp_path: Path) -> None:
    folder = write_run(tmp_path, [], tasks=1, outcome=None, started=[("t0", 1)], keep_alive=True)
    try:
        add(folder.root, session("kept", STEM + "-a", description="folder"))
        assert set(states(remains_of(folder.root)).values()) == {"live"}
        assert not any(one.may_end for one in remains_of(folder.root))
    finally:
        folder.lock.release()


def test_a_run_whose_process_goes_on_is_not_over_though_its_lock_is_free(tmp_path: Path) -> None:
    root = write_run(tmp_path, [], tasks=1, outcome=None, started=[("t0", 1)]).root
    ownership = ownership_of(root)
    assert (ownership.is_over, ownership.is_live) == (False, False)
    assert "goes on" in (ownership.why or "")
    assert set(states(remains_of(root)).values()) == {"unknown"}


def test_a_number_that_another_process_has_now_is_not_the_owner(tmp_path: Path) -> None:
    root = write_run(tmp_path, [], tasks=1, outcome=None, started=[("t0", 1)]).root
    lock = root / "lock"
    lock.write_text(json.dumps(json.loads(lock.read_text()) | {"start_ticks": 1}))
    assert ownership_of(root).is_over


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"schema": "lock/1"}', "\0"])
def test_a_lock_that_says_nothing_proves_nothing(tmp_path: Path, text: str) -> None:
    root = a_dead_run(tmp_path)
    (root / "lock").write_text(text)
    assert not ownership_of(root).is_over


def test_of_two_runs_with_one_token_the_one_counts_that_forbids_most(tmp_path: Path) -> None:
    (left, *_) = remains_of(a_dead_run(tmp_path))
    in_order = [
        replace(left, state=state)
        for state in (
            RemainsState.KEPT, RemainsState.LEFT, RemainsState.UNKNOWN, RemainsState.LIVE,
        )
    ]  # fmt: skip
    for end in range(1, 5):
        for found in (in_order[:end], in_order[:end][::-1]):
            assert by_token(found)[left.token].state is in_order[end - 1].state


def test_a_token_says_its_execution_and_its_role() -> None:
    for token, role in session_tokens("a-0-1-1-1").items():
        assert split_token(token) == ("a-0-1-1-1", role)
    assert split_token("a-0-1-1-1") is None
    assert split_token("-a") is None
    assert split_token("") is None


def test_what_is_no_run_has_left_nothing(tmp_path: Path) -> None:
    assert remains_of(tmp_path) == []
    assert list(remains_below(tmp_path / "absent")) == []
