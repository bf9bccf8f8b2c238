"""`steelyard evalset scan SET`: let scanners read what the agents of a set did."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from steelyard.cli.options import config_option, output_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.evalset.project import Project
    from steelyard.evalset.scan_values import ScanProgress, ScanResult
    from steelyard.evalset.set_document import SetCell
    from steelyard.evalset.set_reader import OpenedSet
    from steelyard.evalset.surroundings import Surroundings


@click.command("scan")
@click.argument("set_", metavar="SET")
@click.option(
    "--scanner",
    "names",
    multiple=True,
    metavar="ID",
    help="A scanner: an id, a rule file, module:Class or ./file.py:Class; may be repeated (those "
    "of the manifest).",
)
@click.option(
    "--cell", "keys", multiple=True, metavar="KEY", help="Only these cells: keys or patterns."
)
@config_option
@output_options
def scan(
    set_: str,
    names: tuple[str, ...],
    keys: tuple[str, ...],
    config_files: tuple[Path, ...],
    as_json: bool,
    debug: bool,
) -> int:
    """Let scanners read what they have not read of SET, and print what is new.

    What a scanner has read is not read again; a new version of it reads all anew, and what the old
    one found is superseded. Ends with 1 where a scanner failed at a record, which is named; with 4
    where the set's budget left nothing for its judge.
    """
    from steelyard.cli.output import print_json
    from steelyard.cli.run_argument import results_dir
    from steelyard.cli.streams import redact_with
    from steelyard.config.errors import BadInput
    from steelyard.config.redaction import Redactor
    from steelyard.evalset.cell_choice import chosen_cells
    from steelyard.evalset.find_set import find_set
    from steelyard.evalset.project import read_project
    from steelyard.evalset.scan_asked import scanners_of
    from steelyard.evalset.surroundings import Surroundings

    opened = find_set(set_, results_dir())
    cells = chosen_cells(opened.cells, keys)
    chosen = names or scanners_of(opened)
    if not chosen:
        raise BadInput(
            "the set's manifest names no scanner",
            remedy="name one: --scanner reward-hacking; `steelyard list scanners` lists them",
        )
    around = opened.document.around.with_more(Surroundings(config_files))
    project = read_project(around.config_files, cwd=around.cwd)
    redact_with(Redactor(project.config.secrets).text)
    # Names on the command line start from here, those of the manifest from where it lies.
    folder = Path.cwd() if names else _manifest_folder(opened)
    result = _scanned(opened, chosen, project, folder, cells, is_option=bool(names))
    if as_json:
        print_json(result.as_json())
    else:
        print_result(result)
    return result.exit_status


def scan_left(opened: OpenedSet, settings: Surroundings) -> ScanResult | None:
    """Read what the manifest's scanners have not read of a set that has ended: mostly nothing.

    The closing scan of its submission may have been killed. None where no scanner is named, or
    they can no longer be made; that is said.
    """
    from steelyard.cli.output import note
    from steelyard.cli.streams import redact_with
    from steelyard.config.errors import BadInput
    from steelyard.config.redaction import Redactor
    from steelyard.evalset.project import read_project
    from steelyard.evalset.scan_asked import scanners_of

    names = scanners_of(opened)
    if not names:
        return None
    try:
        around = opened.document.around.with_more(settings)
        project = read_project(around.config_files, environ=around.environ, cwd=around.cwd)
        redact_with(Redactor(project.config.secrets).text)
        return _scanned(opened, names, project, _manifest_folder(opened))
    except BadInput as error:
        for problem in error.problems:
            note(f"not scanned: {problem}")
        return None


def _scanned(
    opened: OpenedSet,
    names: Sequence[str],
    project: Project,
    folder: Path,
    cells: Sequence[SetCell] | None = None,
    *,
    is_option: bool = False,
) -> ScanResult:
    from steelyard.config.errors import Where
    from steelyard.evalset.scan_asked import scan_asked

    def place(number: int) -> Where:
        if is_option:
            return Where(field="--scanner")
        return Where(file=opened.document.manifest_file, field=f"scanners[{number}]")

    shown = ShownScan()
    try:
        return asyncio.run(
            scan_asked(
                opened,
                names,
                project,
                folder,
                cells=cells,
                place_of=place,
                on_progress=shown.progress,
                on_wait=shown.waits,
            )
        )
    finally:
        shown.close()


def _manifest_folder(opened: OpenedSet) -> Path:
    file = opened.document.manifest_file
    return Path.cwd() if file is None else Path(file).parent


class ShownScan:
    """A line on the terminal while it reads; nothing elsewhere."""

    def __init__(self, *, is_silent: bool = False) -> None:
        self._is_silent = is_silent
        self._is_terminal = sys.stderr.isatty() and not is_silent
        self._has_said = False

    def progress(self, progress: ScanProgress) -> None:
        """Show how far it has come."""
        if self._is_terminal:
            self._has_said = True
            sys.stderr.write(
                f"\r\x1b[K{progress.attempts} attempts, {progress.read} read, "
                f"{progress.findings} findings, {progress.faults} failed"
            )
            sys.stderr.flush()

    def waits(self) -> None:
        """Say that another process is waited for."""
        from steelyard.cli.output import note

        if not self._is_silent:
            note("another process scans the set: waiting for it")

    def close(self) -> None:
        """Take the line away."""
        if self._has_said:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def print_result(result: ScanResult) -> None:
    """Print what a scan came to."""
    from steelyard.cli.evalset_findings import print_findings
    from steelyard.cli.output import counted, note, say
    from steelyard.results.consumption import dollars

    if result.new:
        print_findings(result.new)
        say()
    names = ", ".join(result.scanners)
    line = (
        f"{names}: {counted(result.attempts, 'attempt')}, {result.read} read now, "
        f"{counted(len(result.new), 'new finding')}"
    )
    if result.spent.requests:
        cost = dollars(result.spent.cost_usd, result.spent.known_usd)
        line += f"; {counted(result.spent.requests, 'judge call')}, {cost}"
    say(line)
    if result.silent:
        note(
            f"{counted(result.silent, 'attempt')} without a call or text that can be read: that "
            "nothing was found there says nothing of the agent"
        )
    for fault in result.faults:
        note(f"failed: {fault}")
    if result.fault_count > len(result.faults):
        note(f"… and {result.fault_count - len(result.faults)} more failed")
    for one in result.unreadable:
        note(f"not read: {one}")
    if result.stopped is not None:
        note(f"stopped: {result.stopped}")
