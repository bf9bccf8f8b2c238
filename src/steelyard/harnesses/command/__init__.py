"""`command`: any program of the environment as an agent."""

from steelyard.harnesses.command.harness import Command as Command
from steelyard.harnesses.command.params import CommandParams as CommandParams
