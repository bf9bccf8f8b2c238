"""Work on texts of a model whose cost cannot be told beforehand; `timebox.py` runs it.

The modules here import the standard library, each other, and well-kept libraries inside their
functions: nothing else of ours, so that a child process starts in milliseconds. What they take and
give is plain JSON data.
"""
