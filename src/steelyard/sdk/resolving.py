"""From what a caller wrote to a resolved orchestration, by the very code of the command line."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from steelyard.components.registry import Kind
from steelyard.config.data_source import read_data
from steelyard.config.errors import BadInput, Problem, Where
from steelyard.config.layers import COMMAND_LINE, ORCHESTRATION, Override
from steelyard.config.names import joined
from steelyard.config.resolve import (
    InvalidSettings,
    Resolution,
    resolve_orchestration,
    resolve_run,
)
from steelyard.config.source import FieldPath, Node
from steelyard.sdk.builders import Model, Orchestration, Request, shown_id
from steelyard.sdk.faults import UnusableArgument
from steelyard.sdk.lending import Lending
from steelyard.sdk.options import overrides_of

_KINDS: Final = (Kind.BENCHMARK, Kind.HARNESS, Kind.ENVIRONMENT)


@dataclass(frozen=True, slots=True)
class Asked:
    """A resolved orchestration and the objects that it names."""

    resolution: Resolution
    lending: Lending


def resolved_run(
    benchmark: object, harness: object, model: object, options: Mapping[str, Any]
) -> Asked:
    """Resolve the one request of `run`. Blocking.

    Raises:
        BadInput: everything that is wrong with arguments, files and variables.
    """
    lending = Lending()
    ids: dict[str, str] = {}
    overrides: list[Override] = []
    given = {"benchmark": benchmark, "harness": harness, "model": model}
    for name, what in given.items():
        if name == "model":
            fields = _model_fields(what, (name,))
        else:
            fields = lending.fields(Kind(name), what, (name,))
        ids[name] = _id_of(fields, name)
        overrides.append(Override((name, "id"), ids[name], name))  # named as the argument is
        overrides += _section(name, {k: v for k, v in fields.items() if k != "id"})
    environment = options.get("environment")
    if environment is not None:
        path: FieldPath = ("environment",)
        overrides += _section("environment", lending.fields(Kind.ENVIRONMENT, environment, path))
    overrides += overrides_of(options)
    resolution = _whole(
        lambda: resolve_run(
            ids["benchmark"],
            ids["harness"],
            ids["model"],
            config_files=_config_files(options),
            overrides=overrides,
            components=lending,
            finds_files=options.get("use_config_files", True),
        ),
        lending,
    )
    return Asked(resolution, lending)


def resolved_launch(source: object, options: Mapping[str, Any]) -> Asked:
    """Resolve a path, a mapping, an `Orchestration` or a `Request`. Blocking.

    Raises:
        BadInput: everything that is wrong with it, with arguments, files and variables.
    """
    lending = Lending()
    read = _source(source, lending)
    resolution = _whole(
        lambda: resolve_orchestration(
            read,
            config_files=_config_files(options),
            overrides=overrides_of(options),
            components=lending,
            finds_files=options.get("use_config_files", True),
        ),
        lending,
    )
    return Asked(resolution, lending)


def _whole(resolve: Callable[[], Resolution], lending: Lending) -> Resolution:
    """Resolve settings; where they are wrong, say in the same error what a plan finds wrong."""
    try:
        return resolve()
    except InvalidSettings as error:
        from steelyard.engine.every_problem import with_plan_problems

        found = with_plan_problems(error, lending.maker)
    # Outside of the handler: a traceback that shows the first error too says everything twice. And
    # by the name that callers know.
    raise BadInput.of(found.problems)


def _source(source: object, lending: Lending) -> Path | Node:
    if isinstance(source, str | os.PathLike):
        return Path(os.fsdecode(source))
    if isinstance(source, Request):
        source = Orchestration([source])
    if isinstance(source, Orchestration):
        names = ("name", "task_concurrency", "defaults", "runtime", "budget", "prices", "requests")
        found = {name: getattr(source, name) for name in names}
        source = {name: value for name, value in found.items() if value is not None}
    if not isinstance(source, Mapping):
        raise UnusableArgument(
            f"a value of type {type(source).__name__} is no orchestration",
            where=Where(field="source"),
            remedy="give a file's path, a mapping, an Orchestration or a Request",
        )
    document = dict(source)
    requests = document.get("requests")
    if isinstance(requests, Sequence) and not isinstance(requests, str | bytes):
        for kind in _KINDS:
            for request in requests:
                lending.reserve(kind, _part(request, kind.value))
        document["requests"] = [
            _request(request, ("requests", index), lending)
            for index, request in enumerate(requests)
        ]
    return read_data(document, layer=ORCHESTRATION)


def _part(request: object, name: str) -> object:
    return request.get(name) if isinstance(request, Mapping) else getattr(request, name, None)


def _request(request: object, path: FieldPath, lending: Lending) -> object:
    """Give a request as plain data, its objects lent; what is none is the schema's to judge."""
    if isinstance(request, Request):
        request = _written(request)
    if not isinstance(request, Mapping):
        return request
    fields = dict(request)
    for kind in _KINDS:
        if fields.get(kind.value) is not None:
            fields[kind.value] = lending.fields(kind, fields[kind.value], (*path, kind.value))
    if isinstance(fields.get("model"), Model | str):
        fields["model"] = _model_fields(fields["model"], (*path, "model"))
    return fields


def _written(request: Request) -> dict[str, Any]:
    parts = ("benchmark", "harness", "environment", "execution", "runtime", "output", "budget")
    found = {name: getattr(request, name) for name in parts}
    fields = {name: value for name, value in found.items() if value is not None}
    fields["model"] = "none" if request.model is None else request.model
    ids = (request.model, request.benchmark, request.harness)
    fields["name"] = request.name if request.name is not None else joined(*map(shown_id, ids))
    if request.k is not None:
        execution = fields.get("execution", {})
        attempts = execution.get("attempts", {}) if isinstance(execution, Mapping) else {}
        if isinstance(execution, Mapping) and isinstance(attempts, Mapping):
            fields["execution"] = {**execution, "attempts": {**attempts, "k": request.k}}
    return fields


def _model_fields(model: object, path: FieldPath) -> Mapping[str, Any]:
    if model is None:
        return {"id": "none"}
    if isinstance(model, str):
        return {"id": model}
    if isinstance(model, Model):
        return model.as_settings()
    if isinstance(model, Mapping):
        return model
    raise UnusableArgument(
        f"a value of type {type(model).__name__} is no model",
        where=Where(field=".".join(map(str, path))),
        remedy="give an id, a Model, or {'id': …} with fields; None where none is called",
    )


def _id_of(fields: Mapping[str, Any], name: str) -> str:
    found = fields.get("id")
    if isinstance(found, str):
        return found
    said = "there is no id" if found is None else f"found a value of type {type(found).__name__}"
    raise UnusableArgument(
        said, where=Where(field=f"{name}.id"), remedy=f"write {{'id': …}}, or name the {name}"
    )


def _section(name: str, fields: Mapping[str, Any]) -> list[Override]:
    node = read_data(fields, layer=COMMAND_LINE, prefix=(name,))
    return [Override((name,), None, name, node=node)] if node.value else []


def _config_files(options: Mapping[str, Any]) -> list[Path]:
    given = options.get("config")
    if given is None:
        return []
    files = [given] if isinstance(given, str | os.PathLike) else given
    if not isinstance(files, Sequence) or not all(
        isinstance(each, str | os.PathLike) for each in files
    ):
        raise UnusableArgument.of(
            [
                Problem(
                    f"found a value of type {type(given).__name__}",
                    Where(field="config"),
                    "give the path of a configuration file, or a list of paths",
                )
            ]
        )
    return [Path(os.fsdecode(each)) for each in files]
