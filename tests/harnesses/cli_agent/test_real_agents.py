"""The real programs, offline in sandbox and containers; the model asks for their own tools."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from steelyard.components.issues import IssueCode, Outcome
from steelyard.components.values import Trust
from steelyard.engine.spec import ExecutionResult
from steelyard.engine.spec_json import result_to_bytes
from steelyard.harnesses.cli_agent.table import AGENTS
from steelyard.testing.endpoint import MockEndpoint
from tests.harnesses.cli_agent.running import (
    HERE,
    PACK,
    PROTOCOLS,
    ComponentSpec,
    install,
    model,
    run_agent,
)

pytestmark = pytest.mark.integration

TOOLS = {
    "claude_code": ["Read", "Edit", "Bash"],
    "codex": ["exec_command", "exec_command"],
    "mini_swe_agent": ["bash", "bash", "bash"],
}
ANSWERS = {
    "claude_code": "The greeting is mended.",
    "codex": "The greeting is mended.",
    "mini_swe_agent": "mended\n",
}
PRICES = {"m": {"input_per_mtok": 1.0, "output_per_mtok": 10.0}}
SCRIPTED = f"{HERE / 'scripted_model.py'}:answer"
KEY = "sk-canary-5d1c9a7e3b20f684"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[MockEndpoint]:
    with MockEndpoint("--function", SCRIPTED, "--model", "m", "--require-key", KEY) as served:
        yield served


def environment_of(kind: str, request: pytest.FixtureRequest) -> ComponentSpec:
    if kind == "sandbox":
        return ComponentSpec("sandbox")
    host = request.getfixturevalue("docker_host")
    image = request.getfixturevalue("debian_image")
    user = {"user": "agent"} if kind.endswith("agent") else {}
    return ComponentSpec("docker", {"host": host, "image": image, **user})


def tools_of(steps: Any) -> list[str]:
    return [call.name for step in steps for call in step.tool_calls]


def told_tools(result: ExecutionResult) -> list[str]:
    """The tool calls in the agent's own log, as the last step holds it."""
    steps = result.steps[-1].extra["log_steps"]
    return [call["name"] for step in steps for call in step.get("tool_calls", ())]


@pytest.mark.parametrize(
    ("agent", "kind"),
    [(agent, kind) for agent in PROTOCOLS for kind in ("sandbox", "docker")]
    # Claude Code refuses root unless told that it is in a sandbox: both users are tried.
    + [("claude_code", "docker as agent")],
)
def test_an_agent_edits_a_file_and_runs_a_command_and_is_scored_for_it(
    agent: str, kind: str, endpoint: MockEndpoint, request: pytest.FixtureRequest
) -> None:
    install(agent)
    (result,) = run_agent(
        agent,
        environment=environment_of(kind, request),
        endpoint=model(endpoint.url, PROTOCOLS[agent], api_key=KEY),
        bounds={"prices": PRICES},
    )
    assert (result.outcome, result.issues) == (Outcome.SCORED, ()), str(result.issues)
    assert result.metrics["score"] == 1.0
    assert result.answer == ANSWERS[agent]
    assert result.trust is not Trust.HOST
    # what the gateway counted …
    assert tools_of(result.steps) == TOOLS[agent]
    assert result.usage.requests == len(TOOLS[agent]) + (agent != "mini_swe_agent")
    assert result.usage.cost_usd is not None
    assert result.usage.cost_usd > 0
    # … and, beside it, what the agent's own log says
    assert told_tools(result) == TOOLS[agent]
    last = result.steps[-1].extra
    assert last["agent_version"] == AGENTS[agent].version
    assert last["reported"]["input_tokens"] == result.usage.input_tokens
    assert last["reported"]["output_tokens"] == result.usage.output_tokens
    assert last["reported"]["requests"] == result.usage.requests
    # the endpoint's key was never in the environment
    assert KEY.encode() not in result_to_bytes(result)


@pytest.mark.parametrize("agent", ["claude_code", "codex"])
def test_a_spent_budget_ends_the_agent_and_names_it(agent: str, endpoint: MockEndpoint) -> None:
    install(agent)
    (result,) = run_agent(
        agent,
        endpoint=model(endpoint.url, PROTOCOLS[agent], api_key=KEY),
        bounds={"attempt_tokens": 1},
    )
    assert IssueCode.ATTEMPT_BUDGET in [issue.code for issue in result.issues]
    assert result.usage.requests == 1


@pytest.mark.parametrize("agent", ["claude_code", "mini_swe_agent"])
def test_turns_that_are_used_up_end_the_agent_and_are_said(
    agent: str, endpoint: MockEndpoint
) -> None:
    install(agent)
    (result,) = run_agent(
        agent, {"max_turns": 1}, endpoint=model(endpoint.url, PROTOCOLS[agent], api_key=KEY)
    )
    assert [issue.code for issue in result.issues] == [IssueCode.TURN_LIMIT]
    assert result.usage.requests == 1


@pytest.mark.parametrize("agent", ["claude_code", "codex"])
def test_an_endpoint_that_fails_is_no_agents_fault(agent: str) -> None:
    install(agent)
    with MockEndpoint("--text", "x", "--model", "m", "--fault", "500") as broken:
        (result,) = run_agent(
            agent,
            endpoint=model(broken.url, PROTOCOLS[agent], max_request_retries=0),
        )
    assert result.outcome is Outcome.FAILED_FATAL, result.issues
    assert IssueCode.MODEL_UNAVAILABLE in [issue.code for issue in result.issues]


def test_mini_swe_agent_killed_before_its_first_answer_has_no_log_and_that_is_said() -> None:
    install("mini_swe_agent")
    with MockEndpoint("--text", "late", "--model", "m", "--latency", "300") as slow:
        (result,) = run_agent(
            "mini_swe_agent", {"timeout_seconds": 6}, endpoint=model(slow.url, "openai-chat")
        )
    codes = [issue.code for issue in result.issues]
    assert IssueCode.AGENT_TIMED_OUT in codes
    assert any("left no log" in issue.message for issue in result.issues)
    assert told_tools(result) == []


def test_a_run_brings_the_program_from_its_registry_where_it_may(
    endpoint: MockEndpoint, tmp_path: Path
) -> None:
    """Into an empty folder, the whole way. (From PyPI it takes a minute: other tests do once.)"""
    agent = "codex"
    words = ["run", str(PACK), agent, "m", "--env", "sandbox", "--json"]
    words += ["--model-base-url", endpoint.url, "--model-api-key", "${KEY}"]
    words += ["--results-dir", str(tmp_path / "results"), "--data-dir", str(tmp_path / "data")]

    def steelyard(*more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "steelyard", *words, *more],
            cwd=tmp_path,
            env={**os.environ, "KEY": KEY},
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )

    refused = steelyard()
    assert refused.returncode == 2
    assert f"steelyard agent install {agent}" in refused.stdout + refused.stderr
    assert not (tmp_path / "data").exists()
    ran = steelyard("--auto-install-dependencies")
    assert ran.returncode == 0, ran.stderr
    assert AGENTS[agent].version in ran.stderr  # what was installed is said
    assert list((tmp_path / "data/agents" / agent).glob(f"{AGENTS[agent].version}-*"))
    (records,) = (tmp_path / "results").glob("*/*/attempts.jsonl")
    record = json.loads(records.read_text().partition("\t")[0])
    assert (record["outcome"], record["metrics"]["score"]) == ("scored", 1.0)
