"""`terminal_agent`: a small agent of our own that works in one shell."""

from steelyard.harnesses.terminal_agent.harness import TerminalAgent

__all__ = ["TerminalAgent"]
