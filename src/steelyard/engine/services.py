"""Make the components of a request from its spec, here or in a worker.

The only place where secrets become values: parameters are revealed just before a component is made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from steelyard.components.benchmark import Benchmark
from steelyard.components.clock import Clock
from steelyard.components.environment import Environment
from steelyard.components.harness import Harness
from steelyard.components.registry import Kind, find, is_pack_path
from steelyard.config.errors import BadInput, Problem, Where
from steelyard.config.secrets import SecretStore
from steelyard.engine.spec import ComponentSpec, RequestSpec
from steelyard.engine.work import ModelEndpoint, Services


class EndpointPool:
    """One open endpoint for each distinct set of connection settings, shared by all attempts."""

    def __init__(self, secrets: SecretStore, clock: Clock, seed: int = 0) -> None:
        self._secrets = secrets
        self._clock = clock
        self._seed = seed
        self._open: dict[bytes, Any] = {}

    def get(self, model: Mapping[str, Any], prices: Mapping[str, Any]) -> ModelEndpoint:
        """Give the endpoint for these `ModelSettings` (as JSON), opening it where it is new."""
        import orjson

        from steelyard.models.client import make_endpoint

        key = orjson.dumps([model, prices], option=orjson.OPT_SORT_KEYS)
        if key not in self._open:
            self._open[key] = make_endpoint(
                model, self._secrets, prices=prices, clock=self._clock, seed=self._seed
            )
        return self._open[key]  # type: ignore[no-any-return]  # typed when models land

    async def close(self) -> None:
        """Close every connection."""
        endpoints, self._open = list(self._open.values()), {}
        for endpoint in endpoints:
            await endpoint.close()


@dataclass(frozen=True, slots=True)
class Maker:
    """Makes components; holds what they all need."""

    secrets: SecretStore
    clock: Clock
    endpoints: EndpointPool
    base_dir: Path

    def component(self, kind: Kind, spec: ComponentSpec, where: Where = Where()) -> Any:
        """Make one component.

        Raises:
            BadInput: it is unknown, unusable, or its parameters are not what it takes; each
                problem names its field.
        """
        try:
            found = find(kind, spec.id, base_dir=self.base_dir)
        except BadInput as error:
            raise BadInput.of(
                [Problem(p.message, where, p.remedy) for p in error.problems]
            ) from error
        params = self.secrets.reveal_tree(spec.params)
        if kind is Kind.BENCHMARK and is_pack_path(spec.id):
            params = {"path": str((self.base_dir / spec.id).resolve()), **params}
        model: type[BaseModel] = found.component.Params
        try:
            checked = model.model_validate(params)
        except ValidationError as error:
            raise BadInput.of(_problems(error, spec, model, where)) from error
        component = found.component(checked)
        if not hasattr(component, "id"):
            component.id = found.id
        return component

    def services(self, spec: RequestSpec) -> Services:
        """Make everything that the executions of a request share."""
        benchmark: Benchmark = self.component(Kind.BENCHMARK, spec.benchmark)
        harness: Harness = self.component(Kind.HARNESS, spec.harness)
        environment: Environment = self.component(Kind.ENVIRONMENT, spec.environment)
        endpoint = None if spec.model is None else self.endpoints.get(spec.model, spec.prices)
        return Services(benchmark, harness, environment, endpoint, self.clock)


def _problems(
    error: ValidationError, spec: ComponentSpec, model: type[BaseModel], where: Where
) -> list[Problem]:
    import difflib

    problems = []
    for item in error.errors(include_url=False):
        path = ".".join(str(part) for part in item["loc"])
        field = ".".join(part for part in (where.field, path) if part)
        message, remedy = item["msg"], None
        if item["type"] == "extra_forbidden":
            known = list(model.model_fields)
            near = difflib.get_close_matches(path, known, n=1)
            message = f"{spec.id} has no parameter {path!r}"
            remedy = f"did you mean {near[0]}?" if near else f"known: {', '.join(known) or 'none'}"
        problems.append(
            Problem(message, Where(where.file, where.line, where.column, field), remedy)
        )
    return problems


ServicesFactory = Callable[[RequestSpec], Services]
