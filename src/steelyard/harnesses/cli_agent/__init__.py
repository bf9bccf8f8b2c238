"""Agent programs as one family: an entry of a table, installed once, pointed at the gateway.

A plug-in adds one more: an `Agent`, and a subclass of `CliAgent` that names it.
"""

from steelyard.harnesses.cli_agent.agent import Agent as Agent
from steelyard.harnesses.cli_agent.agent import Place as Place
from steelyard.harnesses.cli_agent.harness import CliAgent as CliAgent
from steelyard.harnesses.cli_agent.log import AgentLog as AgentLog
from steelyard.harnesses.cli_agent.log import Reported as Reported
from steelyard.harnesses.cli_agent.sources import Files as Files
from steelyard.harnesses.cli_agent.sources import Npm as Npm
from steelyard.harnesses.cli_agent.sources import PyPI as PyPI
