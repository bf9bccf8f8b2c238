"""Estimators, intervals and tests: pure functions, no I/O."""
