"""Read the cases of a pack and hold each against the templates, paths and validators."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from steelyard.benchmarks.pack.cases import Problems, read_cases
from steelyard.benchmarks.pack.load import CASES_FOLDER, Pack
from steelyard.benchmarks.pack.paths import PathProblem, file_in, folder_in, overlaps
from steelyard.benchmarks.pack.template_language import TemplateProblem
from steelyard.benchmarks.pack.validators.contract import Validator
from steelyard.components.benchmark import Task
from steelyard.components.issues import AttemptFault
from steelyard.config.errors import BadInput, Problem, Where

MAX_LISTED: Final = 10
"""Cases with one kind of fault; more are counted, not listed."""


def load_cases(pack: Pack) -> list[Task]:
    """Read every case and hold it against the templates and validators.

    Raises:
        BadInput: all that is wrong, each with its file and line.
    """
    problems = Problems()
    tasks, places = read_cases(pack.root, pack.document, pack.file, problems)
    _check_fields(pack, tasks, places, problems)
    _check_paths(pack, tasks, places, problems)
    for number, validator in enumerate(pack.validators):
        if validator.checks_cases and number not in pack.unreadable:
            _check_validator(pack, number, validator, tasks, places, problems)
    problems.raise_if_any()
    return tasks


def _check_validator(
    pack: Pack,
    number: int,
    validator: Validator,
    tasks: Sequence[Task],
    places: dict[str, Where],
    problems: Problems,
) -> None:
    """Say each fault once, and the first cases that have it."""
    faulty: dict[str, list[str]] = {}
    for task in tasks:
        try:
            fault = validator.fault_in(task.data)
        except AttemptFault as error:
            fault = None if _is_lack(pack, task, error.message) else error.message
        if fault is not None:
            faulty.setdefault(fault, []).append(task.id)
    listed = 0
    for count, (fault, ids) in enumerate(faulty.items()):
        if number in pack.faulty and len(ids) == len(tasks):
            continue  # what is the same in every case was said where it is written
        if listed == MAX_LISTED:
            rest = sum(map(len, list(faulty.values())[count:]))
            problems.add(
                pack.document.problem(
                    f"{rest} more cases have faults that the validator {validator.name} finds",
                    *("scoring", "validators", number),
                )
            )
            break
        more = f" and {len(ids) - 1} more" if len(ids) > 1 else ""
        message = f"case {ids[0]!r}{more}, validator {validator.name}: {fault}"
        problems.add(Problem(message, places[ids[0]]))
        listed += 1


def _is_lack(pack: Pack, task: Task, message: str) -> bool:
    """True where a template misses a field whose lack was said of the case already."""
    lacking = [name for name in pack.required if name not in task.data]
    return "is undefined" in message and any(repr(name) in message for name in lacking)


def case_problems(pack: Pack) -> list[Problem]:
    """Give what is wrong with the cases of a pack that is malformed itself."""
    try:
        load_cases(pack)
    except BadInput as error:
        said = pack.healed.speaks_of_pack
        return [problem for problem in error.problems if said(problem)]
    return []


def _check_fields(
    pack: Pack, tasks: Sequence[Task], places: dict[str, Where], problems: Problems
) -> None:
    for name, field in pack.required.items():
        lacking = [task for task in tasks if name not in task.data]
        if tasks and len(lacking) == len(tasks):
            known = ", ".join(sorted(tasks[0].data)[:20])
            problems.add(
                pack.document.problem(
                    f"the template reads {name!r}, which no case has",
                    *field,
                    remedy=f"the cases have: {known}",
                )
            )
            continue
        for task in lacking[:MAX_LISTED]:
            message = f"case {task.id!r} has no field {name!r}, which a template reads"
            problems.add(Problem(message, places[task.id], f"add {name}"))
        if len(lacking) > MAX_LISTED:
            message = f"{len(lacking) - MAX_LISTED} more cases have no field {name!r}"
            problems.add(pack.document.problem(message, *field))


def _check_paths(
    pack: Pack, tasks: Sequence[Task], places: dict[str, Where], problems: Problems
) -> None:
    """Look at the paths that differ from case to case; the others were looked at on loading."""
    for use in pack.paths:
        if use.template.is_constant or use.template.is_malformed:
            continue
        seen: set[str] = set()
        for task in tasks:
            try:
                text = use.template.render(task.data)
                if text not in seen:
                    seen.add(text)
                    path = (folder_in if use.is_folder else file_in)(pack.root, text)
                    _check_hidden(pack, path, text)
            except (TemplateProblem, PathProblem) as error:
                if not _is_lack(pack, task, str(error)):
                    problems.add(Problem(f"case {task.id!r}: {error}", places[task.id]))


def _check_hidden(pack: Pack, path: Path, text: str) -> None:
    """Raise `PathProblem` where the agent would see what a case's own path names."""
    for folder in (pack.workspace, pack.root / CASES_FOLDER):
        if folder is not None and overlaps(path, folder):
            raise PathProblem(f"{text!r} overlaps {folder.name}, so the agent would see it")
