"""The harnesses of the table, as classes that the registry names."""

from __future__ import annotations

from typing import ClassVar

from steelyard.harnesses.cli_agent.agent import Agent
from steelyard.harnesses.cli_agent.harness import CliAgent
from steelyard.harnesses.cli_agent.table import CLAUDE_CODE, CODEX, MINI_SWE_AGENT


class ClaudeCode(CliAgent):
    """Claude Code."""

    agent: ClassVar[Agent] = CLAUDE_CODE


class Codex(CliAgent):
    """Codex."""

    agent: ClassVar[Agent] = CODEX


class MiniSweAgent(CliAgent):
    """mini-SWE-agent."""

    agent: ClassVar[Agent] = MINI_SWE_AGENT
