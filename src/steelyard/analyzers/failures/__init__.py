"""`failures`: what went wrong in the attempts that got nothing, by rules that stand in tables."""

from steelyard.analyzers.failures.analyzer import Failures as Failures
