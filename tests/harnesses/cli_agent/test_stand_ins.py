"""What agents do that nobody asked them to: each is borne, and said for what it is."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from steelyard.components.issues import IssueCode, Outcome
from steelyard.engine.spec import ExecutionResult, TimeLimits
from steelyard.engine.spec_json import result_to_bytes
from steelyard.harnesses.cli_agent import cache
from steelyard.harnesses.cli_agent.harness import CliAgent
from steelyard.harnesses.cli_agent.log import MAX_STEPS
from steelyard.testing.endpoint import MockEndpoint
from tests.engine.fakes import Watch
from tests.harnesses.cli_agent.running import HERE, ComponentSpec, model, run_agent
from tests.harnesses.cli_agent.stand_ins import STAND_IN

pytestmark = pytest.mark.integration

DAEMON_SECONDS = "46817"
"""How long the stand-in's daemon sleeps; no other test's process, running beside it, does so."""

HARNESS = f"{HERE / 'stand_ins.py'}:StandIn"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[MockEndpoint]:
    with MockEndpoint("--text", "done", "--model", "m") as served:
        yield served


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    cache.install(cache.Wanted(STAND_IN, "1.0.0", folder), timeout_s=60)
    return folder


@pytest.fixture
def stand_in(endpoint: MockEndpoint, data_dir: Path) -> Any:
    def run(mode: str, **more: Any) -> ExecutionResult:
        params = {"args": [mode], **more.pop("params", {})}
        given = {"endpoint": model(endpoint.url), "data_dir": data_dir, **more}
        return run_agent(HARNESS, params, **given)[0]

    return run


def codes(result: ExecutionResult) -> list[IssueCode]:
    return [issue.code for issue in result.issues]


def told(result: ExecutionResult) -> list[str]:
    """What the agent's own log says, as the last step holds it."""
    return [step["message"] for step in result.steps[-1].extra["log_steps"]]


def test_an_agent_of_a_plug_in_works_and_is_scored(stand_in: Any) -> None:
    result = stand_in("work")
    assert (result.outcome, result.issues) == (Outcome.SCORED, ()), result.issues
    assert result.metrics["score"] == 1.0
    assert result.answer == "work"
    assert result.steps[-1].extra["agent_version"] == "1.0.0"


def test_what_it_asks_its_model_is_counted_beside_what_it_tells(stand_in: Any) -> None:
    result = stand_in("ask")
    assert result.outcome is Outcome.SCORED, result.issues
    assert result.usage.requests == 1
    assert [step.source for step in result.steps] == ["user", "agent", "system"]
    assert told(result) == ["ask", "done"]


def test_an_agent_that_ignores_sigterm_is_ended_and_its_work_is_scored(stand_in: Any) -> None:
    began = time.monotonic()
    result = stand_in("stubborn", params={"timeout_seconds": 1.5})
    assert time.monotonic() - began < 30
    assert IssueCode.AGENT_TIMED_OUT in codes(result)
    assert told(result) == ["stubborn"]
    assert result.steps[-1].message == "stand_in was ended when its time was up"


def test_an_agent_cut_off_by_the_runs_own_limit_leaves_its_log(stand_in: Any) -> None:
    limits = TimeLimits(run_s=1.5)
    result = stand_in("stubborn", bounds={"limits": limits})
    assert IssueCode.AGENT_TIMED_OUT in codes(result)
    assert told(result) == ["stubborn"]
    assert result.steps[-1].extra["agent"] == "stand_in"


def test_a_log_that_is_flooded_is_read_in_part_and_that_is_told(stand_in: Any) -> None:
    before = psutil.Process().memory_info().rss
    result = stand_in("flood")
    grown = psutil.Process().memory_info().rss - before
    assert result.outcome is Outcome.SCORED
    assert codes(result) == [IssueCode.OUTPUT_TRUNCATED]
    assert "the rest is not read" in result.issues[0].message
    extra = result.steps[-1].extra
    assert 0 < len(extra["log_steps"]) <= MAX_STEPS
    assert extra["log_steps_left_out"] > 20_000
    assert len(result_to_bytes(result)) < 6 * 1024 * 1024
    assert grown < 400 * 1024 * 1024  # 60 MB of log, at most 32 of it read


def test_an_agent_that_prints_without_end_is_bounded(stand_in: Any) -> None:
    result = stand_in("endless", params={"timeout_seconds": 2, "max_output_bytes": 100_000})
    assert codes(result) == [IssueCode.AGENT_TIMED_OUT, IssueCode.OUTPUT_TRUNCATED]
    assert len(result_to_bytes(result)) < 200_000


def test_a_daemon_that_it_leaves_is_ended(stand_in: Any) -> None:
    result = stand_in("daemon")
    assert (result.outcome, result.issues) == (Outcome.SCORED, ())
    assert told(result) == ["daemon", "left a daemon"]
    left = [
        process.info["cmdline"]
        for process in psutil.process_iter(["cmdline"])
        if (process.info["cmdline"] or [])[-1:] == [DAEMON_SECONDS]
    ]
    assert left == []


def test_a_log_cut_off_in_mid_line_is_a_warning_and_what_stands_before_is_read(
    stand_in: Any,
) -> None:
    result = stand_in("torn")
    assert result.outcome is Outcome.SCORED
    assert codes(result) == [IssueCode.OUTPUT_TRUNCATED]
    assert "cut off in its last line" in result.issues[0].message
    assert told(result) == ["torn"]


def test_no_log_at_all_is_a_warning_and_the_work_is_scored(stand_in: Any) -> None:
    result = stand_in("nolog")
    assert (result.outcome, codes(result)) == (Outcome.SCORED, [IssueCode.OUTPUT_TRUNCATED])
    assert "left no log" in result.issues[0].message


def test_an_agent_killed_before_its_first_answer_says_so(data_dir: Path) -> None:
    with MockEndpoint("--text", "late", "--model", "m", "--latency", "60") as slow:
        watch = Watch()
        (result,) = run_agent(
            HARNESS,
            {"args": ["ask"], "timeout_seconds": 2},
            endpoint=model(slow.url),
            data_dir=data_dir,
            watch=watch,
        )
    assert IssueCode.AGENT_TIMED_OUT in codes(result)
    assert told(result) == ["ask"]
    assert result.usage.output_tokens == 0


def test_an_exit_code_is_the_agents_failure_with_its_last_words(stand_in: Any) -> None:
    result = stand_in("fail")
    assert result.outcome is Outcome.FAILED_ERROR
    assert codes(result) == [IssueCode.AGENT_FAILED]
    assert "exit code 3: it went wrong" in result.issues[0].message


def test_home_and_settings_are_private_to_the_session_and_not_measured(stand_in: Any) -> None:
    for _ in range(2):
        result = stand_in("home")
        assert "left-behind" not in told(result)
        assert result.metrics["score"] == 1.0


def test_the_program_sees_no_variable_of_this_process(
    stand_in: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OF_THE_HOST", "canary-of-the-host")
    shown = told(stand_in("show", params={"env": {"MINE": "x{token}"}}))
    assert not any("canary-of-the-host" in line for line in shown)
    assert "HOME=/tmp/steelyard-agent" in shown
    assert "MINE=x{token}" in shown  # what people write is taken as it is
    assert "prompt GREETING-JOB" in shown


def test_a_token_that_an_agent_writes_into_its_log_is_in_no_result(
    stand_in: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens: list[str] = []
    made = CliAgent._place

    def noted(self: Any, context: Any, session: Any, access: Any, home: str) -> Any:
        tokens.append(access.token)
        return made(self, context, session, access, home)

    monkeypatch.setattr(CliAgent, "_place", noted)
    result = stand_in("token")
    assert result.outcome is Outcome.SCORED
    assert any("my token is [redacted]" in line for line in told(result))
    assert len(tokens) == 1
    assert tokens[0].encode() not in result_to_bytes(result)


@pytest.mark.parametrize("mode", ["absent", "other"])
def test_an_environment_that_brings_no_program_or_another_version_is_said(
    mode: str, stand_in: Any
) -> None:
    version = "2.0.0" if mode == "other" else "1.0.0"
    result = stand_in("work", params={"install": "environment", "version": version})
    assert codes(result) == [IssueCode.CONFIGURATION]
    assert "the environment has no program stand-in" in result.issues[0].message
    assert f"stand-in {version}" in result.issues[0].message
    assert result.request_fault is not None


def test_a_version_that_is_not_installed_stops_the_request_with_the_command(
    stand_in: Any, tmp_path: Path
) -> None:
    result = stand_in("work", params={"version": "9.9.9"}, data_dir=tmp_path)
    assert codes(result) == [IssueCode.DEPENDENCY_MISSING]
    command = f"steelyard agent install stand_in --version 9.9.9 --data-dir {tmp_path}"
    assert command in result.issues[0].message
    assert result.request_fault is not None


def test_a_program_of_the_host_works_where_its_version_is_the_one_asked_for(
    stand_in: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "stand-in"
    program.symlink_to(HERE / "stand_in" / "agent.sh")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    own = {"install": "environment", "version": "1.0.0"}
    result = stand_in("work", params=own, environment=ComponentSpec("host_process"))
    assert (result.outcome, result.issues) == (Outcome.SCORED, ()), result.issues
    assert result.metrics["score"] == 1.0
    assert told(result) == ["work"]
    other = stand_in(
        "work", params={**own, "version": "1.2.0"}, environment=ComponentSpec("host_process")
    )
    assert codes(other) == [IssueCode.CONFIGURATION]
    assert "stand-in is 1.0.0, and 1.2.0 is asked for" in other.issues[0].message


def test_an_environment_that_mounts_nothing_is_named(stand_in: Any) -> None:
    result = stand_in("work", environment=ComponentSpec("host_process"))
    assert codes(result) == [IssueCode.ENVIRONMENT_OPEN_FAILED]
    assert "host_process mounts nothing" in result.issues[0].message


def test_attempts_at_once_share_one_install_and_nothing_else(
    endpoint: MockEndpoint, data_dir: Path
) -> None:
    results = run_agent(
        HARNESS, {"args": ["home"]}, endpoint=model(endpoint.url), data_dir=data_dir, attempts=4
    )
    assert [result.outcome for result in results] == [Outcome.SCORED] * 4
    assert not any("left-behind" in told(result) for result in results)
