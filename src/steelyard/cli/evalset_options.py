"""What `evalset submit`, `resume` and `retry` share: options, and planning said aloud."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from steelyard.cli.options import SHARED, overrides_of

if TYPE_CHECKING:
    from steelyard.evalset.set_plan import SetPlan
    from steelyard.evalset.surroundings import Surroundings

_OWN: Final = ("--budget-usd", "--budget-tokens", "--analysis", "--analyzer")
"""Of the shared options those that a set has in another form, or not."""
SET_OPTIONS: Final = tuple(option for option in SHARED if option.flag not in _OWN)

_OF_THE_SET: Final = (
    "--run-name", "--run-id", "--limit", "--sample-ids", "--exclude-ids", "--shard",
)  # fmt: skip
"""Of these those that say what the set is: they were given when it was submitted."""
RESUME_OPTIONS: Final = tuple(option for option in SET_OPTIONS if option.flag not in _OF_THE_SET)

FILE: Final = click.Path(path_type=Path)
budget_option = click.option(
    "--budget-usd", type=click.FloatRange(min=0), metavar="USD",
    help="Dollars the whole set may spend, what is spent included.",
)  # fmt: skip
reap_option = click.option(
    "--reap", is_flag=True, help="First end what dead runs of these cells left running or lying."
)


def around(config_files: tuple[Path, ...], given: Mapping[str, Any]) -> Surroundings:
    """Take from a command line where settings come from beside the manifest."""
    from steelyard.evalset.surroundings import Surroundings

    files = tuple(file.absolute() for file in config_files)
    return Surroundings(files, tuple(overrides_of(SET_OPTIONS, given)))


def planned(plan: Callable[[], SetPlan]) -> SetPlan:
    """Plan, and say so where it takes long."""
    from steelyard.cli.preparing import said_when_slow
    from steelyard.cli.progress import is_live

    with said_when_slow(sys.stderr, is_live=is_live("auto", sys.stderr), is_silent=False):
        return plan()
