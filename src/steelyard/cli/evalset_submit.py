"""`steelyard evalset submit FILE`: run the cells of a manifest, here."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from steelyard.cli.evalset_options import (
    FILE,
    SET_OPTIONS,
    around,
    budget_option,
    planned,
    reap_option,
)
from steelyard.cli.options import GroupedCommand, config_option, output_options, setting_options


@click.command("submit", cls=GroupedCommand)
@click.argument("file", type=FILE)
@budget_option
@click.option("--max-combinations", type=int, metavar="N", help="A lower cap than 2000 cells.")
@setting_options(SET_OPTIONS)
@config_option
@reap_option
@click.option("--dry-run", is_flag=True, help="Show cells, attempts and cost; make nothing.")
@click.option("--yes", is_flag=True, help="Do not ask before it starts.")
@output_options
def submit(
    file: Path,
    budget_usd: float | None,
    max_combinations: int | None,
    config_files: tuple[Path, ...],
    reap: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
    debug: bool,
    **given: Any,
) -> int:
    """Run the eval set of the manifest FILE (YAML or JSON): every cell over one pool.

    On a terminal it shows what it will do and asks; `--yes` and scripts go on at once.
    """
    from steelyard.cli.evalset_estimate import show_estimate
    from steelyard.cli.evalset_run import execute_set
    from steelyard.evalset.set_plan import plan_submission

    settings = around(config_files, given)
    plan = planned(
        lambda: plan_submission(
            file, settings, budget_usd=budget_usd, max_combinations=max_combinations
        )
    )
    if dry_run:
        show_estimate(plan, as_json=as_json)
        return 0
    asks = not yes and not as_json and sys.stdin.isatty() and sys.stdout.isatty()
    if asks:
        show_estimate(plan, as_json=False, is_dry=False)
        click.confirm("Start?", default=True, abort=True)
    return execute_set(plan, as_json=as_json, reap=reap)
