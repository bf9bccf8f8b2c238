"""`steelyard run`: one request from ids and options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from steelyard.cli.asked import asked_options, picked
from steelyard.cli.options import (
    RUN_ONLY,
    SHARED,
    GroupedCommand,
    config_option,
    field_override,
    output_options,
    overrides_of,
    setting_options,
)
from steelyard.config.errors import BadInput, Problem
from steelyard.config.layers import Override


class _Run(GroupedCommand):
    """Takes the optional value of `--reuse [RUN_ID]` without swallowing a positional."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse; a word after `--reuse` is a run id only where one positional is too many."""
        return super().parse_args(ctx, _with_run_id(self, ctx, args))


def _with_run_id(command: click.Command, ctx: click.Context, args: list[str]) -> list[str]:
    joined = [
        ["--reuse-run-id", arg.partition("=")[2]] if arg.startswith("--reuse=") else [arg]
        for arg in args
    ]
    args = [arg for group in joined for arg in group]
    own = args[: args.index("--")] if "--" in args else args
    if "--reuse" not in own:
        return args
    at = own.index("--reuse")
    if at + 1 >= len(own) or own[at + 1].startswith("-"):
        return args
    extra = command.make_parser(ctx).parse_args(list(args))[1]
    if not extra:
        return args
    return [*args[:at], "--reuse-run-id", *args[at + 1 :]]


@click.command(cls=_Run)
@click.argument("benchmark")
@click.argument("harness")
@click.argument("model")
@setting_options(RUN_ONLY)
@click.option("-P", "--param", "fields", metavar="SECTION.KEY=VALUE", multiple=True,
              help="One field of benchmark, harness, env or model; may be repeated.")  # fmt: skip
@click.option(
    "--reuse",
    is_flag=True,
    help="Reuse the latest compatible run, or with a RUN_ID after it that one.",
)
@click.option("--reuse-run-id", metavar="RUN_ID", help="Reuse this run.")
@setting_options(SHARED)
@config_option
@asked_options
@click.option("--dry-run", is_flag=True, help="Resolve, check and print; run nothing.")
@output_options
def run(
    benchmark: str,
    harness: str,
    model: str,
    fields: tuple[str, ...],
    reuse: bool,
    reuse_run_id: str | None,
    config_files: tuple[Path, ...],
    dry_run: bool,
    as_json: bool,
    debug: bool,
    **given: Any,
) -> int:
    """Evaluate MODEL with HARNESS on BENCHMARK.

    BENCHMARK is an id or the path of a pack (./folder); a harness that calls no model takes the
    model `none`.
    """
    from steelyard.cli.dry_run import finish, resolved
    from steelyard.components.known import REGISTRY
    from steelyard.config.resolve import resolve_run

    asked = picked(given)
    overrides: list[Override] = []
    problems: list[Problem] = []
    try:
        overrides += overrides_of((*RUN_ONLY, *SHARED), given)
    except BadInput as error:
        problems += error.problems
    for text in fields:
        try:
            overrides.append(field_override(text))
        except BadInput as error:
            problems += error.problems
    if problems:
        raise BadInput.of(problems)
    if reuse:
        overrides.append(Override(("runtime", "reuse"), True, "--reuse"))
    if reuse_run_id is not None:
        overrides.append(
            Override(("runtime", "reuse_run_id"), reuse_run_id, "--reuse", is_text=True)
        )
    resolution = resolved(
        lambda: resolve_run(
            benchmark,
            harness,
            model,
            config_files=config_files,
            overrides=overrides,
            components=REGISTRY,
        )
    )
    return finish(resolution, dry_run=dry_run, as_json=as_json, asked=asked)
