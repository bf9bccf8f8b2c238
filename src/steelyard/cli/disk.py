"""`steelyard du` and `steelyard prune`: what runs take on disk, and removing old ones."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from steelyard.cli.options import output_options
from steelyard.cli.output import counted
from steelyard.config.errors import BadInput, SteelyardError

if TYPE_CHECKING:
    from steelyard.results.retention import KeptRun, Verdict

_UNITS = {"k": 1024, "m": 1024**2, "g": 1024**3, "t": 1024**4}
_SPANS = {"h": "hours", "d": "days", "w": "weeks"}


@click.command("du")
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@output_options
def du(folder: Path | None, as_json: bool, debug: bool) -> int:
    """Say what each run below DIR takes on disk, the largest first.

    DIR is a results folder, a request's folder or a run; without it, the results folder that the
    settings name.
    """
    from steelyard.cli.output import print_json, print_table, say
    from steelyard.results.retention import Part, find_runs

    place = _folder(folder)
    runs = sorted(find_runs(place), key=lambda run: run.bytes, reverse=True)
    total = sum(run.bytes for run in runs)
    if as_json:
        print_json({"folder": str(place), "bytes": total, "runs": [_run_json(run) for run in runs]})
        return 0
    if not runs:
        say(f"there is no run below {place}")
        return 0
    rows = [
        (
            _shown(run.root, place),
            size_text(run.bytes),
            *(size_text(run.bytes_by_part.get(part, 0)) for part in Part),
            "running" if run.is_running else "",
        )
        for run in runs
    ]
    print_table(("run", "all", *(part.value for part in Part), ""), rows)
    say(f"\n{counted(len(runs), 'run')}, {size_text(total)}")
    return 0


@click.command("prune")
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@click.option("--older-than", metavar="AGE", help="Only runs older than this: 12h, 30d, 8w.")
@click.option("--keep-last", metavar="N", type=click.IntRange(min=0),
              help="Of each request, the newest N stay.")  # fmt: skip
@click.option("--max-size", metavar="SIZE",
              help="The oldest go until the rest takes no more: 500M, 20G.")  # fmt: skip
@click.option("--yes", is_flag=True, help="Remove them; without it they are only listed.")
@output_options
def prune(
    folder: Path | None,
    older_than: str | None,
    keep_last: int | None,
    max_size: str | None,
    yes: bool,
    as_json: bool,
    debug: bool,
) -> int:
    """Remove old runs below DIR by a retention rule; without --yes, only say which.

    A run goes where every bound that is given lets it. Runs that are going on stay, and so do
    folders that cannot be read as a run.
    """
    from steelyard.cli.output import note, print_json, print_table, say
    from steelyard.components.clock import SystemClock
    from steelyard.results.retention import Rule, find_runs, judge, remove_rubbish, remove_run

    rule = Rule(_age(older_than), keep_last, _size(max_size))
    if rule == Rule():
        raise BadInput(
            "no bound is given: nothing would go",
            remedy="give --older-than, --keep-last or --max-size",
        )
    place = _folder(folder)
    verdicts = judge(list(find_runs(place)), rule, SystemClock().now())
    going = [verdict for verdict in verdicts if verdict.goes]
    failed: list[str] = []
    if yes:
        for path in remove_rubbish(place):
            note(f"removed what an earlier prune had left: {path}")
        for verdict in going:
            try:
                remove_run(verdict.run)
            except (OSError, SteelyardError) as error:
                failed.append(f"{verdict.run.root}: {error}")
    freed = sum(verdict.run.bytes for verdict in going)
    if as_json:
        print_json(
            {
                "folder": str(place),
                "removed": yes,
                "bytes": freed,
                "failed": failed,
                "runs": [_verdict_json(verdict) for verdict in verdicts],
            }
        )
    else:
        _print_verdicts(place, going, len(verdicts) - len(going), print_table, say)
        word = "removed" if yes else "would be removed; --yes removes them"
        say(f"{counted(len(going), 'run')}, {size_text(freed)}, {word}")
        for line in failed:
            note(f"warning: not removed: {line}")
    return 1 if failed else 0


def _print_verdicts(
    place: Path, going: Sequence[Verdict], staying: int, print_table: Any, say: Any
) -> None:
    if going:
        rows = [(_shown(v.run.root, place), size_text(v.run.bytes), v.why) for v in going]
        print_table(("run", "size", "why"), rows)
        say()
    say(f"{counted(staying, 'run')} {'stays' if staying == 1 else 'stay'}")


def _folder(given: Path | None) -> Path:
    """Give the folder that is meant; raise where there is none."""
    if given is None:
        from steelyard.components.known import REGISTRY
        from steelyard.config.resolve import resolve_config
        from steelyard.config.source import plain

        tree = plain(resolve_config(components=REGISTRY).provenance.root)
        given = Path((tree.get("runtime") or {}).get("results_dir") or "results")
    if not given.is_dir():
        raise BadInput(f"{given} is no folder", remedy="name a results folder, or a run")
    return given


def _shown(root: Path, place: Path) -> str:
    relative = root.relative_to(place)
    return str(relative) if relative.parts else root.name


def size_text(size: int) -> str:
    """Write a size for people, in units of 1024."""
    value, units = float(size), ["B", "KiB", "MiB", "GiB", "TiB"]
    while value >= 1024 and len(units) > 1:
        value /= 1024
        units.pop(0)
    return f"{value:.0f} B" if units[0] == "B" else f"{value:.1f} {units[0]}"


def _size(text: str | None) -> int | None:
    if text is None:
        return None
    number, factor = text.strip().lower().removesuffix("b").removesuffix("i"), 1
    if number and number[-1] in _UNITS:
        number, factor = number[:-1], _UNITS[number[-1]]
    if not number.isdecimal():
        raise BadInput(f"--max-size {text}: not a size", remedy="write 500M, 20G or 1T")
    return int(number) * factor


def _age(text: str | None) -> timedelta | None:
    if text is None:
        return None
    number, unit = text.strip()[:-1], text.strip()[-1:].lower()
    if unit not in _SPANS or not number.isdecimal() or len(number) > 6:
        raise BadInput(f"--older-than {text}: not an age", remedy="write 12h, 30d or 8w")
    return timedelta(**{_SPANS[unit]: int(number)})


def _run_json(run: KeptRun) -> dict[str, Any]:
    return {
        "path": str(run.root),
        "created_at": None if run.created_at is None else run.created_at.isoformat(),
        "running": run.is_running,
        "bytes": run.bytes,
        "parts": {part.value: size for part, size in run.bytes_by_part.items()},
    }


def _verdict_json(verdict: Verdict) -> dict[str, Any]:
    return {**_run_json(verdict.run), "goes": verdict.goes, "why": verdict.why}
