"""Paths among a component's parameters start from the folder of the file that wrote them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from steelyard.components.known import REGISTRY
from steelyard.config.layers import Override
from steelyard.config.resolve import resolve_orchestration, resolve_run
from steelyard.config.schema.request import Request

OWN = """
from pathlib import Path
from typing import Annotated
from pydantic import BaseModel, ConfigDict
from steelyard.components.harness import Harness, HarnessTraits
from steelyard.components.path_params import WrittenPath

class Params(BaseModel):
    model_config = ConfigDict(extra="forbid")
    rules: Annotated[Path | None, WrittenPath()] = None
    word: str = ""

class Own(Harness):
    api = 1
    id = "own"
    traits = HarnessTraits(calls_model=False)
    Params = Params

    async def run(self, context):
        raise AssertionError
"""


class Project:
    """A repository with `steelyard.yaml`, worked in from `sub/`."""

    def __init__(self, root: Path) -> None:
        (root / ".git").mkdir()
        self.root, self.sub = root, root / "sub"
        self.sub.mkdir()

    def says(self, **settings: Any) -> None:
        (self.root / "steelyard.yaml").write_text(json.dumps(settings))

    def run(self, *overrides: Override, harness: str = "command", cwd: Path | None = None,
            benchmark: str = "humaneval", environ: Any = None) -> Request:  # fmt: skip
        resolution = resolve_run(
            benchmark, harness, "none", overrides=overrides, environ=environ or {},
            cwd=cwd or self.sub, components=REGISTRY,
        )  # fmt: skip
        return resolution.orchestration.requests[0]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_files_of_a_program_start_from_the_configuration_file(project: Project) -> None:
    project.says(harness={"id": "command", "run": ["python", "{files}/agent.py"],
                          "files": ["agent.py", "../more", "/else/where"]})  # fmt: skip
    found = project.run().harness.params["files"]
    assert found == [str(project.root / "agent.py"), str(project.root.parent / "more"),
                     "/else/where"]  # fmt: skip
    project.says(harness={"id": "command", "run": ["x"], "files": "agent.py"})
    assert project.run().harness.params["files"] == str(project.root / "agent.py")


def test_beside_the_file_a_path_stays_as_it_is_written(project: Project) -> None:
    project.says(harness={"id": "command", "run": ["x"], "files": "agent.py"})
    assert project.run(cwd=project.root).harness.params["files"] == "agent.py"


def test_words_that_are_no_paths_are_left_alone(project: Project) -> None:
    project.says(harness={"id": "command", "run": ["agent.py"], "files": "agent.py", "cwd": "x"})
    params = project.run().harness.params
    assert (params["run"], params["cwd"]) == (["agent.py"], "x")


def test_a_path_in_a_variable_starts_from_the_file_that_names_the_variable(
    project: Project,
) -> None:
    project.says(harness={"id": "command", "run": ["x"], "files": "${AGENT}"})
    params = project.run(environ={"AGENT": "agent.py"}).harness.params
    assert params["files"] == str(project.root / "agent.py")


def test_a_path_of_the_command_line_starts_from_the_working_folder(project: Project) -> None:
    project.says(harness={"id": "command", "run": ["x"], "files": "agent.py"})
    option = Override(("harness", "files"), "agent.py", "-P")
    assert project.run(option).harness.params["files"] == "agent.py"  # which is what it starts from
    (project.root / "o.json").write_text(
        json.dumps({"requests": [{"name": "a", "benchmark": {"id": "humaneval"},
                                  "harness": {"id": "command", "run": ["x"], "files": "own.py"},
                                  "model": {"id": "none"}}]})
    )  # fmt: skip
    launched = [
        resolve_orchestration(Path("../o.json"), overrides=given, environ={}, cwd=project.sub,
                              components=REGISTRY).orchestration.requests[0].harness.params["files"]
        for given in ((), (option,))
    ]  # fmt: skip
    assert launched == ["own.py", str(project.sub / "agent.py")]


def test_a_parameter_without_an_id_follows_the_id_that_another_layer_gives(
    project: Project,
) -> None:
    project.says(harness={"files": "agent.py"}, environment={"image_tar": "root.tar"})
    request = project.run(Override(("harness", "run"), ["x"], "-P"))
    assert request.harness.params["files"] == str(project.root / "agent.py")
    assert request.environment.params["image_tar"] == str(project.root / "root.tar")


@pytest.mark.parametrize(
    ("kind", "component", "field"),
    [
        ("benchmark", "harbor", "path"),
        ("benchmark", "terminal_bench_2", "source"),
        ("harness", "terminus2", "python"),
        ("environment", "docker", "image_tar"),
    ],
)
def test_every_built_in_that_takes_a_path_says_so(
    project: Project, kind: str, component: str, field: str
) -> None:
    project.says(**{kind: {"id": component, field: "there/x"}})
    ids = {kind: component} if kind != "environment" else {}
    request = project.run(**ids)
    assert getattr(request, kind).params[field] == str(project.root / "there" / "x")


def test_an_address_is_no_path(project: Project) -> None:
    remote = "https://example.com/tasks.git"
    project.says(benchmark={"id": "terminal_bench_2", "source": remote})
    assert project.run(benchmark="terminal_bench_2").benchmark.params["source"] == remote


def test_a_class_of_ones_own_marks_its_paths(project: Project) -> None:
    (project.root / "own.py").write_text(OWN)
    project.says(harness={"id": "./own.py:Own", "rules": "rules.yaml", "word": "rules.yaml"})
    request = {"name": "a", "benchmark": {"id": "humaneval"}, "model": {"id": "none"}}
    (project.sub / "o.json").write_text(json.dumps({"requests": [request]}))
    resolution = resolve_orchestration(
        Path("o.json"), environ={}, cwd=project.sub, components=REGISTRY
    )
    found = resolution.orchestration.requests[0].harness
    assert found.id == f"{project.root}/own.py:Own"
    assert found.params == {"rules": f"{project.root}/rules.yaml", "word": "rules.yaml"}
