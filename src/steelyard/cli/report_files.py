"""The files that `--junit` and `--markdown` name: checked at the start, written at the end."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from steelyard.config.errors import BadInput, Problem, Where

NOT_WRITTEN: Final = 1
"""The exit status where a report that was asked for could not be written, and nothing else."""


def check_writable(files: Mapping[str, Path | None]) -> None:
    """Find out, without making anything, whether files can be written.

    Args:
        files: by the option that names them; None where it was not given.

    Raises:
        BadInput: a folder is not there, or may not be written; all at once.
    """
    problems: list[Problem] = []
    for option, path in files.items():
        if path is None:
            continue
        reason = _fault(path)
        if reason is not None:
            problems.append(
                Problem(f"{path}: {reason}", Where(field=option), "name a file that can be written")
            )
    named = [path.absolute() for path in files.values() if path is not None]
    if len(set(named)) < len(named):
        problems.append(Problem(f"{named[0]}: is named twice", remedy="name a file for each"))
    if problems:
        raise BadInput.of(problems)


def _fault(path: Path) -> str | None:
    try:
        if path.is_dir():
            return "is a folder"
        if not path.parent.is_dir():
            return "its folder is not there"
        if path.exists():
            return None if os.access(path, os.W_OK) else "permission denied"
        return None if os.access(path.parent, os.W_OK | os.X_OK) else "permission denied"
    except (OSError, ValueError) as error:
        return getattr(error, "strerror", None) or str(error)


def write_reports(
    junit_file: Path | None,
    junit: Callable[[], Iterable[str]],
    markdown_file: Path | None,
    markdown: Callable[[], str],
) -> list[Problem]:
    """Write the reports that were asked for, and say which could not be written.

    Nothing is raised: results stand on standard output by then, as the one document there.
    """
    found = []
    if junit_file is not None:
        found.append(_write(junit_file, junit()))
    if markdown_file is not None:
        found.append(_write(markdown_file, [markdown()]))
    return [problem for problem in found if problem is not None]


def _write(path: Path, parts: Iterable[str]) -> Problem | None:
    try:
        with path.open("w", encoding="utf-8", errors="replace", newline="\n") as file:
            for part in parts:
                file.write(part)
    except OSError as error:
        return Problem(
            f"{path}: {error.strerror or error}",
            remedy="free space or choose another file; `steelyard summary RUN` writes it again",
        )
    return None


def status_with(status: int, problems: Sequence[Problem]) -> int:
    """Say on standard error what was not written, and give the exit status with it."""
    from steelyard.cli.output import print_warnings
    from steelyard.results.gates import GATE_NOT_MET

    print_warnings(problems)
    return NOT_WRITTEN if problems and status in (0, GATE_NOT_MET) else status
