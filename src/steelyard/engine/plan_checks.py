"""What planning finds wrong without making anything; each problem with its place."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from steelyard.components.benchmark import Benchmark
from steelyard.components.contract import own_code
from steelyard.components.harness import Harness
from steelyard.components.registry import Kind, known_ids
from steelyard.config.errors import BadInput, Problem, Where
from steelyard.config.names import is_path_component
from steelyard.config.schema.orchestration import Orchestration
from steelyard.config.schema.request import ExecutionSettings, ModelSettings
from steelyard.config.secrets import SecretStore, sealed_json
from steelyard.config.source import FieldPath, Node
from steelyard.results.layout import ResultsNotWritable, RunPaths

_MOST_SHOWN: Final = 12
"""Ids that are listed where none is near the one that was written."""


@dataclass(frozen=True, slots=True)
class HealedFields:
    """Which fields of a request had faults that are said already; none for settings that run."""

    paths: frozenset[FieldPath]
    index: int

    @property
    def is_any(self) -> bool:
        """True where anything was left out or filled in: such a request never runs."""
        return bool(self.paths)

    def cover(self, *fields: str) -> bool:
        """True where one of these fields of the request, or what holds it, was at fault."""
        if not self.paths:
            return False
        paths = [("requests", self.index, *field.split(".")) for field in fields]
        return any(path[:end] in self.paths for path in paths for end in range(3, len(path) + 1))

    def are_below(self, field: str) -> bool:
        """True where the field of the request, or one inside, was at fault."""
        path = ("requests", self.index, field)
        return any(gone[:3] == path for gone in self.paths)

    @property
    def are_in_prices(self) -> bool:
        """True where what models cost is not known for a fault."""
        unpriced = ("runtime", "allow_unpriced")
        return any(gone[0] == "prices" or gone in (unpriced, unpriced[:1]) for gone in self.paths)

    @property
    def are_in_run_dir(self) -> bool:
        """True where the run's folder is not known for a fault."""
        root = ("runtime", "results_dir")
        return self.cover("name", "output.run_name", "output.run_id") or any(
            gone in (root, root[:1]) for gone in self.paths
        )


def placed(problems: Iterable[Problem], where: Where) -> list[Problem]:
    """Give problems that name no place the one of what they are about."""
    return [p if p.where.file or p.where.field else replace(p, where=where) for p in problems]


def moved(problems: Iterable[Problem], where: Where) -> list[Problem]:
    """Give problems another place: that of the setting that led to them."""
    return [replace(p, where=where) for p in problems]


def is_about(problems: Iterable[Problem], node: Node | None) -> bool:
    """True where a problem is about a written field or what stands in it."""
    if node is None or node.origin.where.field is None:
        return False
    file, field = node.origin.where.file, node.origin.where.field
    within = (f"{field}.", f"{field}[")
    return any(
        p.where.file == file
        and p.where.field is not None
        and (p.where.field == field or p.where.field.startswith(within))
        for p in problems
    )


def endpoint_problems(
    model: ModelSettings, secrets: SecretStore, where: Callable[[str], Where]
) -> list[Problem]:
    """Find what of a model's settings cannot be sent; a run would see it before its first call."""
    from steelyard.models.settings import parse_settings

    settings = sealed_json(model.model_dump(mode="python"))
    problems: list[Problem] = []
    # Headers are looked at where the rest is in order: once more without it.
    for tried in (settings, {**settings, "params": {}, "base_url": None}):
        try:
            parse_settings(tried, secrets)
        except BadInput as error:
            problems += error.problems
        else:
            break
    found = [replace(p, where=where(p.where.field or "model")) for p in problems]
    return list(dict.fromkeys(found))


def other_protocol(harness: Harness, model: ModelSettings) -> tuple[str, str] | None:
    """Say that a program speaks another protocol than the one that is written, with the remedy.

    It would speak its own whatever is written, and the gateway passes calls on as they are.
    """
    if not harness.protocols or "api_protocol" not in model.model_fields_set:
        return None
    if model.api_protocol in harness.protocols:
        return None
    return (
        f"the program of {harness.id} speaks {' and '.join(harness.protocols)} alone: "
        f"{model.api_protocol} cannot be asked of it",
        f"write `{harness.protocols[0]}` or leave it out, and name an endpoint that speaks it",
    )


def task_problems(
    benchmark: Benchmark, execution: ExecutionSettings, where: Callable[[str], Where]
) -> list[Problem]:
    """Find named tasks that do not exist, where that is known before anything is created."""
    if not (execution.sample_ids or execution.exclude_ids):
        return []
    what = f"the benchmark {benchmark.id!r}: task_ids()"
    try:
        ids = own_code(what, benchmark, benchmark.task_ids)
    except BadInput as error:
        return placed(error.problems, where("benchmark.id"))
    return [] if ids is None else unknown_tasks(ids, execution, where)


def unknown_tasks(
    ids: Iterable[str], execution: ExecutionSettings, where: Callable[[str], Where]
) -> list[Problem]:
    """Find ids of `sample_ids` and `exclude_ids` that no task has, each with the nearest one.

    Args:
        ids: of all tasks.
        execution: whose filters.
        where: gives the place of a field of the request.
    """
    known = dict.fromkeys(ids)
    problems = []
    for field, named in (
        ("sample_ids", execution.sample_ids or ()),
        ("exclude_ids", execution.exclude_ids),
    ):
        for name in dict.fromkeys(named):
            if name in known:
                continue
            near = difflib.get_close_matches(name, known, n=3)
            if near:
                remedy = f"did you mean {' or '.join(near)}?"
            elif len(known) <= _MOST_SHOWN:
                remedy = f"there are {', '.join(known)}"
            else:
                remedy = f"there are {len(known)} tasks"
            place = where(f"execution.{field}")
            problems.append(Problem(f"there is no task {name!r}", place, remedy))
    return problems


def is_unpriced(
    model: ModelSettings, secrets: SecretStore, prices: Mapping[str, Mapping[str, Any]]
) -> bool:
    """True where a run would not know what calls of a model cost; False where it cannot be said.

    Asked at the address that a run calls, the protocol's own where nobody names one.
    """
    from steelyard.models.prices import is_priced
    from steelyard.models.settings import parse_settings

    if model.id in prices:
        return False
    try:
        known = parse_settings(sealed_json(model.model_dump(mode="python")), secrets)
    except BadInput:
        return False  # what is wrong with it is said elsewhere
    return not is_priced(known.model_id, known.address.parts.geturl(), prices)


def scoring_model_problems(
    benchmark: Benchmark,
    secrets: SecretStore,
    prices: Mapping[str, Mapping[str, Any]] | None,
    where: Where,
) -> list[Problem]:
    """Find what of the models that scoring calls cannot be sent, or not be counted.

    Args:
        benchmark: whose models.
        secrets: where references in their settings are looked up.
        prices: the user's `prices:`; None where no budget in dollars holds them.
        where: the place of the benchmark.
    """
    from steelyard.models.prices import is_priced
    from steelyard.models.settings import parse_settings

    problems: list[Problem] = []
    try:
        what = f"the benchmark {benchmark.id!r}: scoring_models()"
        models = own_code(what, benchmark, benchmark.scoring_models)
    except BadInput as error:
        return placed(error.problems, where)
    for model in models:
        try:
            known = parse_settings(model, secrets)
        except BadInput as error:
            found = [replace(p, message=f"the judge's model: {p.message}") for p in error.problems]
            problems += moved(found, where)
            continue
        url = known.address.parts.geturl()
        if prices is not None and not is_priced(known.model_id, url, prices):
            message = f"the price of the judge {model['id']!r} is not known, and the budget is in"
            remedy = "write it under `prices:`, or give --allow-unpriced to count it as free"
            problems.append(Problem(f"{message} dollars", where, remedy))
    return problems


def folder_problems(
    paths: RunPaths, where: Callable[[str], Where], results_where: Where | None
) -> list[Problem]:
    """Find out whether the run directory could be made.

    Args:
        paths: where it would lie.
        where: gives the place of a field of the request.
        results_where: the place of `results_dir`; None where nobody wrote it.
    """
    try:
        paths.check()
    except ResultsNotWritable as error:
        return moved(error.problems, results_where or where("output"))
    except BadInput as error:
        return moved(error.problems, where("output.run_id"))
    return []


def missing_run(paths: RunPaths, named: str) -> Problem | None:
    """Find out whether the run to take work from is not there at all."""
    folder = paths.namespace_dir
    if not is_path_component(named) or (folder / named).is_dir():
        return None
    from steelyard.results.reuse import SourceUnusable

    return SourceUnusable(named, folder, f"there is no such run in {folder}").problems[0]


def unknown_providers(orchestration: Orchestration) -> list[Problem]:
    """Find limits and paces of providers that are neither known nor used."""
    known = known_ids(Kind.ENVIRONMENT)
    used = {request.environment.id for request in orchestration.requests}
    problems = []
    for field in ("provider_limits", "env_open_qps"):
        for provider in getattr(orchestration.runtime, field):
            if provider in known or provider in used:
                continue
            near = difflib.get_close_matches(provider, known, n=1)
            problems.append(
                Problem(
                    f"unknown environment provider {provider!r}",
                    Where(field=f"runtime.{field}.{provider}"),
                    f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}",
                )
            )
    return problems
