"""Measure AI agents, and prove that a change made them better."""

from steelyard._version import __version__

__all__ = ["__version__"]
