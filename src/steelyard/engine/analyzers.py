"""From `execution.analysis` to analyzers: which are meant, and each one made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from steelyard.components.analyzer import Analyzer
from steelyard.components.contract import own_code
from steelyard.components.registry import Kind
from steelyard.config.errors import BadInput, Problem, Where
from steelyard.config.schema.request import Component
from steelyard.config.secrets import sealed_json
from steelyard.config.source import FieldPath, Node
from steelyard.engine.plan_checks import placed
from steelyard.engine.services import Maker
from steelyard.engine.spec import ComponentSpec

DEFAULT: Final = ("failures",)
"""What `analysis: true` means."""


@dataclass(frozen=True, slots=True)
class MadeAnalyzers:
    """Analyzers of a request, and what is wrong with those that could not be made."""

    analyzers: tuple[Analyzer, ...]
    problems: tuple[Problem, ...]
    lacking: tuple[Problem, ...]
    """What this machine lacks to run them."""


def chosen_analyzers(setting: bool | Sequence[str | Component]) -> tuple[ComponentSpec, ...]:
    """Say which analyzers a request's `execution.analysis` names, in order."""
    if isinstance(setting, bool):
        return tuple(ComponentSpec(name) for name in DEFAULT) if setting else ()
    return tuple(
        ComponentSpec(item)
        if isinstance(item, str)
        else ComponentSpec(item.id, sealed_json(item.params))
        for item in setting
    )


def recorded_analyzers(document: Mapping[str, Any]) -> tuple[ComponentSpec, ...]:
    """Say which analyzers a run was started with, by its `run.json`; the default where none."""
    request = document.get("request")
    execution = request.get("execution") if isinstance(request, Mapping) else None
    written = execution.get("analysis") if isinstance(execution, Mapping) else None
    found = []
    for item in written if isinstance(written, list) else ():
        if isinstance(item, str):
            found.append(ComponentSpec(item))
        elif isinstance(item, Mapping) and isinstance(item.get("id"), str):
            params = {str(key): value for key, value in item.items() if key != "id"}
            found.append(ComponentSpec(item["id"], params))
    return tuple(found) or chosen_analyzers(True)


def make_analyzers(
    chosen: Sequence[ComponentSpec], maker: Maker, written: Node | None, *, at: FieldPath = ()
) -> MadeAnalyzers:
    """Make each one, and ask it what this machine lacks. All that is wrong comes at once.

    Args:
        chosen: the analyzers, in order.
        maker: makes components.
        written: the settings' tree with its positions, for errors.
        at: where in that tree the list stands.
    """
    made: list[Analyzer] = []
    problems: list[Problem] = []
    lacking: list[Problem] = []
    seen: set[str] = set()
    for index, spec in enumerate(chosen):
        place = (*at, index)
        where = Where() if written is None else written.nearest(place).origin.where
        try:
            analyzer: Analyzer = maker.component(Kind.ANALYZER, spec, written, at=place)
            what = f"the analyzer {spec.id!r}: unavailable()"
            reason = own_code(what, analyzer, analyzer.unavailable)
        except BadInput as error:
            problems += placed(error.problems, where)
            continue
        if analyzer.id in seen:
            problems.append(Problem(f"the analyzer {analyzer.id!r} is named twice", where))
            continue
        seen.add(analyzer.id)
        made.append(analyzer)
        if reason is not None:
            lacking.append(Problem(f"{analyzer.id} cannot run here: {reason}", where))
    return MadeAnalyzers(tuple(made), tuple(problems), tuple(lacking))
