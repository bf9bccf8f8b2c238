"""What task folders ask of environments, what their identity is, and the contract of benchmarks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from steelyard.benchmarks.harbor import Harbor
from steelyard.components.artifacts import EvaluationMode
from steelyard.components.environment import ImageBuild, Resources
from steelyard.components.issues import AttemptFault
from steelyard.environments.auto import resolve_auto
from steelyard.testing.benchmark_suite import benchmark_suite
from steelyard.testing.checks import Check
from tests.benchmarks.harbor.task_folders import TOML, harbor, write_task

EXAMPLES = Path(__file__).parents[3] / "examples" / "harbor"


@pytest.mark.integration
@pytest.mark.parametrize(
    "check",
    benchmark_suite(
        Harbor,
        {"path": str(EXAMPLES / "word-count"), "images": "none"},
        hidden=lambda _task: [(EXAMPLES / "word-count/tests/expected.txt").read_text()],
    ),
    ids=str,
)
def test_it_keeps_the_contract_of_benchmarks(check: Check) -> None:
    check()


def shown(path: Path, **params: Any) -> Any:
    benchmark = harbor(path, images="task", **params)
    return benchmark.task_input(benchmark.load_tasks()[0], attempt=1, seed=1)


def test_what_a_task_asks_of_its_environment_is_asked_for(tmp_path: Path) -> None:
    toml = """
    [agent]
    timeout_sec = 90
    [verifier]
    timeout_sec = 30
    [environment]
    build_timeout_sec = 60
    cpus = 2
    memory = "2G"
    storage_mb = 512
    workdir = "/srv"
    network_mode = "allowlist"
    allowed_hosts = ["A.example.", "*.b.example"]
    [environment.env]
    WORD = "${WORD}"
    """
    task = write_task(tmp_path, toml=toml)
    found = shown(task, variables={"WORD": "secret"})
    assert isinstance(found.needs.build, ImageBuild)
    assert found.needs.build.context == task / "environment"
    assert found.needs.build.timeout_s == 60
    assert found.needs.image is None
    assert found.needs.resources == Resources(cpu=2, memory_mb=2048, disk_mb=512)
    assert (found.needs.workdir, found.needs.network) == ("/srv", "allowlist")
    assert found.needs.allowed_hosts == ("a.example", "*.b.example")
    assert found.needs.env == {"WORD": "secret"}
    assert "secret" not in str(found.needs.as_json())
    assert (found.limits.run_seconds, found.limits.evaluation_seconds) == (90, 30)
    assert found.mode is EvaluationMode.REUSE
    assert found.scores_timed_out


@pytest.mark.parametrize(
    ("text", "network"),
    [
        ("", "open"),
        ("[environment]\nallow_internet = false", "none"),
        ("[environment]\nallow_internet = true", "open"),
        ('[environment]\nallow_internet = true\nnetwork_mode = "no-network"', "none"),
        ('[agent]\nnetwork_mode = "no-network"', "none"),
        ('[environment]\nnetwork_mode = "no-network"\n[agent]\nnetwork_mode = "public"', "open"),
    ],
)
def test_the_newest_word_on_the_network_holds(tmp_path: Path, text: str, network: str) -> None:
    assert shown(write_task(tmp_path, toml=text)).needs.network == network


def test_a_named_image_takes_the_place_of_a_build(tmp_path: Path) -> None:
    toml = '[environment]\ndocker_image = "localhost/x:1"\n'
    needs = shown(write_task(tmp_path, toml=toml)).needs
    assert (needs.image, needs.build) == ("localhost/x:1", None)


SEPARATE = 'artifacts = ["out"]\n[verifier]\nenvironment_mode = "separate"\ntimeout_sec = 30\n'


def test_a_separate_verifier_has_the_agents_image_unless_it_has_one_of_its_own(
    tmp_path: Path,
) -> None:
    same = shown(write_task(tmp_path, "same", toml=SEPARATE))
    assert same.scorer_needs.build == same.needs.build
    assert same.mode is EvaluationMode.FRESH
    assert same.collect == ("/logs/artifacts", "out")
    own = write_task(tmp_path, "own", toml=SEPARATE, files={"tests/Dockerfile": "FROM x\n"})
    assert shown(own).scorer_needs.build.context == own / "tests"
    named = SEPARATE + '[verifier.environment]\ndocker_image = "x:2"\nnetwork_mode = "no-network"\n'
    needs = shown(write_task(tmp_path, "named", toml=named, test=None)).scorer_needs
    assert (needs.image, needs.build, needs.network) == ("x:2", None, "none")


def identity(path: Path, **params: Any) -> tuple[Any, Any]:
    benchmark = harbor(path, images="task", **params)
    task = benchmark.load_tasks()[0]
    return benchmark.generation_content(task), benchmark.evaluation_content(task)


@pytest.mark.parametrize(
    ("file", "text", "generation", "evaluation"),
    [
        ("instruction.md", "Another.", True, True),
        ("environment/Dockerfile", "FROM other\n", True, True),
        ("tests/test.sh", "#!/bin/sh\nexit\n", False, True),
        ("tests/more.txt", "x", False, True),
        ("solution/solve.sh", "#!/bin/sh\n", False, False),
        ("README.md", "x", False, False),
        ("task.toml", TOML + "[agent]\ntimeout_sec = 1\n", False, False),
        ("task.toml", TOML + '[metadata]\ncategory = "x"\n', False, False),
        ("task.toml", TOML + "[verifier.env]\nA = '1'\n", False, True),
        ("task.toml", TOML + '[verifier]\nnetwork_mode = "public"\n', False, True),
        ("task.toml", TOML + '[verifier]\nnetwork_mode = "no-network"\n', False, False),
        ("task.toml", TOML + '[agent]\nnetwork_mode = "public"\n', True, True),
        ("task.toml", TOML + "cpus = 2\n", True, True),
        ("task.toml", TOML + "[environment.env]\nA = '1'\n", True, True),
    ],
)
def test_what_of_a_task_is_in_which_identity(
    tmp_path: Path, file: str, text: str, generation: bool, evaluation: bool
) -> None:
    task = write_task(tmp_path)
    before = identity(task)
    (task / file).write_text(text)
    after = identity(task)
    assert (before[0] != after[0], before[1] != after[1]) == (generation, evaluation)


@pytest.mark.parametrize(
    ("step", "generation"),
    [
        ('[steps.agent]\nnetwork_mode = "public"\n', True),
        ('[steps.verifier]\nnetwork_mode = "public"\n', False),
        ('artifacts = ["x"]\n', False),
        ('[steps.verifier]\nenvironment_mode = "separate"\n', False),
    ],
)
def test_what_a_step_says_is_in_its_identity(tmp_path: Path, step: str, generation: bool) -> None:
    steps = TOML + '[[steps]]\nname = "a"\n[[steps]]\nname = "b"\n'
    files = {f"steps/{name}/instruction.md": "Do." for name in "ab"}
    task = write_task(tmp_path, toml=steps, files=files)
    before = identity(task)
    (task / "task.toml").write_text(steps + step)
    after = identity(task)
    assert (before[0] != after[0], before[1] != after[1]) == (generation, True)


def test_where_a_task_lies_is_in_no_identity(tmp_path: Path) -> None:
    one, other = write_task(tmp_path / "x"), write_task(tmp_path / "y")
    assert identity(one) == identity(other)


def test_auto_is_an_engine_where_tasks_bring_images_and_a_sandbox_where_they_do_not(
    tmp_path: Path,
) -> None:
    task = write_task(tmp_path)
    with_images, without = harbor(task, images="task").info(), harbor(task).info()
    assert resolve_auto(True, wants_images=with_images.wants_images) == "docker"
    assert resolve_auto(True, wants_images=without.wants_images) == "sandbox"


def test_hooks_have_the_time_that_the_task_grants_them(tmp_path: Path) -> None:
    hooks = "".join(
        f'[[verifier.collect]]\ncommand = "{name}"\ntimeout_sec = {limit}\n'
        for name, limit in (("a", 300), ("b", 10))
    )
    found = shown(write_task(tmp_path, toml=SEPARATE + hooks))
    assert found.collect_command_s == 310
    assert found.collect_command is not None
    assert found.collect_command[-2:] == ("a", "b")


def test_a_category_is_the_one_of_the_metadata(tmp_path: Path) -> None:
    write_task(tmp_path, "a", toml='[metadata]\ncategory = "text"\n')
    write_task(tmp_path, "b", toml="[metadata]\ncategory = 5\n")
    categories = [task.category for task in harbor(tmp_path).load_tasks()]
    assert categories == ["text", None]


def test_a_task_that_is_not_run_says_why_in_its_attempt_alone(tmp_path: Path) -> None:
    write_task(tmp_path, "fine")
    write_task(tmp_path, "greedy", toml=TOML + "gpus = 1\n")
    benchmark = harbor(tmp_path)
    fine, greedy = benchmark.load_tasks()
    assert benchmark.task_input(fine, attempt=1, seed=1).messages
    with pytest.raises(AttemptFault, match=r"task\.toml:4:1 environment\.gpus: no provider"):
        benchmark.task_input(greedy, attempt=1, seed=1)
    assert benchmark.generation_content(greedy)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"reward_range": [1, 0]}, "the first must be below the second"),
        ({"pass_at": 2}, "pass_at must lie in reward_range"),
        ({"path": ""}, "at least 1 character"),
        ({"image": "x"}, "Extra inputs"),
        ({"images": "some"}, "'task' or 'none'"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(params: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        Harbor.Params.model_validate({"path": "x", **params})


def test_a_relative_path_starts_where_the_settings_do(tmp_path: Path) -> None:
    params = Harbor.Params.model_validate({"path": "tasks"}, context={"base_dir": tmp_path})
    assert Harbor(params).root() == tmp_path / "tasks"
