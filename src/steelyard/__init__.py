"""Measure AI agents: every attempt on record, every score with its uncertainty."""

from steelyard._version import __version__

__all__ = ["__version__"]
