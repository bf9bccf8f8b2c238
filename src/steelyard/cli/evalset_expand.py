"""`steelyard evalset expand FILE`: a manifest's cells. Nothing is read but the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from steelyard.cli.options import output_options
from steelyard.cli.output import counted, note, print_json, print_table, say
from steelyard.config.errors import BadInput, Problem
from steelyard.evalset.expansion import Expansion, expand
from steelyard.evalset.manifest import read_manifest


@click.command("expand")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "--max-combinations", metavar="N", type=int, help="Refuse more cells than N; at most 2000."
)
@output_options
def expand_file(file: Path, max_combinations: int | None, as_json: bool, debug: bool) -> int:
    """Show the cells of the manifest FILE, YAML or JSON, in the order in which they start.

    Packs and deployments are not looked up. What is wrong with the file is said at once, on
    standard error, and with --json also as {"errors": [...]} on standard output; the exit status
    is then 2.
    """
    try:
        expansion = expand(read_manifest(file), max_combinations=max_combinations)
    except BadInput as error:
        if not as_json or debug:
            raise
        for problem in error.problems:
            note(f"error: {problem}".replace("\n  ", "\n       "))
        print_json({"errors": [_error_json(problem) for problem in error.problems]})
        return error.exit_status
    if as_json:
        print_json(expansion.as_json())
    else:
        _print_cells(expansion)
    return 0


def _error_json(problem: Problem) -> dict[str, Any]:
    where = problem.where
    return {
        "path": where.field,
        "line": where.line,
        "column": where.column,
        "message": problem.message,
        "remedy": problem.remedy,
        "file": where.file,
    }


def _print_cells(expansion: Expansion) -> None:
    manifest, cells = expansion.manifest, expansion.cells
    has_models = bool(manifest.models)
    factors = [
        counted(len(manifest.packs), "pack"),
        counted(len(manifest.agents), "agent"),
        *([counted(len(manifest.models or ()), "model")] if has_models else []),
        counted(manifest.repeat_count, "repeat"),
    ]
    say(f"{manifest.name}: {counted(len(cells), 'cell')} of {' x '.join(factors)}")
    columns = ["#", "matrix key", "pack", "agent", *(["model"] if has_models else []), "repeat",
               "seed"]  # fmt: skip
    print_table(
        columns,
        [
            (
                cell.index + 1,
                cell.matrix_key,
                cell.pack_ref,
                cell.agent,
                *([cell.model_ref] if has_models else []),
                cell.repeat,
                cell.seed,
            )
            for cell in cells
        ],
    )
