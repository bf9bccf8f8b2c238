"""`steelyard launch`: an orchestration file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from steelyard.cli.asked import asked_options, picked
from steelyard.cli.options import (
    SHARED,
    GroupedCommand,
    config_option,
    output_options,
    overrides_of,
    setting_options,
)
from steelyard.config.errors import BadInput, Problem, Where
from steelyard.config.layers import Override

_PER_REQUEST = {
    "k": ("--k", "execution.attempts.k"),
    "attempt_strategy": ("--attempt-strategy", "execution.attempts.strategy"),
}
"""Options of `run` that would force one value on every benchmark."""


@click.command(cls=GroupedCommand)
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--reuse", is_flag=True, help="Reuse each request's latest compatible run, unless it opts out."
)
@setting_options(SHARED)
@config_option
@asked_options
@click.option("--dry-run", is_flag=True, help="Resolve, check and print; run nothing.")
@click.option("--k", hidden=True)
@click.option("--attempt-strategy", hidden=True)
@output_options
def launch(
    file: Path,
    reuse: bool,
    config_files: tuple[Path, ...],
    dry_run: bool,
    as_json: bool,
    debug: bool,
    **given: Any,
) -> int:
    """Run the requests of an orchestration FILE (YAML or JSON) over one pool.

    The controls here are shared by all requests; what differs stands in the file.
    """
    from steelyard.cli.dry_run import finish, resolved
    from steelyard.components.known import REGISTRY
    from steelyard.config.resolve import resolve_orchestration

    _refuse_per_request(given)
    asked = picked(given)
    overrides = overrides_of(SHARED, given)
    if reuse:
        overrides.append(Override(("runtime", "reuse"), True, "--reuse"))
    resolution = resolved(
        lambda: resolve_orchestration(
            file, config_files=config_files, overrides=overrides, components=REGISTRY
        )
    )
    return finish(resolution, dry_run=dry_run, as_json=as_json, asked=asked)


def _refuse_per_request(given: dict[str, Any]) -> None:
    problems = [
        Problem(
            f"launch has no {flag}: requests may need different values",
            Where(field=flag),
            remedy=f"write {field} under the request, or under defaults for all of them",
        )
        for name, (flag, field) in _PER_REQUEST.items()
        if given.get(name) is not None
    ]
    if problems:
        raise BadInput.of(problems)
