"""The rules that score an answer; `build.py` makes them from what the pack says."""
