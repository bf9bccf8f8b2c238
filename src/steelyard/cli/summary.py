"""`steelyard summary RUN`: rebuild and show what is derived from a run's journal."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("summary")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print metrics.json instead of summary.md.")
def summary(run: Path, as_json: bool) -> None:
    """Rebuild metrics.json and summary.md of the run directory RUN, and print one of them.

    A run that is going on is shown as it stands; its files are left to its owner.
    """
    from steelyard.cli.output import print_json, say
    from steelyard.results.reader import RunReader, RunState
    from steelyard.results.summary import rebuild, summarise
    from steelyard.results.summary_text import summary_text

    metrics = summarise(run) if RunReader(run).state is RunState.RUNNING else rebuild(run)
    if as_json:
        print_json(metrics)
    else:
        say(summary_text(metrics).rstrip("\n"))
