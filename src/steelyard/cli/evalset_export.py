"""`steelyard evalset export SET`: a row for each attempt at a case, streaming."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from steelyard.cli.options import output_options

if TYPE_CHECKING:
    from collections.abc import Iterable


@click.command("export")
@click.argument("set_", metavar="SET")
@click.option("--format", "form", type=click.Choice(["csv", "jsonl", "parquet"]), default="csv",
              help="What is written (csv).")  # fmt: skip
@click.option("-o", "--output", metavar="FILE", type=click.Path(path_type=Path),
              help="Write to FILE, not to standard output; parquet needs one.")  # fmt: skip
@click.option("--with-flagged", is_flag=True,
              help="Write rows whose kept files hold a secret, too.")  # fmt: skip
@output_options
def export(
    set_: str, form: str, output: Path | None, with_flagged: bool, as_json: bool, debug: bool
) -> int:
    """Write a row for each attempt at a case of SET, for spreadsheets, notebooks and databases.

    SET is a set's folder, its id, its name, or `latest`. In CSV a text that a spreadsheet would
    take for a formula gets an apostrophe before it; JSON Lines and Parquet have texts as they are.
    """
    from steelyard.cli.evalset_writing import write_bytes, write_with
    from steelyard.cli.output import note
    from steelyard.cli.run_argument import results_dir
    from steelyard.config.errors import BadInput, Where
    from steelyard.evalset.exporting import Export, csv_parts, jsonl_parts, write_parquet
    from steelyard.evalset.find_set import find_set

    form = "jsonl" if as_json else form
    rows = Export(find_set(set_, results_dir()), with_flagged=with_flagged)
    if form == "parquet":
        if output is None:
            raise BadInput(
                "a Parquet file is no text for a terminal", where=Where(field="--output"),
                remedy="name a file with -o FILE",
            )  # fmt: skip
        write_with(lambda file: write_parquet(rows, file), output)
    else:
        parts = csv_parts(rows) if form == "csv" else jsonl_parts(rows)
        if output is None:
            _to_stdout(parts)
        else:
            write_bytes(parts, output)
    for warning in rows.warnings():
        note(f"warning: {warning}")
    if output is not None:
        note(f"{rows.rows} rows in {output}")
    return 0


def _to_stdout(parts: Iterable[bytes]) -> None:
    """Write bytes as they are; who reads no longer ends it, not the command."""
    from steelyard.cli.errors import hush_stdout

    try:
        for part in parts:
            sys.stdout.buffer.write(part)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        hush_stdout()
