"""`steelyard evalset resume|retry SET`: go on with a set, here."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from steelyard.cli.evalset_options import (
    FILE,
    RESUME_OPTIONS,
    around,
    budget_option,
    planned,
    reap_option,
)
from steelyard.cli.options import GroupedCommand, config_option, output_options, setting_options

if TYPE_CHECKING:
    from steelyard.evalset.surroundings import Surroundings


@click.command("resume", cls=GroupedCommand)
@click.argument("set_", metavar="SET")
@budget_option
@click.option("--accept-changes", is_flag=True, help="Take what the manifest has more than before.")
@click.option(
    "--manifest",
    "manifest",
    type=FILE,
    metavar="FILE",
    help="In place of the file that the set was submitted from.",
)
@setting_options(RESUME_OPTIONS)
@config_option
@reap_option
@output_options
def resume(
    set_: str,
    budget_usd: float | None,
    accept_changes: bool,
    manifest: Path | None,
    config_files: tuple[Path, ...],
    reap: bool,
    as_json: bool,
    debug: bool,
    **given: Any,
) -> int:
    """Run what of SET has not ended: after a stop, a crash, a spent budget.

    Everything that ended is kept and not paid again. SET is a set's folder, its id, its name, or
    `latest`. An attempt that failed FATAL in a cell that is gone on with is run again, too.
    """
    return _gone_on(
        "resume",
        set_,
        around(config_files, given),
        given.get("results_dir"),
        budget_usd=budget_usd,
        accepts_changes=accept_changes,
        manifest=manifest,
        as_json=as_json,
        reap=reap,
    )


@click.command("retry", cls=GroupedCommand)
@click.argument("set_", metavar="SET")
@budget_option
@setting_options(RESUME_OPTIONS)
@config_option
@reap_option
@output_options
def retry(
    set_: str,
    budget_usd: float | None,
    config_files: tuple[Path, ...],
    reap: bool,
    as_json: bool,
    debug: bool,
    **given: Any,
) -> int:
    """Run again what of SET failed for a reason that is not the agent's.

    These are the attempts that ended FATAL (an environment, an endpoint, a scorer that failed), and
    cells whose tasks could not be loaded. What the agent did wrong stays as it is.
    """
    return _gone_on(
        "retry",
        set_,
        around(config_files, given),
        given.get("results_dir"),
        budget_usd=budget_usd,
        accepts_changes=False,
        manifest=None,
        as_json=as_json,
        reap=reap,
    )


def _gone_on(
    kind: str,
    text: str,
    settings: Surroundings,
    results: str | None,
    *,
    budget_usd: float | None,
    accepts_changes: bool,
    manifest: Path | None,
    as_json: bool,
    reap: bool,
) -> int:
    from steelyard.cli.evalset_run import execute_set, nothing_to_do
    from steelyard.cli.run_argument import results_dir
    from steelyard.evalset.find_set import find_set
    from steelyard.evalset.resuming import NothingToDo, plan_resume

    opened = find_set(text, Path(results) if results else results_dir())
    try:
        plan = planned(
            lambda: plan_resume(
                opened,
                settings,
                kind=kind,
                budget_usd=budget_usd,
                accepts_changes=accepts_changes,
                manifest_file=manifest,
            )
        )
    except NothingToDo as error:
        return nothing_to_do(opened, error, settings, kind=kind, as_json=as_json)
    return execute_set(plan, as_json=as_json, reap=reap)
