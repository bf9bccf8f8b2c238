"""Task folders in containers: the format's own paths, images and verifiers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steelyard.components.environment import NoParams
from steelyard.components.issues import IssueCode, Outcome
from steelyard.components.registry import Kind, find
from steelyard.engine.spec import ExecutionResult
from steelyard.harnesses.nop import Nop
from steelyard.harnesses.oracle import Oracle
from tests.benchmarks.harbor.task_folders import attempt, harbor, write_task
from tests.benchmarks.harbor.test_verify import Does
from tests.containers.fixtures import Engine
from tests.containers.listening import WORD, listening

pytestmark = pytest.mark.integration

ORACLE = Oracle(NoParams())
REWARD = "/logs/verifier/reward.txt"


def when(condition: str) -> str:
    """Tests that reward 1 when a condition of the shell holds."""
    return f"if {condition}; then echo 1 >{REWARD}; else echo 0 >{REWARD}; fi"


TEST = when("test -f /app/done")
Run = Callable[..., ExecutionResult]


@pytest.fixture
def run(docker_host: Engine) -> Run:
    """Runs one attempt at a task in a container of the test's engine."""
    docker = find(Kind.ENVIRONMENT, "docker").component

    def once(task: Path, harness: Any = None, **params: Any) -> ExecutionResult:
        benchmark = harbor(task, images="task", **params)
        return attempt(benchmark, harness or Nop(NoParams()), docker(docker.Params()))

    return once


def made(tmp_path: Path, image: str, *, toml: str = "", dockerfile: str = "", **rest: Any) -> Path:
    files = {"environment/Dockerfile": f"FROM {image}\nWORKDIR /app\n{dockerfile}"}
    files.update(rest.pop("files", {}))
    network = '[environment]\nnetwork_mode = "no-network"\n'
    rest = {"test": TEST, "solve": "touch done", **rest}
    return write_task(tmp_path, toml=toml or network, files=files, **rest)


def test_paths_are_those_of_the_format(tmp_path: Path, debian_image: str, run: Run) -> None:
    task = made(
        tmp_path,
        debian_image,
        dockerfile="COPY input.txt /etc/input.txt\nENV COLOUR=red\n",
        files={"environment/input.txt": "x", "solution/more.txt": "y", "tests/want.txt": "y"},
        solve='[ "$COLOUR" = red ] && [ -s /etc/input.txt ] && cp /solution/more.txt .',
        test=when("cmp -s more.txt /tests/want.txt"),
    )
    passed, failed = run(task, ORACLE), run(task)
    assert passed.metrics == {"passed": True, "reward": 1.0}, passed
    assert failed.metrics == {"passed": False, "reward": 0.0}, failed


def test_an_agent_that_deletes_its_working_folder_is_scored(
    tmp_path: Path, debian_image: str, run: Run
) -> None:
    result = run(made(tmp_path, debian_image), Does("rm -rf /app /tests /logs"))
    assert result.metrics == {"passed": False, "reward": 0.0}, result.issues


@pytest.mark.parametrize(
    "command",
    [
        "kill -TERM 1; kill -9 1; kill -HUP 1; touch done; kill -9 -1",
        "touch done; for p in /proc/[0-9]*; do kill -TERM ${p#/proc/}; done",
        "touch done; rm -rf /logs; touch /logs; ln -sfn /proc /tests",
    ],
    ids=["all processes", "every shell", "folders"],
)
def test_an_agent_that_strikes_about_itself_is_scored(
    tmp_path: Path, debian_image: str, run: Run, command: str
) -> None:
    result = run(made(tmp_path, debian_image), Does(command))
    assert result.metrics == {"passed": True, "reward": 1.0}, result.issues


@pytest.mark.parametrize("toml", ["", "storage_mb = 1024\n"], ids=["plain", "its disk watched"])
@pytest.mark.parametrize(
    "command",
    ["rm -rf /bin /usr /lib /lib64 2>/dev/null", "rm -f /usr/bin/dash", "chmod 000 /usr/bin/dash"],
    ids=["everything", "the shell", "its mode"],
)
def test_an_agent_that_leaves_nothing_that_starts_fell_short(
    tmp_path: Path, debian_image: str, run: Run, command: str, toml: str
) -> None:
    """It would be left out of the figures else, as by a fault of ours."""
    toml = f'[environment]\nnetwork_mode = "no-network"\n{toml}'
    result = run(made(tmp_path, debian_image, toml=toml), Does(command))
    (issue,) = result.issues
    assert (result.outcome, issue.code) == (Outcome.FAILED_ERROR, IssueCode.AGENT_FAILED)
    assert "no program starts" in issue.message


def test_a_verifier_with_an_image_of_its_own_brings_its_tests(
    tmp_path: Path, debian_image: str, run: Run
) -> None:
    toml = """
    artifacts = ["/app/out"]
    [environment]
    network_mode = "no-network"
    [verifier]
    environment_mode = "separate"
    """
    task = made(
        tmp_path,
        debian_image,
        toml=toml,
        solve="mkdir -p /app/out && echo 1 >/app/out/a && echo 2 >/logs/artifacts/b && touch left",
        test=when(
            "cat out/a /logs/artifacts/b | grep -c . | grep -qx 2 && [ ! -e left ] && [ -e /own ]"
        ),
        files={
            "tests/Dockerfile": f"FROM {debian_image}\n"
            "RUN touch /own\nWORKDIR /app\nCOPY . /tests/\n"
        },
    )
    passed, failed = run(task, ORACLE), run(task)
    assert passed.metrics == {"passed": True, "reward": 1.0}, passed
    assert failed.metrics == {"passed": False, "reward": 0.0}, failed


def test_the_verifier_may_have_a_network_that_the_agent_has_not(
    tmp_path: Path, debian_image: str, docker_host: Engine
) -> None:
    toml = """
    artifacts = ["/app/out"]
    [environment]
    network_mode = "no-network"
    [verifier]
    environment_mode = "separate"
    [verifier.environment]
    network_mode = "public"
    """
    with listening() as port:
        fetch = (
            "python3 -c 'import urllib.request as u; "
            f'print(u.urlopen("http://127.0.0.1:{port}", timeout=5).read().decode())\''
        )
        task = made(
            tmp_path,
            debian_image,
            toml=toml,
            test=when(f"[ -e out/tried ] && [ ! -s out/got ] && {fetch} | grep -q {WORD.decode()}"),
            files={"tests/Dockerfile": f"FROM {debian_image}\nWORKDIR /app\nCOPY . /tests/\n"},
        )
        docker = find(Kind.ENVIRONMENT, "docker").component
        agent = Does(f"mkdir -p out; {fetch} >out/got; touch out/tried")
        environment = docker(docker.Params(open_network="host"))
        result = attempt(harbor(task, images="task"), agent, environment)
    assert result.metrics == {"passed": True, "reward": 1.0}, result


def test_tests_that_hang_are_ended_in_the_container_too(
    tmp_path: Path, debian_image: str, run: Run
) -> None:
    toml = '[environment]\nnetwork_mode = "no-network"\n[verifier]\ntimeout_sec = 2\n'
    result = run(made(tmp_path, debian_image, toml=toml, test="sleep 500"))
    (issue,) = result.issues
    assert (result.outcome, issue.code) == (Outcome.FAILED_FATAL, IssueCode.SCORER_TIMED_OUT)


def test_a_reward_that_is_a_link_is_no_reward(tmp_path: Path, debian_image: str, run: Run) -> None:
    test = "echo 1 >/tmp/mine; ln -s /etc/hostname /logs/verifier/reward.txt"
    result = run(made(tmp_path, debian_image, test=test))
    (issue,) = result.issues
    assert issue.code is IssueCode.SCORER_CRASHED
    assert "reward.txt" in issue.message


def test_an_image_that_does_not_build_says_its_last_lines(
    tmp_path: Path, debian_image: str, run: Run
) -> None:
    result = run(made(tmp_path, debian_image, dockerfile="RUN echo so far; exit 9\n"))
    (issue,) = result.issues
    assert (result.outcome, issue.code) == (Outcome.FAILED_FATAL, IssueCode.ENVIRONMENT_OPEN_FAILED)
    assert "so far" in issue.message


def test_steps_share_one_container(tmp_path: Path, debian_image: str, run: Run) -> None:
    toml = """
    multi_step_reward_strategy = "final"
    [environment]
    network_mode = "no-network"
    [[steps]]
    name = "a"
    min_reward = 1
    [[steps]]
    name = "b"
    """
    one, two = when("test -f one && [ ! -e two ]"), when("test -f one && test -f two")
    clean = f"[ ! -e /tests/test.sh ] && [ ! -e {REWARD} ]"
    task = made(
        tmp_path,
        debian_image,
        toml=toml,
        test=None,
        solve=None,
        files={
            "steps/a/instruction.md": "One.",
            "steps/a/tests/test.sh": f"#!/bin/sh\n{one}\n",
            "steps/a/solution/solve.sh": "#!/bin/bash\ntouch one\n",
            "steps/b/instruction.md": "Two.",
            "steps/b/workdir/setup.sh": clean,
            "steps/b/tests/test.sh": f"#!/bin/sh\n{two}\n",
            "steps/b/solution/solve.sh": "#!/bin/bash\ntouch two\n",
        },
    )
    assert run(task, ORACLE).metrics == {"passed": True, "reward": 1.0}


def test_an_image_with_a_user_of_its_own_is_worked_and_tested_in_as_that_user(
    tmp_path: Path, debian_image: str, run: Run
) -> None:
    task = made(
        tmp_path,
        debian_image,
        dockerfile="RUN chown agent /app\nUSER agent\n",
        solve="id -un >done; mkdir -p /logs/artifacts && touch /logs/artifacts/x",
        test=when('[ "$(cat done) $(id -un)" = "agent agent" ]'),
    )
    result = run(task, ORACLE)
    assert result.metrics == {"passed": True, "reward": 1.0}, result.issues
