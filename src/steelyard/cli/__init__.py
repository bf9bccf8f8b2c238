"""The command line: parses, calls, prints; holds no logic."""
