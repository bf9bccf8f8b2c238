"""An agent of a plug-in: an entry and a class, as anybody adds one. Its folder is `stand_in`."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from steelyard.components.harness import Step
from steelyard.harnesses.cli_agent import Agent, AgentLog, CliAgent, Files
from steelyard.harnesses.cli_agent.log import entries, text


def read_log(log: bytes, printed: bytes) -> AgentLog:
    """One step a line."""
    found = entries(log)
    steps = tuple(Step("agent", text(line.get("say"))) for line in found.objects)
    answer = steps[-1].message if steps else None
    return AgentLog(
        steps, answer=answer, is_cut=found.is_cut, unread_lines=found.unread_lines, version="1.0.0"
    )


STAND_IN = Agent(
    id="stand_in",
    title="a program that does what it is told",
    version="1.0.0",
    source=Files(Path(__file__).with_name("stand_in")),
    program=("{agent}/agent.sh",),
    own_program=("stand-in",),
    version_words=("--version",),
    arguments=(),
    log="{home}/log.jsonl",
    read_log=read_log,
    variables={"OPENAI_API_KEY": "{token}", "STAND_IN_URL": "{url}"},
)


class StandIn(CliAgent):
    """The agent of the tests."""

    api: ClassVar[int] = 1
    agent: ClassVar[Agent] = STAND_IN
