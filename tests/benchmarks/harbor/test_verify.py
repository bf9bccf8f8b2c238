"""Tests run after the agent, and only their reward file says how it fared."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.components.environment import NoParams
from steelyard.components.harness import Harness, HarnessContext, HarnessResult, HarnessTraits
from steelyard.components.issues import IssueCode, Outcome, Severity
from steelyard.environments.host_process import HostProcess
from steelyard.environments.sandbox import Sandbox
from steelyard.harnesses.oracle import Oracle
from tests.benchmarks.harbor.task_folders import REWARD, attempt, harbor, write_task

pytestmark = pytest.mark.integration

JSON = REWARD.replace(".txt", ".json")
ORACLE = Oracle(NoParams())


class Does(Harness):
    """Runs one command in the agent's environment."""

    id = "does"
    traits = HarnessTraits(calls_model=False)

    def __init__(self, command: str) -> None:
        super().__init__(NoParams())
        self._command = command

    async def run(self, context: HarnessContext) -> HarnessResult:
        session = await context.session()
        await session.exec(["/bin/sh", "-c", self._command])
        return HarnessResult(None)


def test_a_solution_passes_and_nothing_fails(tmp_path: Path) -> None:
    benchmark = harbor(write_task(tmp_path))
    passed, failed = attempt(benchmark, ORACLE), attempt(benchmark)
    assert (passed.outcome, passed.metrics) == (Outcome.SCORED, {"passed": True, "reward": 1.0})
    assert (failed.outcome, failed.metrics) == (Outcome.SCORED, {"passed": False, "reward": 0.0})


@pytest.mark.parametrize(
    ("test", "words"),
    [
        ("exit 0", "reward.txt is missing"),
        (f": >{REWARD}", "reward.txt is empty"),
        (f"echo passed >{REWARD}", "reward.txt holds 'passed', which is not a number"),
        (f"echo nan >{REWARD}", "reward.txt holds nan, which is not finite"),
        (f"echo 1.5 >{REWARD}", "reward.txt holds 1.5, which is not from 0 to 1"),
        (f"echo -0.1 >{REWARD}", "reward.txt holds -0.1, which is not from 0 to 1"),
        (f"mkdir {REWARD}", "reward.txt cannot be read"),
        (f"ln -s /etc/passwd {REWARD}", "reward.txt cannot be read"),
        (f"head -c 70000 /dev/zero >{REWARD}", "reward.txt cannot be read"),
        (
            f"echo '{{' >{JSON}; echo 1 >{REWARD}",
            "reward.json is not JSON",
        ),
        (
            f'echo \'{{"a": 1, "b": 0}}\' >{JSON}',
            "reward.json holds a, b, and none is called 'reward'",
        ),
    ],
)
def test_without_a_verdict_the_scorer_failed_and_the_file_is_named(
    tmp_path: Path, test: str, words: str
) -> None:
    result = attempt(harbor(write_task(tmp_path, test=f"echo noise\n{test}\nexit 3")), ORACLE)
    (issue,) = result.issues
    assert (result.outcome, result.metrics) == (Outcome.FAILED_FATAL, {})
    assert (issue.severity, issue.code) == (Severity.FATAL, IssueCode.SCORER_CRASHED)
    assert words in issue.message
    if "holds a" not in words and "from 0 to 1" not in words:
        assert "exit code" in issue.message
        assert "noise" in issue.message


def test_how_the_script_ends_says_nothing(tmp_path: Path) -> None:
    result = attempt(harbor(write_task(tmp_path, test=f"echo 1 >{REWARD}; kill -9 $$")))
    assert result.metrics == {"passed": True, "reward": 1.0}
    assert result.details["exit_code"] != 0


def test_several_rewards_are_kept_and_a_lower_bar_can_be_set(tmp_path: Path) -> None:
    write = f'echo \'{{"reward": 0.7, "speed": 2, "we ird": 1}}\' >{JSON}'
    task = write_task(tmp_path, test=write)
    assert attempt(harbor(task)).metrics == {"passed": False, "reward": 0.7, "reward.speed": 2.0}
    result = attempt(harbor(task, pass_at=0.7))
    assert result.metrics["passed"] is True
    assert result.details["rewards"] == {"reward": 0.7, "speed": 2, "we ird": 1}


def test_tests_that_hang_are_ended_and_are_the_scorers_fault(tmp_path: Path) -> None:
    toml = '[environment]\nnetwork_mode = "no-network"\n[verifier]\ntimeout_sec = 0.5\n'
    result = attempt(harbor(write_task(tmp_path, toml=toml, test="sleep 600 & sleep 600")), ORACLE)
    (issue,) = result.issues
    assert (issue.severity, issue.code) == (Severity.FATAL, IssueCode.SCORER_TIMED_OUT)
    assert "0.5 s" in issue.message


def test_neither_a_planted_verdict_nor_planted_tests_survive(tmp_path: Path) -> None:
    plant = (
        "mkdir -p .harbor/logs/verifier .harbor/tests;"
        "echo 1 >.harbor/logs/verifier/reward.txt;"
        "echo '{\"reward\": 1}' >.harbor/logs/verifier/reward.json;"
        "echo 'echo planted >&2' >.harbor/tests/more.sh"
    )
    task = write_task(tmp_path, test='ls "$STEELYARD_TESTS_DIR"; exit 0')
    result = attempt(harbor(task), Does(plant))
    (issue,) = result.issues
    assert "reward.txt is missing" in issue.message
    assert "more.sh" not in issue.message


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf .harbor; touch .harbor",
        "rm -rf .harbor/logs; touch .harbor/logs",
        "rm -rf .harbor/logs; ln -s ../elsewhere .harbor/logs",
        "rm -rf .harbor; ln -s elsewhere .harbor",
        "rm -rf .harbor/logs/artifacts; ln -s /etc .harbor/logs/artifacts",
    ],
)
def test_an_agent_that_puts_something_else_in_a_folders_place_is_scored(
    tmp_path: Path, command: str
) -> None:
    """It had no score else, and FATAL is not what it earned."""
    plant = "mkdir -p elsewhere/logs/verifier elsewhere/verifier; touch done; "
    plant += "for d in elsewhere/logs elsewhere; do echo 0 >$d/verifier/reward.txt; done; "
    result = attempt(harbor(write_task(tmp_path)), Does(plant + command))
    assert result.metrics == {"passed": True, "reward": 1.0}, result.issues


def test_the_agent_sees_neither_tests_nor_solution(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    result = attempt(
        harbor(write_task(tmp_path / "tasks", files={"tests/hidden.txt": "42"})),
        Does(f"find . >{seen}"),
    )
    assert result.outcome is Outcome.SCORED
    assert "hidden" not in seen.read_text()
    assert "solve" not in seen.read_text()
    assert "test.sh" not in seen.read_text()


@pytest.mark.parametrize("provider", [HostProcess, Sandbox])
def test_an_agent_that_deletes_its_working_folder_is_scored(
    tmp_path: Path, provider: type[HostProcess] | type[Sandbox]
) -> None:
    task = write_task(tmp_path)
    environment = provider(provider.Params())
    result = attempt(harbor(task), Does('rm -rf "$PWD" .harbor ./* 2>/dev/null'), environment)
    assert (result.outcome, result.metrics) == (Outcome.SCORED, {"passed": False, "reward": 0.0})


def test_what_an_agent_had_done_when_its_time_ran_out_is_scored(tmp_path: Path) -> None:
    toml = '[environment]\nnetwork_mode = "no-network"\n[agent]\ntimeout_sec = 1\n'
    result = attempt(harbor(write_task(tmp_path, toml=toml)), Does("touch done; sleep 60"))
    assert [issue.code for issue in result.issues] == [IssueCode.AGENT_TIMED_OUT]
    assert (result.outcome, result.metrics["passed"]) == (Outcome.SCORED, True)


def test_variables_reach_agent_tests_and_solution_each_their_own(tmp_path: Path) -> None:
    toml = """
    [environment]
    network_mode = "no-network"
    [environment.env]
    SHARED = "both"
    ASKED = "${WORD:-nobody said}"
    [verifier.env]
    TESTS = "${WORD}"
    [solution.env]
    SOLUTION = "mine"
    """
    task = write_task(
        tmp_path,
        toml=toml,
        solve='echo "$SHARED $ASKED $SOLUTION $TESTS" >done',
        test='said="$(cat done) $SHARED $TESTS $SOLUTION"; echo "$said";'
        f'[ "$said" = "both hello mine  both hello " ] && echo 1 >{REWARD} || echo 0 >{REWARD}',
    )
    result = attempt(harbor(task, variables={"WORD": "hello"}), ORACLE)
    assert result.metrics["passed"] is True, result.details


def test_a_separate_verifier_sees_what_the_task_names_and_nothing_else(tmp_path: Path) -> None:
    toml = """
    artifacts = ["out", { source = "kept", exclude = ["*.tmp"] }, "/app/below", "gone"]
    [environment]
    network_mode = "no-network"
    [verifier]
    environment_mode = "separate"
    [[verifier.collect]]
    command = "echo hook >out/hook"
    """
    work = (
        "mkdir -p out kept/sub below .harbor/logs/artifacts;"
        "touch done out/a kept/b kept/x.tmp kept/sub/y.tmp below/c .harbor/logs/artifacts/d"
    )
    test = f'find . -type f | grep -v "tests/\\|verifier/" | sort; echo 1 >{REWARD}'
    result = attempt(harbor(write_task(tmp_path, toml=toml, test=test)), Does(work))
    assert result.details["output"].split() == [
        "./.harbor/logs/artifacts/d",
        "./below/c",
        "./kept/b",
        "./out/a",
        "./out/hook",
    ]


def test_a_health_check_that_never_passes_is_no_fault_of_the_agents(tmp_path: Path) -> None:
    toml = """
    [environment]
    network_mode = "no-network"
    [environment.healthcheck]
    command = "echo not yet; exit 4"
    interval_sec = 0.01
    retries = 2
    """
    result = attempt(harbor(write_task(tmp_path, toml=toml)))
    (issue,) = result.issues
    assert (issue.severity, issue.code) == (Severity.FATAL, IssueCode.ENVIRONMENT_OPEN_FAILED)
    assert "ended with 4: not yet" in issue.message


def test_a_health_check_is_waited_for(tmp_path: Path) -> None:
    toml = """
    [environment]
    network_mode = "no-network"
    [environment.healthcheck]
    command = "echo x >>tries; test $(wc -l <tries) -ge 4"
    interval_sec = 0.01
    start_interval_sec = 0.01
    start_period_sec = 600
    retries = 1
    """
    test = f'[ "$(wc -l <tries)" -eq 4 ] && echo 1 >{REWARD} || echo 0 >{REWARD}'
    assert attempt(harbor(write_task(tmp_path, toml=toml, test=test))).metrics["passed"] is True


def test_a_solution_is_judged_by_the_tests_not_by_its_exit_code(tmp_path: Path) -> None:
    task = write_task(tmp_path, solve="touch done; exit 7")
    result = attempt(harbor(task), ORACLE)
    assert result.metrics["passed"] is True
    assert "solve.sh ended with exit code 7" in str([step.message for step in result.steps])
