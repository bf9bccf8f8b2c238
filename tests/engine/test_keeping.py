"""Kept environments stand when the driver has gone, and are entered behind the same walls."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from steelyard.components.issues import Outcome
from steelyard.components.session_folders import find_folders
from steelyard.engine.plan import make_plan
from steelyard.environments import cgroups
from steelyard.environments.process_trees import find_marked
from steelyard.results.summary import rebuild
from steelyard.testing.clock import FakeClock
from tests.engine.keeping import closed, listed, looking, pasted
from tests.engine.launching import COMPONENTS, records, resolved, run_all

pytestmark = pytest.mark.integration


@pytest.fixture
def results(tmp_path: Path) -> Iterator[Path]:
    """The results folder; nothing that was kept below it outlives the test."""
    folder = tmp_path / "results"
    yield folder
    closed(folder)
    assert listed(folder) == []


def test_the_agents_and_the_scorers_sandbox_stand_and_can_be_entered(
    tmp_path: Path, results: Path
) -> None:
    result = run_all(tmp_path, looking())
    assert [record.outcome for record in records(result)] == [Outcome.SCORED]
    task, evaluator = sorted(listed(results), key=lambda one: one["of"], reverse=True)
    assert (task["of"], evaluator["of"]) == ("task", "evaluator")
    assert {task["state"], evaluator["state"]} == {"kept"}
    assert pasted(task, "cat", "agent.txt") == "by the agent\n"
    assert pasted(evaluator, "cat", "scored.txt") == "by the scorer\n"
    pasted(evaluator, "test", "-e", "agent.txt", status=1)


def test_a_kept_sandbox_has_the_walls_it_had(tmp_path: Path, results: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of the host")
    tmp_path.chmod(0o755)
    secret.chmod(0o644)
    run_all(tmp_path, looking())
    one = listed(results)[0]
    script = f"""
        tail -n +3 /proc/net/dev | cut -d: -f1
        id -u
        grep CapEff /proc/self/status
        cat {secret} || echo hidden
        echo x > /usr/x || echo read-only
        test "$STEELYARD_TOKEN" && echo marked
    """
    assert pasted(one, "sh", "-c", script).split() == [
        "lo", "65534", "CapEff:", "0000000000000000", "hidden", "read-only", "marked",
    ]  # fmt: skip
    # What is changed inside stays; what ran inside does not.
    pasted(one, "sh", "-c", "echo mine > changed; sleep 600 & exit 0")
    assert pasted(one, "cat", "changed") == "mine\n"
    assert find_marked([one["id"]]) == []


def test_what_holds_processes_and_memory_is_given_back(tmp_path: Path, results: Path) -> None:
    run_all(tmp_path, looking())
    tokens = [one["id"] for one in listed(results)]
    assert len(find_folders(tokens)) == 2
    assert cgroups.find(tokens) == []
    assert find_marked(tokens) == []
    pasted(listed(results)[0], "true")
    assert cgroups.find(tokens) == []


def test_a_host_process_folder_stands_and_can_be_entered(tmp_path: Path, results: Path) -> None:
    run_all(tmp_path, looking("host_process"))
    task = next(one for one in listed(results) if one["of"] == "task")
    assert pasted(task, "cat", "agent.txt") == "by the agent\n"
    pasted(task, "sh", "-c", "sleep 600 & exit 5", status=5)
    assert find_marked([task["id"]]) == []


def test_each_execution_of_a_retried_attempt_is_kept(tmp_path: Path, results: Path) -> None:
    once = str(tmp_path / "failed")
    run_all(tmp_path, looking(harness={"fails_once": once}, max_retries=1))
    agents = {one["execution"]: one for one in listed(results) if one["of"] == "task"}
    assert sorted(agents) == [1, 2]
    assert pasted(agents[1], "cat", "agent.txt") == "by the one that failed\n"
    assert pasted(agents[2], "cat", "agent.txt") == "by the agent\n"


def test_what_is_scored_where_the_agent_worked_is_kept_once(tmp_path: Path, results: Path) -> None:
    run_all(tmp_path, looking(benchmark={"mode": "reuse"}))
    (one,) = listed(results)
    assert pasted(one, "cat", "agent.txt", "scored.txt") == "by the agent\nby the scorer\n"


def test_an_agent_whose_time_ran_out_leaves_its_files_and_no_program(
    tmp_path: Path, results: Path
) -> None:
    request = looking("host_process", harness={"sleeps": 600}, run_timeout_seconds=1)
    (record,) = records(run_all(tmp_path, request))
    assert record.outcome is Outcome.TIMED_OUT
    (one,) = listed(results)
    assert find_marked([one["id"]]) == []
    assert pasted(one, "cat", "agent.txt") == "by the agent\n"


def test_nothing_stands_where_nobody_asked(tmp_path: Path, results: Path) -> None:
    result = run_all(tmp_path, looking(keep_environment=False))
    assert listed(results) == []
    metrics = json.loads((result.requests[0].run_dir / "metrics.json").read_text())
    assert "kept" not in metrics


def test_the_summary_names_the_command_that_enters_each(tmp_path: Path, results: Path) -> None:
    run_dir = run_all(tmp_path, looking()).requests[0].run_dir
    metrics = json.loads((run_dir / "metrics.json").read_text())
    shown = {tuple(one["enter"]) for one in listed(results)}
    assert {tuple(one["enter"]) for one in metrics["kept"]["environments"]} == shown
    assert metrics["kept"]["count"] == 2
    text = (run_dir / "summary.md").read_text()
    for words in shown:
        assert f"`{' '.join(words)}`" in text
    before = (run_dir / "metrics.json").read_bytes()
    assert len(closed(run_dir)["ended"]) == 2
    rebuild(run_dir)
    assert (run_dir / "metrics.json").read_bytes() == before


def test_a_provider_that_keeps_nothing_is_a_warning_of_the_plan(tmp_path: Path) -> None:
    request = looking(f"{COMPONENTS}:Stuck")
    plan = make_plan(resolved(tmp_path, request), clock=FakeClock())
    (warning,) = [one for one in plan.warnings if "keep" in str(one)]
    assert "stuck keeps no environment" in warning.message
    assert warning.where.field == "requests[0].execution.keep_environment"
    assert "save_artifacts" in (warning.remedy or "")
    keeping = make_plan(resolved(tmp_path, looking()), clock=FakeClock())
    assert [one for one in keeping.warnings if "keep" in str(one)] == []
