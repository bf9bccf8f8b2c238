"""The command line's root: a table of commands, each imported when it is used."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import click

from steelyard.cli.lazy_group import CommandRow, LazyGroup

COMMANDS: Final[Mapping[str, CommandRow]] = MappingProxyType(
    {
        "init": CommandRow("steelyard.cli.init:init", "Write a new project, or an example."),
        "run": CommandRow("steelyard.cli.run:run", "Evaluate one benchmark, harness and model."),
        "launch": CommandRow("steelyard.cli.launch:launch", "Run an orchestration file."),
        "evalset": CommandRow(
            "steelyard.cli.evalset:evalset", "Run packs x agents x models as one set."
        ),
        "deployment": CommandRow(
            "steelyard.cli.deployment:deployment", "Look at the project's agents, try one."
        ),
        "ctl": CommandRow(
            "steelyard.cli.ctl:ctl", "Look at a running launch, pause it, drain it, set limits."
        ),
        "env": CommandRow(
            "steelyard.cli.env:env", "List, enter and end what runs kept or left behind."
        ),
        "list": CommandRow("steelyard.cli.list:list_components", "List known components."),
        "config": CommandRow("steelyard.cli.config:config", "Show, explain or check settings."),
        "summary": CommandRow(
            "steelyard.cli.summary:summary", "Rebuild and print a run's summary."
        ),
        "analysis": CommandRow(
            "steelyard.cli.analysis:analysis", "Say what went wrong in a run, and how often."
        ),
        "show": CommandRow("steelyard.cli.show:show", "Show a run's attempts, and of each why."),
        "compare": CommandRow(
            "steelyard.cli.compare:compare", "Compare runs of the same tasks, task by task."
        ),
        "explain-reuse": CommandRow(
            "steelyard.cli.explain_reuse:explain_reuse",
            "Say what a run would take from another, and why.",
        ),
        "pack": CommandRow("steelyard.cli.pack:pack", "Write, check and look at packs."),
        "agent": CommandRow(
            "steelyard.cli.agent:agent", "Install, list and remove agents' programs."
        ),
        "schema": CommandRow("steelyard.cli.schema:schema", "Print a file format's JSON Schema."),
        "du": CommandRow("steelyard.cli.disk:du", "Say what runs take on disk."),
        "prune": CommandRow("steelyard.cli.disk:prune", "Remove old runs by a retention rule."),
        "upgrade": CommandRow(
            "steelyard.cli.upgrade:upgrade", "Look at the formats of runs; name newer ones."
        ),
        "doctor": CommandRow(
            "steelyard.cli.doctor:doctor", "Say what works on this machine, and the remedies."
        ),
        "mock-model": CommandRow(
            "steelyard.cli.mock_model:mock_model", "Serve a model endpoint for demos and tests."
        ),
    }
)


@click.command(
    cls=LazyGroup, table=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.option("--version", is_flag=True, is_eager=True, expose_value=False,
              callback=lambda ctx, _param, value: _print_version(ctx, value),
              help="Print the version.")  # fmt: skip
def cli() -> None:
    """Measure AI agents: every attempt on record, every score with its uncertainty."""


def _print_version(ctx: click.Context, value: bool) -> None:
    if not value or ctx.resilient_parsing:
        return
    from steelyard._version import __version__

    click.echo(f"steelyard {__version__}")
    ctx.exit(0)
