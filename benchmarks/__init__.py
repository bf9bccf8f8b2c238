"""Our own performance suite: `python -m benchmarks.run`. What it measures: docs/performance.md."""
