"""A task in steps: sent to work on one after another, each scored before the next begins."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from steelyard.benchmarks.harbor.schema import StepTable
from steelyard.benchmarks.harbor.steps import combined_rewards, reaches
from steelyard.components.environment import EnvironmentFault, NoParams, OpenRequest, Session
from steelyard.components.harness import Harness, HarnessContext, HarnessResult, HarnessTraits
from steelyard.components.issues import IssueCode, Outcome
from steelyard.engine.spec import ExecutionResult
from steelyard.environments.host_process import HostProcess
from steelyard.harnesses.chat import Chat
from steelyard.harnesses.oracle import Oracle
from steelyard.testing.attempts import run_attempt
from tests.benchmarks.harbor.task_folders import REWARD, attempt, harbor, write_task

FILES = {
    "steps/first/instruction.md": "Make one.",
    "steps/first/tests/test.sh": "#!/bin/sh\n"
    f"test -f one && echo 1 >{REWARD} || echo 0 >{REWARD}\n",
    "steps/first/solution/solve.sh": "#!/bin/sh\ntouch one\n",
    "steps/second/instruction.md": "Make two.",
    "steps/second/workdir/setup.sh": "test -f one && touch ready && rm setup.sh\n",
    "steps/second/workdir/input.txt": "2",
    "steps/second/tests/test.sh": f"#!/bin/sh\necho 0.5 >{REWARD}\n",
    "steps/second/solution/solve.sh": "#!/bin/sh\ntest -f ready && cp input.txt two\n",
}


def toml(first: str = "", second: str = "", top: str = "") -> str:
    return (
        f'{top}\n[environment]\nnetwork_mode = "no-network"\n'
        f'[[steps]]\nname = "first"\n{first}\n[[steps]]\nname = "second"\n{second}\n'
    )


class Notes(Harness):
    """Notes what it is shown, and does one thing a step."""

    id = "notes"
    traits = HarnessTraits(calls_model=False)

    def __init__(self, *commands: str) -> None:
        super().__init__(NoParams())
        self._commands = list(commands)
        self.shown: list[str] = []
        self.listed: list[str] = []

    async def run(self, context: HarnessContext) -> HarnessResult:
        self.shown.append(context.input.messages[0].content)
        session = await context.session()
        listed = await session.exec(["find", ".", "-type", "f"])
        self.listed.append(listed.stdout_text)
        await session.exec(["/bin/sh", "-c", self._commands[len(self.shown) - 1]])
        return HarnessResult(f"said {len(self.shown)}")


@pytest.mark.integration
def test_every_step_is_shown_in_turn_with_its_files_and_never_the_tests(tmp_path: Path) -> None:
    agent = Notes("touch one", "true")
    result = attempt(harbor(write_task(tmp_path, toml=toml(), test=None, files=FILES)), agent)
    assert agent.shown == ["Make one.", "Make two."]
    assert "input.txt" not in agent.listed[0]
    assert "input.txt" in agent.listed[1]
    assert "ready" in agent.listed[1]
    assert not any("test.sh" in listed or "reward" in listed for listed in agent.listed)
    assert result.metrics == {"passed": False, "reward": 0.75}
    assert [step["name"] for step in result.details["steps"]] == ["first", "second"]
    assert result.answer == "said 2"


@pytest.mark.integration
def test_a_threshold_that_is_missed_ends_the_task(tmp_path: Path) -> None:
    agent = Notes("true", "true")
    task = write_task(tmp_path, toml=toml("min_reward = 1.0"), test=None, files=FILES)
    result = attempt(harbor(task), agent)
    assert agent.shown == ["Make one."]
    assert (result.outcome, result.metrics["reward"]) == (Outcome.SCORED, 0.0)


@pytest.mark.integration
def test_the_solutions_of_the_steps_are_played_in_turn(tmp_path: Path) -> None:
    files = {**FILES, "steps/second/tests/test.sh": f"#!/bin/sh\ntest -s two && echo 1 >{REWARD}\n"}
    top = 'multi_step_reward_strategy = "final"'
    task = write_task(tmp_path, toml=toml(top=top), test=None, files=files)
    assert attempt(harbor(task), Oracle(NoParams())).metrics == {"passed": True, "reward": 1.0}


@pytest.mark.integration
def test_each_step_has_its_own_time_and_the_one_that_runs_out_is_the_last(tmp_path: Path) -> None:
    first = "[steps.agent]\ntimeout_sec = 30\n"
    second = "[steps.agent]\ntimeout_sec = 1\n"
    agent = Notes("touch one; sleep 2", "sleep 60")
    task = write_task(tmp_path, toml=toml(first, second), test=None, files=FILES)
    result = attempt(harbor(task), agent)
    assert [issue.code for issue in result.issues] == [IssueCode.AGENT_TIMED_OUT]
    assert "1 s ran out" in result.issues[0].message
    assert (result.outcome, result.metrics["reward"]) == (Outcome.SCORED, 0.75)


@pytest.mark.integration
def test_a_step_that_was_never_begun_for_want_of_time_counts_as_nothing(tmp_path: Path) -> None:
    first = "[steps.agent]\ntimeout_sec = 1\n"
    agent = Notes("touch one; sleep 60", "true")
    task = write_task(tmp_path, toml=toml(first), test=None, files=FILES)
    result = attempt(harbor(task), agent)
    assert agent.shown == ["Make one."]
    assert result.metrics == {"passed": False, "reward": 0.5}


@pytest.mark.integration
def test_scoring_between_steps_is_not_the_agents_time(tmp_path: Path) -> None:
    files = {**FILES, "steps/first/tests/test.sh": f"#!/bin/sh\nsleep 2\necho 1 >{REWARD}\n"}
    limits = "[steps.agent]\ntimeout_sec = 1.5\n"
    task = write_task(tmp_path, toml=toml(limits, limits), test=None, files=files)
    result = attempt(harbor(task), Notes("touch one", "true"))
    assert result.issues == ()
    assert result.times.evaluate_s >= 2
    assert result.times.agent_s < 2
    assert result.times.waited_s < 2


@pytest.mark.integration
@pytest.mark.parametrize(
    ("path", "text", "code", "words"),
    [
        (
            "steps/second/workdir/setup.sh",
            "echo no >&2; exit 3\n",
            "task_invalid",
            "exit code 3: no",
        ),
        ("steps/first/tests/test.sh", "#!/bin/sh\n", "scorer_crashed", "reward.txt is missing"),
        ("steps/second/tests/test.sh", "#!/bin/sh\nsleep 60", "scorer_timed_out", "0.7 s"),
    ],
)
def test_a_fault_between_steps_is_never_the_agents(
    tmp_path: Path, path: str, text: str, code: str, words: str
) -> None:
    second = "[steps.verifier]\ntimeout_sec = 0.7\n"
    task = write_task(tmp_path, toml=toml(second=second), test=None, files={**FILES, path: text})
    result = attempt(harbor(task), Notes("touch one", "true"))
    (issue,) = result.issues
    assert (result.outcome, issue.code) == (Outcome.FAILED_FATAL, code)
    assert words in issue.message


@pytest.mark.integration
def test_a_model_is_asked_in_every_step_and_all_that_it_says_counts(tmp_path: Path) -> None:
    task = write_task(tmp_path, toml=toml(), test=None, files=FILES)
    benchmark = harbor(task)
    files = {**FILES, "steps/second/workdir/setup.sh": "rm setup.sh\n"}
    write_task(tmp_path, toml=toml(), test=None, files=files)

    async def run() -> ExecutionResult:
        answers = ["first", "second"]
        provider = HostProcess(HostProcess.Params())
        (one,) = benchmark.load_tasks()
        return await run_attempt(benchmark, one, Chat(Chat.Params()), provider, model=answers)

    result = asyncio.run(run())
    assert result.issues == ()
    assert result.answer == "second"
    assert result.usage.requests == 2
    said = [step.message for step in result.steps if step.source == "agent"]
    assert said == ["first", "second"]


def steps(*thresholds: float | None) -> list[StepTable]:
    return [StepTable(name=str(n), min_reward=least) for n, least in enumerate(thresholds)]


@pytest.mark.parametrize(
    ("scored", "thresholds", "strategy", "combined"),
    [
        ([1, 1], (None, None), "mean", 1.0),
        ([1, 0], (None, None), "mean", 0.5),
        ([1, 0], (None, None), "final", 0.0),
        ([0, 1], (None, None), "final", 1.0),
        ([0.5], (1.0, None), "mean", 0.5),  # the threshold ended it
        ([0.5], (1.0, None), "final", 0.5),
        ([1], (1.0, None), "mean", 0.5),  # the agent's time ended it
        ([1], (None, None), "final", 0.0),
    ],
)
def test_rewards_of_steps_are_combined_as_the_format_says(
    scored: list[float], thresholds: tuple[float | None, ...], strategy: str, combined: float
) -> None:
    rewards = [{"reward": float(value)} for value in scored]
    found = combined_rewards(rewards, steps(*thresholds), strategy)  # type: ignore[arg-type]
    assert found == {"reward": combined}


def test_a_reward_that_a_step_does_not_give_counts_as_nothing() -> None:
    found = combined_rewards(
        [{"reward": 1.0, "x": 1.0}, {"reward": 1.0}], steps(None, None), "mean"
    )
    assert found == {"reward": 1.0, "x": 0.5}


def test_a_missing_reward_meets_no_threshold() -> None:
    assert not reaches({"reward": 1.0}, {"speed": 0.0})
    assert reaches({"reward": 1.0}, {"reward": 1.0})
    assert reaches({}, {})


SEPARATE = '[steps.verifier]\nenvironment_mode = "separate"\n'


@pytest.mark.integration
def test_a_step_may_be_verified_elsewhere_and_the_agent_goes_on_where_it_was(
    tmp_path: Path,
) -> None:
    sees = (
        f"[ -f one ] && [ ! -e secret ] && [ ! -e extra ] && echo 1 >{REWARD} || echo 0 >{REWARD}"
    )
    leaves = f"touch left; [ -f secret ] && echo 1 >{REWARD} || echo 0 >{REWARD}"
    files = {
        **FILES,
        "steps/first/tests/test.sh": f"#!/bin/sh\n{sees}\n",
        "steps/second/workdir/setup.sh": "[ -f one ] && [ -f secret ] && [ ! -e left ]\n",
        "steps/second/tests/test.sh": f"#!/bin/sh\n{leaves}\n",
    }
    text = toml(first=f'artifacts = ["one"]\nmin_reward = 1\n{SEPARATE}')
    agent = Notes("touch one secret", "touch extra")
    task = write_task(tmp_path, toml=text, test=None, files=files)
    result = attempt(harbor(task), agent)
    assert result.metrics == {"passed": True, "reward": 1.0}, result
    assert agent.shown == ["Make one.", "Make two."]


@pytest.mark.integration
def test_each_step_that_is_verified_elsewhere_gets_what_the_agent_had_then(tmp_path: Path) -> None:
    counts = (
        f'wc -l <log >"$STEELYARD_LOGS_DIR/n"; echo "0.$(cat "$STEELYARD_LOGS_DIR/n")" >{REWARD}'
    )
    files = {
        **FILES,
        "steps/first/tests/test.sh": f"#!/bin/sh\n{counts}\n",
        "steps/second/workdir/setup.sh": "true\n",
        "steps/second/tests/test.sh": f"#!/bin/sh\n{counts}\n",
    }
    text = toml(first=SEPARATE, second=SEPARATE, top='artifacts = ["log"]')
    agent = Notes("echo 1 >>log", "echo 2 >>log")
    result = attempt(harbor(write_task(tmp_path, toml=text, test=None, files=files)), agent)
    assert result.metrics["reward"] == pytest.approx(0.15), result.issues
    assert [step["rewards"]["reward"] for step in result.details["steps"]] == [0.1, 0.2]


@pytest.mark.integration
def test_a_step_whose_time_runs_out_is_verified_elsewhere_all_the_same(tmp_path: Path) -> None:
    files = {**FILES, "steps/first/tests/test.sh": FILES["steps/first/tests/test.sh"]}
    text = toml(first=f'artifacts = ["one"]\n{SEPARATE}[steps.agent]\ntimeout_sec = 1\n')
    agent = Notes("touch one; sleep 60", "true")
    result = attempt(harbor(write_task(tmp_path, toml=text, test=None, files=files)), agent)
    assert [issue.code for issue in result.issues] == [IssueCode.AGENT_TIMED_OUT]
    assert result.metrics == {"passed": False, "reward": 0.5}, result


@pytest.mark.integration
def test_a_scorers_session_that_does_not_close_scores_no_other_step(tmp_path: Path) -> None:
    stuck: list[Session] = []

    class Sticky(HostProcess):
        async def open(self, request: OpenRequest) -> Session:
            session = await super().open(request)
            if request.token.endswith("-s"):
                close, stuck_now = session.close, session

                async def refuse() -> None:
                    stuck.append(stuck_now)
                    await close()
                    raise EnvironmentFault("its folder stays")

                session.close = refuse  # type: ignore[method-assign]
            return session

    says = f"pwd; [ ! -e seen ] && touch seen && echo 1 >{REWARD} || echo 0 >{REWARD}"
    files = {
        **FILES,
        "steps/first/tests/test.sh": f"#!/bin/sh\n{says}\n",
        "steps/second/workdir/setup.sh": "true\n",
        "steps/second/tests/test.sh": f"#!/bin/sh\n{says}\n",
    }
    task = write_task(tmp_path, toml=toml(SEPARATE, SEPARATE), test=None, files=files)
    environment = Sticky(HostProcess.Params())
    result = attempt(harbor(task), Notes("true", "true"), environment)
    assert result.metrics == {"passed": True, "reward": 1.0}, result
    assert [issue.code for issue in result.issues] == [IssueCode.CLEANUP_FAILED] * 2
    said = result.issues[0].message
    assert "the scorer's environment did not close (EnvironmentFault: its folder stays)" in said
    assert "`steelyard env list` shows what is left of it" in said
    assert len({session.workdir for session in stuck}) == 2
