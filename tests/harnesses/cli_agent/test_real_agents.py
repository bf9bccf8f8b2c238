"""The real programs, offline in the sandbox, on a model that asks for their own tools."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from steelyard.components.issues import Outcome
from steelyard.components.values import Trust
from steelyard.testing.endpoint import MockEndpoint
from tests.harnesses.cli_agent.running import HERE, PROTOCOLS, install, model, run_agent

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def endpoint() -> Iterator[MockEndpoint]:
    function = f"{HERE / 'scripted_model.py'}:answer"
    with MockEndpoint("--function", function, "--model", "m", "--keep-bodies", "50") as served:
        yield served


@pytest.mark.parametrize("agent", PROTOCOLS)
def test_an_agent_edits_a_file_and_runs_a_command_and_is_scored_for_it(
    agent: str, endpoint: MockEndpoint
) -> None:
    install(agent)
    (result,) = run_agent(agent, endpoint=model(endpoint.url, PROTOCOLS[agent]))
    assert result.outcome is Outcome.SCORED, result.issues
    assert result.issues == ()
    assert result.metrics["score"] == 1.0
    assert result.trust is not Trust.HOST
    print(result.steps[-1])
