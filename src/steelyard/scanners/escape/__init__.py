"""The rules of `sandbox-escape-attempt`."""
