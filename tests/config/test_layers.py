"""Layers lie over each other in the contract's order, and each value knows its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from steelyard.config.errors import BadInput
from steelyard.config.layers import Override, project_file, user_file
from steelyard.config.resolve import Resolution, resolve_orchestration, resolve_run


class Place:
    """A home, a repository in it, and files to lay over each other."""

    def __init__(self, root: Path) -> None:
        self.cwd = root / "repo" / "below"
        self.cwd.mkdir(parents=True)
        (root / "repo" / ".git").mkdir()
        self.repo = root / "repo"
        self.user = root / "xdg" / "steelyard" / "config.yaml"
        self.user.parent.mkdir(parents=True)
        self.environ = {"XDG_CONFIG_HOME": str(root / "xdg")}

    def write(self, name: str, data: Any) -> Path:
        path = self.user if name == "user" else self.cwd / name
        path.write_text(json.dumps(data))
        return path

    def launch(self, data: dict[str, Any], *overrides: Override, config: Any = ()) -> Resolution:
        data.setdefault("requests", [{"name": "a"}])
        for request in data["requests"]:
            request.setdefault("benchmark", {"id": "b"})
            request.setdefault("harness", {"id": "h"})
            request.setdefault("model", {"id": "m"})
        self.write("o.json", data)
        return resolve_orchestration(
            Path("o.json"), config_files=config, overrides=overrides, environ=self.environ,
            cwd=self.cwd,
        )  # fmt: skip


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


K = ("execution", "attempts", "k")


def test_each_layer_lies_over_the_one_before(place: Place) -> None:
    layers: list[tuple[str, int | None]] = []

    def note(resolution: Resolution) -> None:
        origin = resolution.provenance.layer(("requests", 0, *K))
        layers.append((origin, resolution.orchestration.requests[0].execution.attempts.k))

    def settings(k: int) -> dict[str, Any]:
        return {"execution": {"attempts": {"k": k}}}

    note(place.launch({}))
    place.write("user", settings(2))
    note(place.launch({}))
    (place.repo / "steelyard.yaml").write_text(json.dumps(settings(3)))
    note(place.launch({}))
    one, two = place.write("one.json", settings(4)), place.write("two.json", settings(5))
    note(place.launch({}, config=[one, two]))
    note(place.launch({"defaults": settings(6)}, config=[one]))
    request = {"name": "a", **settings(7)}
    note(place.launch({"defaults": settings(6), "requests": [dict(request)]}))
    note(place.launch({"requests": [dict(request)]}, Override(K, 8, "--k")))
    assert layers == [
        ("default", 1), ("user", 2), ("project", 3), ("config file", 5), ("orchestration", 6),
        ("orchestration", 7), ("command line", 8),
    ]  # fmt: skip


def test_mappings_merge_and_lists_replace(place: Place) -> None:
    place.write("user", {
        "model": {"params": {"temperature": 1, "stop": ["a", "b"]}},
        "runtime": {"provider_limits": {"docker": 4, "modal": 2}},
        "execution": {"exclude_ids": ["x"]},
    })  # fmt: skip
    found = place.launch({
        "runtime": {"provider_limits": {"docker": 8}},
        "defaults": {"model": {"params": {"stop": ["c"]}}, "execution": {"exclude_ids": []}},
    }).orchestration  # fmt: skip
    assert found.requests[0].model.params == {"temperature": 1, "stop": ["c"]}
    assert found.runtime.provider_limits == {"docker": 8, "modal": 2}
    assert found.requests[0].execution.exclude_ids == []


def test_provenance_names_file_line_and_column(place: Place) -> None:
    place.user.write_text("execution:\n  limit: 3\n")
    origin = place.launch({}).provenance.origin(("requests", 0, "execution", "limit"))
    assert origin is not None
    assert str(origin.where) == f"{place.user}:2:10 execution.limit"
    assert origin.key == (2, 3)


def test_the_project_is_looked_for_up_to_the_repository_and_no_further(tmp_path: Path) -> None:
    (tmp_path / "steelyard.yaml").touch()
    below = tmp_path / "repo" / "a" / "b"
    below.mkdir(parents=True)
    assert project_file(below) is None
    assert project_file(tmp_path) == tmp_path / "steelyard.yaml"
    (tmp_path / "repo" / ".git").mkdir()
    assert project_file(below) is None
    (tmp_path / "repo" / "steelyard.yaml").touch()
    assert project_file(below) == tmp_path / "repo" / "steelyard.yaml"


def test_the_users_file_follows_the_xdg_rules() -> None:
    assert user_file({"XDG_CONFIG_HOME": "/x"}) == Path("/x/steelyard/config.yaml")
    assert user_file({"XDG_CONFIG_HOME": "rel", "HOME": "/h"}) == Path(
        "/h/.config/steelyard/config.yaml"
    )
    assert user_file({}) is None


def test_task_concurrency_comes_from_every_layer_that_may_hold_it(place: Place) -> None:
    place.write("user", {"execution": {"task_concurrency": 5}})
    option = Override(("execution", "task_concurrency"), 7, "--task-concurrency")
    assert place.launch({}).orchestration.task_concurrency == 5
    assert place.launch({"task_concurrency": 6}).orchestration.task_concurrency == 6
    assert place.launch({"task_concurrency": 6}, option).orchestration.task_concurrency == 7


@pytest.mark.parametrize(
    ("own", "params"),
    [
        ({"id": "h"}, {"all": 1, "for_h": 2}),
        ({"id": "other"}, {"all": 1}),
        ({"id": "h", "all": 9}, {"all": 9, "for_h": 2}),
    ],
)
def test_defaults_with_an_id_apply_to_that_id_alone(
    place: Place, own: dict[str, Any], params: dict[str, Any]
) -> None:
    place.write("user", {"harness": {"all": 1}})
    defaults = {"harness": {"id": "h", "for_h": 2}}
    found = place.launch({"defaults": defaults, "requests": [{"name": "a", "harness": own}]})
    assert found.orchestration.requests[0].harness.params == params


def test_defaults_with_an_id_stand_in_for_requests_that_name_none(place: Place) -> None:
    data = {
        "defaults": {"harness": {"id": "h", "for_h": 2}},
        "requests": [{"name": "a", "harness": {"x": 1}}],
    }
    harness = place.launch(data).orchestration.requests[0].harness
    assert (harness.id, harness.params) == ("h", {"for_h": 2, "x": 1})


REUSE = Override(("runtime", "reuse"), True, "--reuse")


@pytest.mark.parametrize(
    ("defaults", "own", "overrides", "expected"),
    [
        ({}, {}, [], (False, None)),
        ({}, {}, [REUSE], (True, None)),
        ({}, {"reuse": False}, [REUSE], (False, None)),
        ({"reuse": False}, {}, [REUSE], (True, None)),
        ({"reuse_run_id": "r1"}, {}, [], (True, "r1")),
        ({"reuse_run_id": "r1"}, {}, [REUSE], (True, "r1")),
        ({"reuse_run_id": "r1"}, {"reuse": False}, [], (False, None)),
        ({"reuse": False}, {"reuse_run_id": "r2"}, [], (True, "r2")),
        ({"reuse_run_id": "r1"}, {"reuse_run_id": "r2"}, [REUSE], (True, "r2")),
    ],
)
def test_a_request_has_the_last_word_on_reuse(
    place: Place, defaults: Any, own: Any, overrides: Any, expected: Any
) -> None:
    data = {"defaults": {"runtime": defaults}, "requests": [{"name": "a", "runtime": own}]}
    runtime = place.launch(data, *overrides).orchestration.requests[0].runtime
    assert (runtime.reuse, runtime.reuse_run_id) == expected


def test_reuse_off_with_a_named_source_is_a_contradiction(place: Place) -> None:
    with pytest.raises(BadInput, match="keep one of the two"):
        place.launch(
            {"requests": [{"name": "a", "runtime": {"reuse": False, "reuse_run_id": "r"}}]}
        )


def test_checkpoint_resume_is_the_command_lines_over_the_requests(place: Place) -> None:
    option = Override(("runtime", "checkpoint_resume"), False, "--no-checkpoint-resume")
    data = {"requests": [{"name": "a", "runtime": {"checkpoint_resume": True}}]}
    found = place.launch(data, option).orchestration.requests[0].runtime
    assert found.checkpoint_resume is False


def test_requests_do_not_inherit_from_each_other(place: Place) -> None:
    data = {
        "requests": [
            {"name": "a", "execution": {"attempts": {"k": 3, "strategy": "pass"}}},
            {"name": "b"},
        ]
    }
    first, second = place.launch(data).orchestration.requests
    assert (first.execution.attempts.k, second.execution.attempts.k) == (3, 1)
    assert second.execution.attempts.strategy == "avg"


def test_budgets_of_the_whole_and_of_each_request_are_apart(place: Place) -> None:
    place.write("user", {"budget": {"usd": 5}})
    data = {"budget": {"tokens": 9}, "defaults": {"budget": {"usd": 1}}}
    found = place.launch(data).orchestration
    assert (found.budget.usd, found.budget.tokens) == (5, 9)
    assert (found.requests[0].budget.usd, found.requests[0].budget.tokens) == (1, None)


def test_relative_component_paths_of_a_configuration_file_start_from_it(place: Place) -> None:
    (place.repo / "steelyard.yaml").write_text("benchmark: {id: ./packs/p, x: 1}\n")
    data = {"requests": [{"name": "a", "benchmark": {"y": 2}}]}
    found = place.launch(data).orchestration.requests[0].benchmark
    assert found.id == str(place.repo / "packs" / "p")
    assert found.params == {"x": 1, "y": 2}


def test_a_run_is_one_request_named_after_its_parts(place: Place) -> None:
    found = resolve_run("b", "h", "org/m", environ=place.environ, cwd=place.cwd)
    (request,) = found.orchestration.requests
    assert request.name == "org-m_b_h"
    assert request.environment.id == "auto"
    assert found.base_dir == place.cwd


def test_an_empty_configuration_file_changes_nothing(place: Place) -> None:
    place.user.write_text("# nothing yet\n")
    assert place.launch({}).orchestration.task_concurrency == 32


def test_the_defaults_are_those_of_the_seeds(place: Place) -> None:
    found = place.launch({}).orchestration
    runtime, request = found.runtime, found.requests[0]
    assert found.task_concurrency == 32
    assert (runtime.timeout_seconds, runtime.cleanup_grace_seconds) == (360_000, 30)
    assert (runtime.progress, runtime.log_level, runtime.file_log_level) == (
        "auto", "INFO", "DEBUG",
    )  # fmt: skip
    assert (runtime.results_dir, runtime.auto_install_dependencies) == ("results", False)
    assert request.execution.attempts.model_dump() == {
        "k": 1, "strategy": "avg", "early_stop": None,
    }  # fmt: skip
    assert request.execution.max_retries == 0
    assert request.runtime.checkpoint_resume is True
    assert request.output.run_name is None


def test_environment_fields_without_an_id_go_to_auto(place: Place) -> None:
    place.write("user", {"environment": {"cpu": 2}})
    first, second = place.launch(
        {"requests": [{"name": "a"}, {"name": "b", "environment": {"id": "e"}}]}
    ).orchestration.requests
    assert (first.environment.id, first.environment.params) == ("auto", {"cpu": 2})
    assert (second.environment.id, second.environment.params) == ("e", {"cpu": 2})
