"""Packs: benchmarks written as files, without code."""

from steelyard.benchmarks.pack.benchmark import PackBenchmark

__all__ = ["PackBenchmark"]
