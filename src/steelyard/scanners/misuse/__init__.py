"""The rules of `tool-misuse`."""
