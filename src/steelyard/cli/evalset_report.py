"""`steelyard evalset report SET`: every figure with how sure it is, in six formats."""

from __future__ import annotations

import gc
from pathlib import Path

import click

from steelyard.cli.options import output_options

FORMATS = ("table", "json", "csv", "markdown", "junit", "html")
MAX_ROWS = 40


@click.command("report")
@click.argument("set_", metavar="SET")
@click.option("--format", "form", type=click.Choice(FORMATS), default="table",
              help="What is written (table).")  # fmt: skip
@click.option("-o", "--output", metavar="FILE", type=click.Path(path_type=Path),
              help="Write to FILE, not to standard output.")  # fmt: skip
@click.option("--metric", metavar="NAME", help="What is reported (each pack's primary metric).")
@click.option("--baseline", metavar="SET",
              help="Hold the set against this one (the manifest's `baseline`).")  # fmt: skip
@click.option("--confident", is_flag=True,
              help="Gates hold only where the worse end of the 95% interval does.")  # fmt: skip
@click.option("--limit", type=click.IntRange(min=0), default=MAX_ROWS, metavar="N",
              help=f"At most N rows of long tables ({MAX_ROWS}); 0 for all.")  # fmt: skip
@output_options
def report(
    set_: str,
    form: str,
    output: Path | None,
    metric: str | None,
    baseline: str | None,
    confident: bool,
    limit: int,
    as_json: bool,
    debug: bool,
) -> int:
    """Say what came of SET: scores with intervals, who beats whom, what it cost, what failed.

    SET is a set's folder, its id, its name, or `latest`. With gates in its manifest the exit
    status is 3 where one is not met.
    """
    from steelyard.cli.evalset_writing import write_parts
    from steelyard.cli.output import note, table_lines
    from steelyard.cli.run_argument import results_dir
    from steelyard.evalset.find_set import find_set
    from steelyard.evalset.gates import baseline_of, hold
    from steelyard.evalset.report.formats import report_parts
    from steelyard.evalset.report.report import read_set
    from steelyard.results.gates import GATE_NOT_MET

    opened = find_set(set_, results_dir())
    compares = (baseline or baseline_of(opened)) is not None
    gc.disable()  # records have no cycles: looking for some in 200,000 is a tenth of the time
    try:
        made = read_set(opened, metric=metric, with_digests=compares)
    finally:
        gc.enable()
    held = hold(
        opened, made, results_dir(), baseline=baseline, metric=metric, is_confident=confident
    )
    chosen = "json" if as_json else form
    write_parts(report_parts(made, held, chosen, limit=limit, table_lines=table_lines), output)
    if form != "json" and not as_json:
        for warning in (*made.report.warnings, *held.warnings):
            note(f"warning: {warning}")
    return 0 if held.is_met else GATE_NOT_MET
