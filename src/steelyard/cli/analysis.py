"""`steelyard analysis RUN`: analyze a run once more, or as it stands, and show what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from steelyard.cli.options import output_options

if TYPE_CHECKING:
    from steelyard.components.analyzer import Analyzer


@click.command("analysis")
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--analyzer",
    "names",
    multiple=True,
    metavar="ID",
    help="An analyzer: an id, module:Class or ./file.py:Class; may be repeated (what the run "
    "was started with, else failures).",
)
@output_options
def analysis(run: Path, names: tuple[str, ...], as_json: bool, debug: bool) -> int:
    """Analyze RUN, rebuild its analysis.json and analysis.md, and print one of them.

    RUN is a run directory, a folder of runs, a run's id, a request's name, or `latest`; of several
    runs the newest.
    A run that is going on is analyzed as it stands; its files are left to its owner.
    """
    from steelyard.cli.output import print_json, print_warnings, say
    from steelyard.cli.run_argument import run_root
    from steelyard.config.errors import Problem
    from steelyard.engine.analysis import analyze
    from steelyard.results.analysis import write_analysis
    from steelyard.results.files import StorageFailed
    from steelyard.results.reader import RunReader, RunState

    root = run_root(run)
    reader = RunReader(root)
    made = _made(names, reader.document)
    found = analyze(root, made)
    not_written: StorageFailed | None = None
    if reader.state is not RunState.RUNNING:
        try:
            write_analysis(root, found.document, found.text)
        except StorageFailed as error:  # a full or read-only disk can be read all the same
            not_written = error
    if as_json:
        print_json(found.document)
    else:
        say(found.text.rstrip("\n"))
    print_warnings(
        [Problem(f"the analyzer {one.analyzer} failed: {one.message}") for one in found.faults]
    )
    if not_written is not None:
        print_warnings(not_written.problems)
        return not_written.exit_status
    return 1 if found.faults else 0


def _made(names: Sequence[str], document: dict[str, Any]) -> tuple[Analyzer, ...]:
    """Make the analyzers that were asked for, else those that the run was started with.

    Raises:
        BadInput: one is unknown or unusable, or its parameters hold secrets, which no run keeps.
    """
    from steelyard.components.clock import SystemClock
    from steelyard.config.errors import BadInput
    from steelyard.config.secrets import SecretStore
    from steelyard.engine.analyzers import make_analyzers, recorded_analyzers
    from steelyard.engine.services import EndpointPool, Maker
    from steelyard.engine.spec import ComponentSpec

    chosen = tuple(map(ComponentSpec, names)) or recorded_analyzers(document)
    for spec in chosen:
        if "$secret" in str(spec.params) or "[redacted]" in str(spec.params):
            raise BadInput(
                f"the parameters of the analyzer {spec.id!r} hold secrets, which a run never keeps",
                remedy=f"name it with its defaults: --analyzer {spec.id}",
            )
    secrets, clock = SecretStore({}), SystemClock()
    maker = Maker(secrets, clock, EndpointPool(secrets, clock), Path.cwd())
    made = make_analyzers(chosen, maker, None)
    if made.problems or made.lacking:
        raise BadInput.of([*made.problems, *made.lacking])
    return made.analyzers
