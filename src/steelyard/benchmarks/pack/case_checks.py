"""Read the cases of a pack and hold each against the templates, paths and validators."""

from __future__ import annotations

from collections.abc import Sequence, Set
from pathlib import Path

from steelyard.benchmarks.pack.cases import MAX_LISTED, Problems, listed, read_cases
from steelyard.benchmarks.pack.load import CASES_FOLDER, Pack
from steelyard.benchmarks.pack.paths import PathProblem, file_in, folder_in, overlaps
from steelyard.benchmarks.pack.template_language import TemplateProblem
from steelyard.components.benchmark import Task
from steelyard.components.issues import AttemptFault
from steelyard.config.errors import BadInput, Problem, Where


def load_cases(pack: Pack) -> list[Task]:
    """Read every case and hold it against the templates and validators.

    Raises:
        BadInput: all that is wrong, each with its file and line.
    """
    problems = Problems()
    tasks, places = read_cases(pack.root, pack.document, pack.file, problems)
    _check_fields(pack, tasks, places, problems)
    said = _check_paths(pack, tasks, places, problems)
    for number, validator in enumerate(pack.validators):
        if validator.checks_cases and number not in pack.unreadable:
            _check_validator(pack, number, tasks, places, problems, said)
    problems.raise_if_any()
    return tasks


def _check_validator(
    pack: Pack,
    number: int,
    tasks: Sequence[Task],
    places: dict[str, Where],
    problems: Problems,
    said: Set[str],
) -> None:
    """Say each fault once, and the first cases that have it; `said` are those of paths."""
    validator = pack.validators[number]
    faulty: dict[str, list[str]] = {}
    for task in tasks:
        try:
            fault = validator.fault_in(task.data)
        except AttemptFault as error:
            fault = None if _is_lack(pack, task, error.message) else error.message
        if fault is not None and fault not in said:
            faulty.setdefault(f", validator {validator.name}: {fault}", []).append(task.id)
    if number in pack.faulty:  # what is the same in every case was said where it is written
        faulty = {fault: ids for fault, ids in faulty.items() if len(ids) < len(tasks)}
    texts, rest = listed(faulty)
    for task_id, text in texts:
        problems.add(Problem(text, places[task_id]))
    if rest:
        message = f"{rest} more cases have faults that the validator {validator.name} finds"
        problems.add(pack.document.problem(message, "scoring", "validators", number))


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
) -> set[str]:
    """Look at the paths that differ from case to case; the others were looked at on loading.

    Returns what is wrong with them.
    """
    said: set[str] = set()
    for use in pack.paths:
        if use.template.is_constant or use.template.is_malformed:
            continue
        found: dict[str, str | None] = {}
        faulty: dict[str, list[str]] = {}
        for task in tasks:
            try:
                text = use.template.render(task.data)
            except TemplateProblem as error:
                fault = None if _is_lack(pack, task, str(error)) else str(error)
            else:
                if text not in found:
                    found[text] = _path_fault(pack, text, is_folder=use.is_folder)
                fault = found[text]
            if fault is not None:
                said.add(fault)
                faulty.setdefault(f": {fault}", []).append(task.id)
        texts, rest = listed(faulty)
        for task_id, message in texts:
            problems.add(Problem(message, places[task_id]))
        if rest:
            message = f"{rest} more cases have faults of this path"
            problems.add(pack.document.problem(message, *use.field))
    return said


def _path_fault(pack: Pack, text: str, *, is_folder: bool) -> str | None:
    try:
        path = (folder_in if is_folder else file_in)(pack.root, text)
        _check_hidden(pack, path, text)
    except PathProblem as error:
        return str(error)
    return None


def _check_hidden(pack: Pack, path: Path, text: str) -> None:
    """Raise `PathProblem` where the agent would see what a case's own path names."""
    for folder in (pack.workspace, pack.root / CASES_FOLDER):
        if folder is not None and overlaps(path, folder):
            raise PathProblem(f"{text!r} overlaps {folder.name}, so the agent would see it")
