"""Make the components of a request from its spec, here or in a worker.

The only place where secrets become values: parameters are revealed just before a component is made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import BaseModel, ValidationError

from steelyard.components.benchmark import Benchmark
from steelyard.components.clock import AgentTimer, Clock
from steelyard.components.contract import own_code
from steelyard.components.environment import Environment
from steelyard.components.harness import Harness
from steelyard.components.model import ModelClient
from steelyard.components.registry import Found, Kind, find, pack_folder
from steelyard.config.errors import BadInput, Problem, Where
from steelyard.config.redaction import Redactor
from steelyard.config.secrets import SecretStore
from steelyard.config.source import FieldPath, Node, Origin
from steelyard.config.validation import problems_of
from steelyard.engine.spec import ComponentSpec, RequestSpec
from steelyard.results.files import NO_FAULTS, Faults

if TYPE_CHECKING:
    from steelyard.engine.gateways import OpenGateway, RequestGateway
    from steelyard.engine.preparing import Preparation
    from steelyard.models.allowance import Allowance
    from steelyard.models.client import Endpoint
    from steelyard.models.lines import Lines


class ModelEndpoint(Protocol):
    """An open endpoint; gives each attempt a client of its own."""

    def client(
        self, timer: AgentTimer, allowance: Allowance | None = None, seed: int | None = None
    ) -> ModelClient:
        """Bind a client to one attempt's timer, to what it may spend, and to its seed."""
        ...


@dataclass(frozen=True, slots=True)
class Storage:
    """What an executor needs to keep an attempt's files in its run."""

    has_secret: Callable[[bytes], bool] | None = None
    """For what is flagged, never rewritten."""
    faults: Faults = NO_FAULTS


@dataclass(frozen=True, slots=True)
class Services:
    """The components of a request, made once and shared by its executions."""

    benchmark: Benchmark
    harness: Harness
    environment: Environment
    endpoint: ModelEndpoint | None
    clock: Clock
    redact: Callable[[str], str] = str
    """For texts that are cut: of half a secret nobody knows any more that it is one."""
    judge_endpoint: Callable[[Mapping[str, Any]], ModelEndpoint] | None = None
    """Gives the endpoint for a scorer's own `ModelSettings`."""
    gateway: RequestGateway | None = None
    """Where programs of the agent's environment call the model."""
    storage: Storage = Storage()
    asks_judges: bool = False
    """True where scoring calls a model of its own."""
    preparation: Preparation | None = None
    """Of the harness; None until the request is carried out."""


class EndpointPool:
    """One endpoint for each distinct model setting, shared by all attempts.

    Endpoints at one address share its connections, its adaptive limit and its rates.
    """

    def __init__(self, secrets: SecretStore, clock: Clock, seed: int = 0) -> None:
        self._secrets = secrets
        self._clock = clock
        self._seed = seed
        self._lines: Lines | None = None
        self._open: dict[bytes, Endpoint] = {}

    def get(self, model: Mapping[str, Any], prices: Mapping[str, Any]) -> Endpoint:
        """Give the endpoint for these `ModelSettings` (as JSON), opening it where it is new."""
        import orjson

        from steelyard.models.client import make_endpoint
        from steelyard.models.lines import Lines
        from steelyard.models.machine_limits import MachineTable

        if self._lines is None:
            self._lines = Lines(machine=MachineTable.opened(self._clock))
        key = orjson.dumps([model, prices], option=orjson.OPT_SORT_KEYS)
        if key not in self._open:
            self._open[key] = make_endpoint(
                model,
                self._secrets,
                prices=prices,
                clock=self._clock,
                seed=self._seed,
                lines=self._lines,
            )
        return self._open[key]

    async def close(self) -> None:
        """Close every connection."""
        endpoints, self._open = list(self._open.values()), {}
        for endpoint in endpoints:
            await endpoint.close()
        lines, self._lines = self._lines, None
        if lines is not None and lines.machine is not None:
            lines.machine.close()


@dataclass(frozen=True, slots=True)
class Maker:
    """Makes components; holds what they all need."""

    secrets: SecretStore
    clock: Clock
    endpoints: EndpointPool
    base_dir: Path
    _benchmarks: dict[bytes, Benchmark] = field(default_factory=dict)
    """The first of each kind and parameters: the others may share what it has read."""
    _found: dict[tuple[Kind, str], Found] = field(default_factory=dict)

    def found(self, kind: Kind, name: str) -> Found:
        """Find the class that an id names; where else to look is a subclass's to say.

        Raises:
            BadInput: as `registry.find`.
        """
        return find(kind, name, base_dir=self.base_dir)

    def component(
        self, kind: Kind, spec: ComponentSpec, written: Node | None = None, *, at: FieldPath = ()
    ) -> Any:
        """Make one component.

        Args:
            kind: what it is.
            spec: its id and parameters.
            written: the settings' tree with its positions, for errors.
            at: where in that tree the component stands.

        Raises:
            BadInput: it is unknown, unusable, or its parameters are not what it takes; each
                problem names its field.
        """
        root = written or Node({}, Origin("", Where()))
        try:
            found = self._found.get((kind, spec.id)) or self.found(kind, spec.id)
        except BadInput as error:
            where = root.nearest((*at, "id")).origin.where
            raise BadInput.of(
                [
                    # Without settings a component's own file, if any, is the only place there is.
                    Problem(p.message, p.where if written is None else where, p.remedy)
                    for p in error.problems
                ]
            ) from error
        self._found[kind, spec.id] = found
        params = self.secrets.reveal_tree(spec.params)
        folder = pack_folder(spec.id, self.base_dir) if kind is Kind.BENCHMARK else None
        if folder is not None:
            params = {"path": str(folder), **params}
        model: type[BaseModel] = found.component.Params
        try:
            checked = model.model_validate(params, context={"base_dir": self.base_dir})
        except ValidationError as error:
            raise BadInput.of(problems_of(error.errors(), root, model, prefix=at)) from error
        what = f"the {kind.value} {spec.id!r}: its constructor"
        made = own_code(what, found.component, lambda: found.component(checked))
        return self._shared(made, spec) if kind is Kind.BENCHMARK else made

    def _shared(self, made: Benchmark, spec: ComponentSpec) -> Benchmark:
        """Let a benchmark share what the first one of its kind and parameters has read."""
        import orjson

        params = orjson.dumps(spec.params, option=orjson.OPT_SORT_KEYS, default=repr)
        first = self._benchmarks.setdefault(f"{spec.id}\0".encode() + params, made)
        if first is not made:
            what = f"the benchmark {spec.id!r}: share()"
            own_code(what, made, lambda: made.share(first))
        return made

    def services(self, spec: RequestSpec) -> Services:
        """Make everything that the executions of a request share."""
        benchmark: Benchmark = self.component(Kind.BENCHMARK, spec.benchmark)
        benchmark.data_dir = Path(spec.data_dir) if spec.data_dir else None
        harness: Harness = self.component(Kind.HARNESS, spec.harness)
        harness.data_dir = Path(spec.data_dir) if spec.data_dir else None
        environment: Environment = self.component(Kind.ENVIRONMENT, spec.environment)
        redactor = Redactor(self.secrets)
        storage = Storage(redactor.contains_secret)
        made = Services(
            benchmark, harness, environment, None, self.clock, redactor.text, storage=storage
        )
        return self.completed(spec, made)

    def completed(self, spec: RequestSpec, services: Services) -> Services:
        """Add to the components of a request the ways to its models, as far as they are missing."""
        endpoint, gateway = services.endpoint, services.gateway
        if spec.model is not None:
            opened = self.endpoints.get(spec.model, spec.prices)
            endpoint = endpoint or opened
            if gateway is None and services.harness.traits.uses_gateway:
                from steelyard.engine.gateways import RequestGateway  # a dry run needs no loop

                gateway = RequestGateway(partial(self._start_gateway, opened), self.secrets)
        judges = services.judge_endpoint or (
            lambda settings: self.endpoints.get(settings, spec.prices)
        )
        return replace(
            services,
            endpoint=endpoint,
            gateway=gateway,
            judge_endpoint=judges,
            asks_judges=_asks_judges(services.benchmark),
            preparation=services.preparation or _preparation(services.harness),
        )

    async def _start_gateway(self, endpoint: Endpoint) -> OpenGateway:
        from steelyard.models.gateway import Gateway

        return await Gateway.start(endpoint, redact=Redactor(self.secrets).raw)


def _preparation(harness: Harness) -> Preparation:
    from steelyard.engine.preparing import Preparation  # a dry run needs no asyncio

    return Preparation(harness)


def _asks_judges(benchmark: Benchmark) -> bool:
    """What is wrong with a judge is said when planning, not here."""
    try:
        return bool(benchmark.scoring_models())
    except BadInput:
        return True
