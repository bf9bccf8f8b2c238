"""`steelyard evalset`: packs x agents x models x repeats as one set."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import click

from steelyard.cli.lazy_group import CommandRow, LazyGroup
from steelyard.cli.output import say

COMMANDS: Final[Mapping[str, CommandRow]] = MappingProxyType(
    {
        "init": CommandRow("steelyard.cli.evalset_init:init", "Write a manifest that runs."),
        "expand": CommandRow(
            "steelyard.cli.evalset_expand:expand_file", "Show a manifest's cells; pure."
        ),
        "submit": CommandRow(
            "steelyard.cli.evalset_submit:submit", "Run a manifest's cells, as one orchestration."
        ),
        "resume": CommandRow(
            "steelyard.cli.evalset_resume:resume", "Run what of a set has not ended."
        ),
        "retry": CommandRow(
            "steelyard.cli.evalset_resume:retry", "Run again what failed, but not by the agent."
        ),
        "cancel": CommandRow(
            "steelyard.cli.evalset_cancel:cancel", "End a set that another process runs."
        ),
        "status": CommandRow(
            "steelyard.cli.evalset_status:status", "Say where a set stands: cells, scores, cost."
        ),
        "watch": CommandRow(
            "steelyard.cli.evalset_watch:watch", "Show a set's matrix until the set has ended."
        ),
        "logs": CommandRow(
            "steelyard.cli.evalset_logs:logs", "Print what happened in a set's cells, as it comes."
        ),
        "scan": CommandRow(
            "steelyard.cli.evalset_scan:scan", "Let scanners read what a set's agents did."
        ),
        "findings": CommandRow(
            "steelyard.cli.evalset_findings:findings", "List, show and triage what scanners found."
        ),
        "report": CommandRow(
            "steelyard.cli.evalset_report:report", "Say what came of a set, in six formats."
        ),
        "compare": CommandRow(
            "steelyard.cli.evalset_compare:compare", "Say what changed from one set to another."
        ),
        "export": CommandRow(
            "steelyard.cli.evalset_export:export", "Write a row for each attempt at a case."
        ),
        "sql": CommandRow("steelyard.cli.evalset_sql:sql", "Ask the rows of a set in SQL."),
        "list": CommandRow("steelyard.cli.evalset_list:list_sets", "List the sets there are."),
    }
)
"""In the order in which people meet them; each command is a module `cli/evalset_NAME.py`."""


@click.group("evalset", cls=LazyGroup, table=COMMANDS, invoke_without_command=True)
@click.pass_context
def evalset(ctx: click.Context) -> None:
    """Run packs x agents x models x repeats as one set, on one budget."""
    if ctx.invoked_subcommand is None:
        say(ctx.get_help())
