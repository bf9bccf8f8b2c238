"""`steelyard summary RUN`: rebuild and show what is derived from a run's journal."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("summary")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--junit", "junit_file", metavar="FILE", type=click.Path(path_type=Path),
              help="Write JUnit XML, too: a test for each task.")  # fmt: skip
@click.option("--markdown", "markdown_file", metavar="FILE", type=click.Path(path_type=Path),
              help="Write Markdown, too, for a pull request's comment.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print metrics.json instead of summary.md.")
def summary(run: Path, junit_file: Path | None, markdown_file: Path | None, as_json: bool) -> int:
    """Rebuild metrics.json and summary.md of RUN, and print one of them.

    RUN is a run directory, a folder of runs, a run's id, a request's name, or `latest`; of several
    runs the newest.
    A run that is going on is shown as it stands; its files are left to its owner.
    """
    from steelyard.cli.output import print_json, print_warnings, say
    from steelyard.cli.report_files import check_writable, status_with, write_reports
    from steelyard.cli.run_argument import run_root
    from steelyard.results.files import StorageFailed
    from steelyard.results.junit import launch_junit
    from steelyard.results.launch_markdown import RunLine, launch_markdown
    from steelyard.results.reader import RunReader, RunState
    from steelyard.results.summary import rebuild, summarise
    from steelyard.results.summary_text import summary_text

    check_writable({"--junit": junit_file, "--markdown": markdown_file})
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
    name = str(metrics["request"] or metrics["run_id"])
    line = RunLine(name, metrics["outcome"] or "not ended", metrics["reason"], metrics)
    problems = write_reports(
        junit_file,
        lambda: launch_junit([(name, run)]),
        markdown_file,
        lambda: launch_markdown([line]),
    )
    status = status_with(0, problems)
    if not_written is None:
        return status
    print_warnings(not_written.problems)
    return not_written.exit_status
