"""The configuration files that take part from here, and the variables they refer to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from steelyard.components.known import REGISTRY
from steelyard.config.errors import BadInput
from steelyard.config.layers import layer_files, shown
from steelyard.config.resolve import resolve_config
from steelyard.config.source import plain
from steelyard.doctor.finding import Finding, State, works

DEFAULT_CONCURRENCY: Final = 32


@dataclass(frozen=True, slots=True)
class Settings:
    """What the other checks need of the settings."""

    results_dir: Path
    data_dir: Path | None
    concurrency: int
    findings: tuple[Finding, ...]
    references: Mapping[str, str]
    """Variables that the files refer to, each with the place."""


def examine_settings(variables: Mapping[str, str], cwd: Path) -> Settings:
    """Read the files as a run started here would."""
    findings: list[Finding] = []
    references: dict[str, str] = {}
    tree: Any = {}
    try:
        found = resolve_config(environ=variables, cwd=cwd, components=REGISTRY)
    except BadInput as error:
        findings += [
            Finding(
                "settings",
                State.BROKEN,
                f"{problem.where}: {problem.message}",
                problem.remedy or "correct it; `steelyard config docs` explains every field",
            )
            for problem in error.problems
        ]
    else:
        tree = plain(found.provenance.root)
        names = ", ".join(shown(file.path, cwd) for file in found.files)
        findings.append(works("settings", names or "no configuration file takes part from here"))
        findings += [
            Finding(
                "settings",
                State.WARNING,
                f"{warning.where}: {warning.message}",
                warning.remedy or "correct it",
            )
            for warning in found.warnings
        ]
    for file in layer_files(variables, cwd, ()):
        references |= _references(file.path, shown(file.path, cwd))
    runtime = tree.get("runtime") or {} if isinstance(tree, dict) else {}
    execution = tree.get("execution") or {} if isinstance(tree, dict) else {}
    data_dir = runtime.get("data_dir")
    return Settings(
        cwd / (runtime.get("results_dir") or "results"),
        None if data_dir is None else cwd / data_dir,
        int(execution.get("task_concurrency") or DEFAULT_CONCURRENCY),
        tuple(findings),
        references,
    )


def _references(path: Path, name: str) -> dict[str, str]:
    """Find secret-named fields of a file that are whole-field references, with their places."""
    from steelyard.config.envrefs import referred_name
    from steelyard.config.secret_names import is_secret_name
    from steelyard.config.source import read_file, walk

    try:
        root = read_file(path, shown=name)
    except BadInput:  # said by the settings' own finding
        return {}
    found = {}
    for at, node in walk(root):
        variable = referred_name(node.value)
        if variable is not None and at and is_secret_name(str(at[-1])):
            found[variable] = f"{name}:{node.origin.where.line}"
    return found
