"""What runs in the interpreter that has `harbor`: nothing of Steelyard is imported here.

`serving` is one process a run: it imports the package once, and forks itself for each attempt.
"""
