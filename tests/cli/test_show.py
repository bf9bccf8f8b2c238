"""`show`: which attempts there are, and of each what was asked, answered, and why it failed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from steelyard.components.issues import IssueCode, Outcome
from steelyard.components.values import Usage
from tests.results.workload import FixedClock, a_record, an_issue
from tests.results.written import write_run

Run = Callable[..., Any]


def a_run(folder: Path, run_id: str = "r1", clock: FixedClock | None = None) -> Path:
    """A run of four attempts: one right, one wrong, one that crashed, one with a large answer."""
    steps = [
        {"step_id": 1, "source": "system", "message": "be brief"},
        {"step_id": 2, "source": "user", "message": "what is 6 x 7?\x1b[2J"},
        {"step_id": 3, "source": "agent", "message": "41"},
    ]
    wrong = a_record(
        "wrong",
        metrics={"accuracy": False},
        answer="41\x1b]0;owned\x07",
        details={
            "reasons": {"exact": "expected 42, found 41"},
            "verdict": "no",
            "reason": "AssertionError: ",
            "python": "3.11.7",
        },
        trajectory={"path": "tasks/wrong/attempt-1/trajectory.json", "sha256": "0", "steps": 3},
    )
    crashed = a_record(
        "crashed",
        outcome=Outcome.FAILED_FATAL,
        metrics={},
        answer=None,
        issues=(an_issue(IssueCode.SCORER_CRASHED, "ValueError: boom"),),
        usage=Usage(1, 1, cost_usd=None),
    )
    large = a_record(
        "large",
        metrics={"accuracy": False},
        answer=None,
        answer_file="tasks/large/attempt-1/answer.txt",
    )
    records = [a_record("right"), wrong, crashed, large]
    root = write_run(folder, records, run_id=run_id, tasks=5, k=1, clock=clock).root
    for name, file, data in (
        ("wrong", "trajectory.json", orjson.dumps({"steps": steps})),
        ("large", "answer.txt", b"y" * 10_000),
    ):
        place = root / "tasks" / name / "attempt-1"
        place.mkdir(parents=True)
        (place / file).write_bytes(data)
    return root


def test_attempts_are_listed_with_how_they_ended(steelyard: Run, project: Path) -> None:
    ran = steelyard("show", str(a_run(project)))
    rows = [line.split() for line in ran.out.splitlines()]
    assert rows[0] == ["task", "attempt", "outcome", "accuracy", "issues", "seconds", "cost"]
    assert rows[3] == ["right", "1", "scored", "true", "–", "0.65", "$0.0010"]
    assert rows[1] == ["crashed", "1", "failed_fatal", "–", "scorer_crashed", "0.65", "unknown"]
    assert "1 of 5 planned attempts have no record" in ran.err


def test_a_task_is_shown_whole(steelyard: Run, project: Path) -> None:
    root = a_run(project)
    ran = steelyard("show", str(root), "wrong")
    assert ran.out == (
        "=== wrong, attempt 1: scored\n"
        "accuracy false; 0.65 s, cost $0.0010\n"
        "--- prompt (system)\n  be brief\n"
        "--- prompt (user)\n  what is 6 x 7?\\x1b[2J\n"
        "--- step 3 (agent)\n  41\n"
        f"--- all 3 steps: {root}/tasks/wrong/attempt-1/trajectory.json\n"
        "--- answer\n  41\\x1b]0;owned\\x07\n"
        "--- why: exact\n  expected 42, found 41\n"
        "--- why: verdict\n  no\n"
        "--- why: reason\n  AssertionError\n"
        "--- noted: python\n  3.11.7\n"
        "\n"
    )


def test_failed_are_those_without_a_score_and_those_that_scored_nothing(
    steelyard: Run, project: Path
) -> None:
    ran = steelyard("show", str(a_run(project)), "--failed")
    heads = [line for line in ran.out.splitlines() if line.startswith("===")]
    assert heads == [
        "=== crashed, attempt 1: failed_fatal",
        "=== large, attempt 1: scored",
        "=== wrong, attempt 1: scored",
    ]
    assert "--- FATAL scorer_crashed (run)\n  ValueError: boom\n" in ran.out
    assert "--- prompt: no trajectory was kept\n" in ran.out
    assert "--- answer: none\n" in ran.out
    assert "… and 2000 more characters: all in tasks/large/attempt-1/answer.txt" in ran.out


def trajectory_of(root: Path, task: str, steps: list[dict[str, Any]]) -> dict[str, Any]:
    place = root / "tasks" / task / "attempt-1"
    place.mkdir(parents=True)
    (place / "trajectory.json").write_bytes(orjson.dumps({"steps": steps}))
    return {"path": f"tasks/{task}/attempt-1/trajectory.json", "sha256": "0", "steps": len(steps)}


def test_how_a_program_ended_is_a_step_and_no_prompt(steelyard: Run, project: Path) -> None:
    steps: list[dict[str, Any]] = [
        {"step_id": 1, "source": "user", "message": "what is 6 x 7?"},
        {"step_id": 2, "source": "system", "message": "the program ended with exit code 3",
         "extra": {"exit_code": 3, "stdout": "so far\n", "stderr": "oops\n"}},
    ]  # fmt: skip
    trajectory = {"path": "tasks/t/attempt-1/trajectory.json"}
    record = a_record("t", answer=" \n", details={}, trajectory=trajectory)
    root = write_run(project / "results", [record], k=1).root
    trajectory_of(root, "t", steps)
    assert steelyard("show", str(root), "t").out.splitlines()[2:] == [
        "--- prompt (user)",
        "  what is 6 x 7?",
        "--- step 2: the program ended with exit code 3",
        "--- step 2, stdout",
        "  so far",
        "--- step 2, stderr",
        "  oops",
        f"--- all 2 steps: {root}/tasks/t/attempt-1/trajectory.json",
        "--- answer: empty",
        "",
    ]
    (found,) = steelyard("show", str(root), "t", "--json").json["attempts"]
    assert found["prompt"] == [{"source": "user", "message": "what is 6 x 7?"}]
    assert found["trajectory"] == trajectory["path"]


def test_tool_calls_and_what_they_gave_are_shown(steelyard: Run, project: Path) -> None:
    call = {"tool_call_id": "1", "function_name": "bash", "arguments": {"cmd": "ls"}}
    result = {"source_call_id": "1", "content": "a.txt"}
    steps: list[dict[str, Any]] = [
        {"source": "user", "message": "which files are there?"},
        {"source": "agent", "message": "", "reasoning_content": "look", "tool_calls": [call],
         "observation": {"results": [result]}},
        *({"source": "agent", "message": f"turn {n}"} for n in range(3, 42)),
        {"source": "agent", "message": "a.txt"},
    ]  # fmt: skip
    record = a_record("t", answer="a.txt\n", details={}, trajectory={
        "path": "tasks/t/attempt-1/trajectory.json"})  # fmt: skip
    root = write_run(project / "results", [record], k=1).root
    trajectory_of(root, "t", steps)
    out = steelyard("show", str(root), "t").out
    assert (
        '--- step 2 (agent), reasoning\n  look\n--- step 2, call of bash\n  {"cmd":"ls"}\n' in out
    )
    assert "--- step 2, result\n  a.txt\n" in out
    assert "--- step 11 (agent)\n  turn 11\n--- steps 12 to 32 are in the trajectory\n" in out
    assert "--- step 42 (agent): the answer\n" in out


def test_attempts_are_listed_by_task_and_waiting_has_its_column(
    steelyard: Run, project: Path
) -> None:
    names = ["t10", "t9", "t2"]
    records = [a_record(name, attempt=n) for name in names for n in (2, 1)]
    records[0] = replace(records[0], timing=replace(records[0].timing, waited_s=9.0))
    root = write_run(project / "results", records, tasks=3, k=2).root
    ran = steelyard("show", str(root))
    rows = [line.split() for line in ran.out.splitlines()]
    assert [row[:2] for row in rows[1:]] == [[t, n] for t in ("t2", "t9", "t10") for n in "12"]
    assert rows[0][-1] == "waited"
    assert [row[-1] for row in rows[1:]] == ["0.00"] * 5 + ["9.00"]
    first = steelyard("show", str(root), "--limit", "1", "--json").json["attempts"]
    assert [(row["task_id"], row["attempt"]) for row in first] == [("t2", 1)]
    assert "and 9.00 s of waiting" in steelyard("show", str(root), "t10").out


def test_what_was_not_started_is_counted(steelyard: Run, project: Path) -> None:
    root = a_run(project)
    ran = steelyard("show", str(root), "--outcome", "not_started")
    assert (ran.status, ran.out) == (0, "no attempt matches\n")
    assert "1 of 5 planned attempts have no record" in ran.err
    found = steelyard("show", str(root), "--outcome", "not_started", "--json").json
    assert found["without_record"] == 1


def test_json_has_large_answers_whole(steelyard: Run, project: Path) -> None:
    (found,) = steelyard("show", str(a_run(project)), "large", "--json").json["attempts"]
    assert found["answer"] == "y" * 10_000


def test_outcome_attempt_and_limit_choose(steelyard: Run, project: Path) -> None:
    root = str(a_run(project))
    found = steelyard("show", root, "--outcome", "failed_fatal", "--json").json
    assert [row["task_id"] for row in found["attempts"]] == ["crashed"]
    assert found["attempts"][0]["issues"][0]["code"] == "scorer_crashed"
    assert steelyard("show", root, "--attempt", "2").out == "no attempt matches\n"
    shown = steelyard("show", root, "--failed", "--limit", "1").out
    assert shown.count("===") == 1
    assert shown.endswith("… and 2 more: --limit 0 shows all\n")


def test_the_newest_run_of_a_folder_is_shown(steelyard: Run, project: Path) -> None:
    clock = FixedClock()
    a_run(project, "z-first", clock)
    newest = a_run(project, "a-second", clock)
    ran = steelyard("show", str(newest.parent), "--json")
    assert ran.json["run"] == str(newest)
    assert "the newest of 2 runs" in ran.err


def test_an_unknown_task_offers_a_near_one(steelyard: Run, project: Path) -> None:
    ran = steelyard("show", str(a_run(project)), "wrongg")
    assert (ran.status, "did you mean 'wrong'?" in ran.err) == (2, True)


def test_what_is_no_run_is_said(steelyard: Run, project: Path) -> None:
    ran = steelyard("show", str(project))
    assert (ran.status, "there is no run here" in ran.err) == (2, True)


@pytest.mark.parametrize("target", ["../../../secret", "/etc/hostname", "a\x00b"])
def test_a_record_cannot_lead_out_of_the_run(target: str, steelyard: Run, project: Path) -> None:
    (project / "secret").write_text("treasure")
    record = a_record("t", answer=None, answer_file=target, trajectory={"path": target})
    root = write_run(project / "results", [record], k=1).root
    ran = steelyard("show", str(root), "t")
    assert ran.status == 0
    assert "treasure" not in ran.out
    assert "leads out of the run" in ran.out or "cannot be read" in ran.out


def test_a_trajectory_that_is_none_is_said(steelyard: Run, project: Path) -> None:
    root = a_run(project)
    (root / "tasks/wrong/attempt-1/trajectory.json").write_text("[1]")
    ran = steelyard("show", str(root), "wrong")
    assert "--- prompt: tasks/wrong/attempt-1/trajectory.json is no trajectory" in ran.out


# -- explain-reuse -----------------------------------------------------------------------------

PACK = """\
schema: pack/v1
slug: toy
version: 1
name: Toy
description: Three cases.
prompt: "{text}: {{{{ id }}}}"
cases: [{{id: a}}, {{id: b}}, {{id: c, extra: {extra}}}]
reference: "{{{{ id }}}}"
scoring: {{validators: [{{name: same, type: exact, expected: "{{{{ id }}}}"}}]}}
"""
LAUNCH = (
    "requests:\n  - {name: r, benchmark: {id: ./toy}, harness: {id: oracle}, model: {id: none}}\n"
)


def test_content_that_changed_under_the_same_settings_is_said(
    steelyard: Run, project: Path
) -> None:
    (project / "toy").mkdir()
    pack = project / "toy/pack.yaml"
    pack.write_text(PACK.format(text="say", extra=1))
    (project / "o.yaml").write_text(LAUNCH)
    assert steelyard("launch", "o.yaml", "--progress", "none").status == 0
    explain = ("explain-reuse", "results/r", "--with", "o.yaml")
    assert "generation: settings: same; content of 3 tasks: same" in steelyard(*explain).out
    pack.write_text(PACK.format(text="repeat", extra=1))
    assert "generation: settings: same; content of 3 tasks changed" in steelyard(*explain).out
    content = steelyard(*explain, "--json").json["content"]
    assert content["generation"] == {"compared_tasks": 3, "changed_tasks": 3}
