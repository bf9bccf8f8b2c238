"""A set measures the same agent, wherever in the project it is submitted."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.config.errors import BadInput
from steelyard.evalset.deployment_check import check_deployment
from steelyard.evalset.find_set import NoSuchSet, find_set
from steelyard.evalset.project import read_project
from steelyard.evalset.set_plan import plan_submission
from tests.evalset.projects import agent, around, ran, records, write_manifest, write_project
from tests.evalset.sets import write_set


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose agent says right; `sub/` has another of the same name, which does not."""
    (tmp_path / ".git").mkdir()
    run = ["sh", "{files}/agent.sh"]
    write_project(tmp_path, agent("own", "command", {"run": run, "files": "agent.sh"}))
    (tmp_path / "agent.sh").write_text("echo right\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "agent.sh").write_text("echo wrong\n")
    return tmp_path


@pytest.mark.integration
def test_a_set_that_is_submitted_below_the_project_runs_the_project_s_agent(project: Path) -> None:
    path = write_manifest(project, "own")
    plan = plan_submission(path, around(project / "sub"))
    result = ran(plan)
    (found,) = records(result.opened).values()
    assert [record.answer for record in found] == ["right"] * 3


def test_where_the_agent_is_missing_the_project_s_folder_is_named(project: Path) -> None:
    (project / "agent.sh").unlink()
    path = write_manifest(project, "own")
    with pytest.raises(BadInput) as caught:
        plan_submission(path, around(project / "sub"))
    assert f"there is no {project}/agent.sh" in str(caught.value)


@pytest.mark.integration
def test_a_deployment_is_checked_with_the_project_s_files(project: Path) -> None:
    (project / "sub" / "agent.sh").unlink()
    read = read_project(cwd=project / "sub", environ={})
    assert check_deployment(read.agents.all[0], read).passed


def test_a_set_that_is_not_found_below_the_project_is_looked_for_where_the_project_is(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write_set(project / "results", lambda _cell: None)
    monkeypatch.chdir(project / "sub")
    for text, said in (("latest", "no eval set below"), ("other", "no eval set 'other'")):
        with pytest.raises(NoSuchSet) as caught:
            find_set(text, Path("results"))
        (problem,) = caught.value.problems
        assert said in problem.message
        assert str(project / "sub" / "results") in problem.message
        assert str(root.parent.parent) in str(problem.remedy)


@pytest.mark.parametrize("name", ["p", "p@1", "./packs/p"])
def test_a_mock_model_plays_a_pack_of_the_project(tmp_path: Path, name: str) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "sub").mkdir()
    model = {"id": "mock", "base_url": f"mock-model://{name}/0.8", "params": {"max_tokens": 9}}
    write_project(tmp_path, {**agent("mock", "chat"), "model": model})
    plan = plan_submission(write_manifest(tmp_path, "mock"), around(tmp_path / "sub"))
    (request,) = plan.prepared.plan.requests
    assert request.request.model.base_url == f"mock-model://{tmp_path}/packs/p/0.8"
