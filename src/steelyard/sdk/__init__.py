"""The Python SDK. What is public of it stands in `steelyard`: `from steelyard import run`."""
