"""`steelyard summary RUN`: rebuild and show what is derived from a run's journal."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("summary")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print metrics.json instead of summary.md.")
def summary(run: Path, as_json: bool) -> int:
    """Rebuild metrics.json and summary.md of RUN, and print one of them.

    RUN is a run directory, or a folder of runs, whose newest is taken.
    A run that is going on is shown as it stands; its files are left to its owner.
    """
    from steelyard.cli.output import print_json, print_warnings, say
    from steelyard.cli.run_argument import run_root
    from steelyard.results.files import StorageFailed
    from steelyard.results.reader import RunReader, RunState
    from steelyard.results.summary import rebuild, summarise
    from steelyard.results.summary_text import summary_text

    run = run_root(run)
    not_written: StorageFailed | None = None
    if RunReader(run).state is RunState.RUNNING:
        metrics = summarise(run)
    else:
        try:
            metrics = rebuild(run)
        except StorageFailed as error:  # a full or read-only disk can be read all the same
            not_written = error
            metrics = summarise(run)
    if as_json:
        print_json(metrics)
    else:
        say(summary_text(metrics).rstrip("\n"))
    if not_written is None:
        return 0
    print_warnings(not_written.problems)
    return not_written.exit_status
