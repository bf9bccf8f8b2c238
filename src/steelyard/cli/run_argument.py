"""The RUN of a command line: a run directory, or the folder of a request's runs."""

from __future__ import annotations

from pathlib import Path


def run_root(path: Path) -> Path:
    """Give the run directory that RUN names: itself, or the newest run right below it.

    A path that holds no run is given back: whoever reads it says what is wrong with it.
    """
    from steelyard.cli.output import note
    from steelyard.results.newest import newest_run

    newest = newest_run(path)
    if newest.among > 1:
        note(f"the newest of {newest.among} runs: {newest.root}")
    return newest.root
