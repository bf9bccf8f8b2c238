"""What planning finds wrong without making anything; each problem with its place."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from dataclasses import replace

from steelyard.components.registry import Kind, known_ids
from steelyard.config.errors import BadInput, Problem, Where
from steelyard.config.schema.orchestration import Orchestration
from steelyard.config.schema.request import ModelSettings
from steelyard.config.secrets import SecretStore, sealed_json
from steelyard.results.layout import ResultsNotWritable, RunPaths


def placed(problems: Iterable[Problem], where: Where) -> list[Problem]:
    """Give problems that name no place the one of what they are about."""
    return [p if p.where.file or p.where.field else replace(p, where=where) for p in problems]


def moved(problems: Iterable[Problem], where: Where) -> list[Problem]:
    """Give problems another place: that of the setting that led to them."""
    return [replace(p, where=where) for p in problems]


def endpoint_problems(
    model: ModelSettings, secrets: SecretStore, where: Callable[[str], Where]
) -> list[Problem]:
    """Find what of a model's settings cannot be sent; a run would see it before its first call."""
    from steelyard.models.settings import parse_settings

    try:
        parse_settings(sealed_json(model.model_dump(mode="python")), secrets)
    except BadInput as error:
        return [replace(p, where=where(p.where.field or "model")) for p in error.problems]
    return []


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
