"""`steelyard evalset compare A B`: what got better, what worse, and how sure that is."""

from __future__ import annotations

from pathlib import Path

import click

from steelyard.cli.options import output_options

MAX_ROWS = 40


@click.command("compare")
@click.argument("base", metavar="SET_A")
@click.argument("this", metavar="SET_B")
@click.option("--metric", metavar="NAME", help="What is compared (each pack's primary metric).")
@click.option("--gate", is_flag=True,
              help="Exit with 3 where a combination regressed, is gone or untested, or an attempt "
              "of SET_B does not count.")  # fmt: skip
@click.option("--allow-partial", is_flag=True,
              help="With --gate: let SET_B pass where attempts are missing.")  # fmt: skip
@click.option("--max-regression", type=click.FloatRange(min=0), metavar="LOSS",
              help="With --gate: nor may any combination lose more than this.")  # fmt: skip
@click.option("--confident", is_flag=True,
              help="Hold the interval's worse end to --max-regression.")  # fmt: skip
@click.option("--other-content", is_flag=True,
              help="Test cases whose content differs, too.")  # fmt: skip
@click.option("--limit", type=click.IntRange(min=0), default=MAX_ROWS, metavar="N",
              help=f"At most N rows of long tables ({MAX_ROWS}); 0 for all.")  # fmt: skip
@click.option("--markdown", "markdown_file", metavar="FILE", type=click.Path(path_type=Path),
              help="Write Markdown, too: a pull request's comment, of bounded length.")  # fmt: skip
@click.option("--junit", "junit_file", metavar="FILE", type=click.Path(path_type=Path),
              help="Write JUnit XML, too: a suite for each combination.")  # fmt: skip
@output_options
def compare(
    base: str,
    this: str,
    metric: str | None,
    gate: bool,
    allow_partial: bool,
    max_regression: float | None,
    confident: bool,
    other_content: bool,
    limit: int,
    markdown_file: Path | None,
    junit_file: Path | None,
    as_json: bool,
    debug: bool,
) -> int:
    """Compare SET_B with SET_A, case by case: regressed, improved, unchanged, added, removed.

    A set is a folder, an id, a name, or `latest`. Sets are joined by pack slug, agent, model,
    repeat and case: a pack's new version joins the old one, and is named.
    """
    from steelyard.cli.output import note, print_json, say, table_lines
    from steelyard.cli.report_files import check_writable, status_with, write_reports
    from steelyard.cli.run_argument import results_dir
    from steelyard.evalset.comparing import compare_sets
    from steelyard.evalset.comparison_text import (
        comparison_json,
        comparison_junit,
        comparison_markdown,
        comparison_sections,
    )
    from steelyard.evalset.find_set import find_set
    from steelyard.evalset.gates import check_distinct, gates_given
    from steelyard.evalset.report.report import read_set
    from steelyard.results.comparison_text import text_lines
    from steelyard.results.gates import GATE_NOT_MET

    check_writable({"--junit": junit_file, "--markdown": markdown_file})
    _check_gates(
        gate=gate, allow_partial=allow_partial, max_regression=max_regression, confident=confident
    )
    first, second = (find_set(text, results_dir()) for text in (base, this))
    check_distinct(first, second)
    sides = [read_set(one, metric=metric, with_digests=True) for one in (first, second)]
    found = compare_sets(sides[0], sides[1], with_other_content=other_content)
    judged = (
        gates_given(
            max_regression,
            is_confident=confident,
            comparison=found,
            allows_partial=allow_partial,
        )
        if gate
        else ()
    )
    if as_json:
        print_json(comparison_json(found, judged))
    else:
        for line in text_lines(comparison_sections(found, judged, limit=limit), table_lines):
            say(line)
        for warning in found.warnings:
            note(f"warning: {warning}")
    problems = write_reports(
        junit_file,
        lambda: comparison_junit(found, judged),
        markdown_file,
        lambda: comparison_markdown(found, judged),
    )
    status = 0 if all(result.is_met for result in judged) else GATE_NOT_MET
    return status_with(status, problems)


def _check_gates(
    *, gate: bool, allow_partial: bool, max_regression: float | None, confident: bool
) -> None:
    from steelyard.config.errors import BadInput, Where

    if allow_partial and not gate:
        raise BadInput(
            "there is no gate to let anything pass", where=Where(field="--allow-partial"),
            remedy="give --gate, too",
        )  # fmt: skip
    if max_regression is not None and not gate:
        raise BadInput(
            "a limit without a gate holds nobody", where=Where(field="--max-regression"),
            remedy="give --gate, too",
        )  # fmt: skip
    if confident and max_regression is None:
        raise BadInput(
            "there is no limit to be confident about", where=Where(field="--confident"),
            remedy="give --gate --max-regression LOSS, too",
        )  # fmt: skip
