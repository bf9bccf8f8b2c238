"""The run directory: the one place that writes it and the one way to read it."""
