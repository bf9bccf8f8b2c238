"""The contracts that benchmarks, harnesses and environments fulfil, and the registry."""
