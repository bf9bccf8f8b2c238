"""`steelyard compare BASE RUN`: is it better, task by task, and how sure is that."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from steelyard.cli.options import output_options

if TYPE_CHECKING:
    from steelyard.results.comparison import Compared
    from steelyard.results.gates import GateResult

TASKS_SHOWN = 10


@click.command("compare")
@click.argument("base", metavar="RUN_A", type=click.Path(path_type=Path))
@click.argument("runs", metavar="RUN_B…", nargs=-1, required=True,
                type=click.Path(path_type=Path))  # fmt: skip
@click.option("--metric", metavar="NAME", help="What is compared (the primary metric).")
@click.option("--gate", "gates", metavar="METRIC[=MIN_DIFFERENCE]", multiple=True,
              help="Exit with 3 unless RUN_B is better by at least so much (0: not worse); may be "
                   "repeated.")  # fmt: skip
@click.option("--confident", is_flag=True,
              help="Gates hold only where the worse end of the 95% interval does.")  # fmt: skip
@click.option("--common-only", is_flag=True,
              help="Where tasks differ, compare those that both have.")  # fmt: skip
@click.option("--format", "form", type=click.Choice(["table", "markdown", "junit"]),
              default="table", help="What is printed (table).")  # fmt: skip
@click.option("--limit", type=click.IntRange(min=0), default=TASKS_SHOWN, metavar="N",
              help=f"At most N changed tasks ({TASKS_SHOWN}); 0 for all.")  # fmt: skip
@click.option("--junit", "junit_file", metavar="FILE", type=click.Path(path_type=Path),
              help="Write JUnit XML, too: a test for each task and gate.")  # fmt: skip
@click.option("--markdown", "markdown_file", metavar="FILE", type=click.Path(path_type=Path),
              help="Write Markdown, too, for a pull request's comment.")  # fmt: skip
@output_options
def compare(
    base: Path,
    runs: tuple[Path, ...],
    metric: str | None,
    gates: tuple[str, ...],
    confident: bool,
    common_only: bool,
    form: str,
    limit: int,
    junit_file: Path | None,
    markdown_file: Path | None,
    as_json: bool,
    debug: bool,
) -> int:
    """Compare RUN_B with RUN_A task by task: the difference, how sure it is, what changed.

    A run is a run directory, a folder of runs, a run's id, a request's name, or `latest`; of
    several the newest. Several RUN_B are each compared with RUN_A, and their p-values adjusted by
    Holm's rule.
    """
    from steelyard.cli.output import note, print_json, say, table_lines
    from steelyard.cli.report_files import check_writable, status_with, write_reports
    from steelyard.cli.run_argument import run_root
    from steelyard.results.comparison import compare_runs
    from steelyard.results.comparison_json import comparison_json
    from steelyard.results.comparison_text import markdown_text, sections, text_lines
    from steelyard.results.gates import GATE_NOT_MET
    from steelyard.results.junit import comparison_junit

    check_writable({"--junit": junit_file, "--markdown": markdown_file})
    _check_confident(confident, gates)
    roots = [run_root(path) for path in (base, *runs)]
    found = compare_runs(roots, metric=metric, common_only=common_only)
    judged = _judged(found, gates, confident=confident, common_only=common_only)
    warnings = list(dict.fromkeys(warning for each in found for warning in each.warnings))
    laid = sections(found, judged, limit=limit)
    if as_json:
        print_json(comparison_json(found, [result.as_json() for result in judged]))
    elif form == "table":
        for line in text_lines(laid, table_lines):
            say(line)
    elif form == "markdown":
        say(markdown_text(laid, warnings).rstrip("\n"))
    else:
        for part in comparison_junit(found, judged):
            say(part.rstrip("\n"))
    if not as_json:
        for warning in warnings:
            note(f"warning: {warning}")
    problems = write_reports(
        junit_file,
        lambda: comparison_junit(found, judged),
        markdown_file,
        lambda: markdown_text(laid, warnings),
    )
    status = 0 if all(result.is_met for result in judged) else GATE_NOT_MET
    return status_with(status, problems)


def _check_confident(confident: bool, gates: tuple[str, ...]) -> None:
    if confident and not gates:
        from steelyard.config.errors import BadInput, Where

        raise BadInput(
            "there is no gate to be confident about",
            where=Where(field="--confident"),
            remedy="give --gate METRIC=MIN_DIFFERENCE, too",
        )


def _judged(found: list[Compared], texts: tuple[str, ...], **how: Any) -> list[GateResult]:
    """Hold each comparison against each gate; a gate's metric may be another than the table's."""
    from steelyard.results.comparison import compare_tables
    from steelyard.results.gates import difference_gates, judge_difference

    judged = []
    for each in found:
        shared = [name for name in each.first.metric_names if name in each.second.metric_names]
        for gate in difference_gates(texts, shared, is_confident=how["confident"]):
            compared = (
                each
                if gate.metric == each.asked.metric
                else compare_tables(
                    each.first, each.second, gate.metric, common_only=how["common_only"]
                )
            )
            named = gate if len(found) == 1 else replace(gate, request=each.second.run_id)
            judged.append(judge_difference(named, compared))
    return judged
