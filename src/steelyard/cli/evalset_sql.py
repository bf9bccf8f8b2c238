"""`steelyard evalset sql SET QUERY`: the rows of a set in SQL."""

from __future__ import annotations

import click

from steelyard.cli.options import output_options


@click.command("sql")
@click.argument("set_", metavar="SET")
@click.argument("query")
@click.option("--format", "form", type=click.Choice(["table", "json", "csv"]), default="table",
              help="What is printed (table).")  # fmt: skip
@click.option("--with-flagged", is_flag=True,
              help="Take rows whose kept files hold a secret, too.")  # fmt: skip
@output_options
def sql(set_: str, query: str, form: str, with_flagged: bool, as_json: bool, debug: bool) -> int:
    """Ask the rows of SET in SQL: the view is `rows`, its columns are those of `export`.

    SET is a set's folder, its id, its name, or `latest`. DuckDB answers, in memory: a query
    reaches no file and no network. It comes with the extra `warehouse`.
    """
    from steelyard.cli.output import note, print_json, print_table, say
    from steelyard.cli.run_argument import results_dir
    from steelyard.evalset.exporting import Export, csv_text
    from steelyard.evalset.find_set import find_set
    from steelyard.evalset.querying import ask

    rows = Export(find_set(set_, results_dir()), with_flagged=with_flagged)
    answer = ask(rows, query)
    if as_json or form == "json":
        rows_json = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
        print_json({"schema": "evalset-sql/1", "columns": list(answer.columns), "rows": rows_json})
    elif form == "csv":
        say(csv_text([answer.columns, *answer.rows]).rstrip("\n"))
    else:
        print_table(answer.columns, answer.rows)
    for warning in rows.warnings():
        note(f"warning: {warning}")
    return 0
