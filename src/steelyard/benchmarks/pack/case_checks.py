"""Read the cases of a pack and hold each against the templates, paths and validators."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from steelyard.benchmarks.pack.cases import Problems, read_cases
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
    problems.raise_if_any()
    _check_paths(pack, tasks, places, problems)
    checking = [validator for validator in pack.validators if validator.checks_cases]
    for task in tasks if checking else ():
        for validator in checking:
            try:
                fault = validator.fault_in(task.data)
            except AttemptFault as error:
                fault = error.message
            if fault is not None:
                message = f"case {task.id!r}, validator {validator.name}: {fault}"
                problems.add(Problem(message, places[task.id]))
    problems.raise_if_any()
    return tasks


def case_problems(pack: Pack) -> list[Problem]:
    """Give what is wrong with the cases of a pack that is malformed itself."""
    try:
        load_cases(pack)
    except BadInput as error:
        return list(error.problems)
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
        for task in lacking:
            message = f"case {task.id!r} has no field {name!r}, which a template reads"
            problems.add(Problem(message, places[task.id], f"add {name}"))


def _check_paths(
    pack: Pack, tasks: Sequence[Task], places: dict[str, Where], problems: Problems
) -> None:
    """Look at the paths that differ from case to case; the others were looked at on loading."""
    for use in pack.paths:
        if use.template.is_constant:
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
                problems.add(Problem(f"case {task.id!r}: {error}", places[task.id]))


def _check_hidden(pack: Pack, path: Path, text: str) -> None:
    """Raise `PathProblem` where the agent would see what a case's own path names."""
    for folder in (pack.workspace, pack.root / CASES_FOLDER):
        if folder is not None and overlaps(path, folder):
            raise PathProblem(f"{text!r} overlaps {folder.name}, so the agent would see it")
