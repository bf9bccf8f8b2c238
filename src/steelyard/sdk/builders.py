"""Settings as values: `Model`, `Request` and `Orchestration`, in place of mappings.

They hold what an orchestration file holds and check nothing themselves: the same schema judges
both. Their `repr` shows ids only: a key may stand anywhere in what they hold.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from steelyard.components.benchmark import Benchmark
    from steelyard.components.environment import Environment
    from steelyard.components.harness import Harness

Settings: TypeAlias = Mapping[str, Any]
"""A section as in a file: plain data, with `${NAME}` for what a variable holds."""
BenchmarkLike: TypeAlias = "str | os.PathLike[str] | Settings | Benchmark | type[Benchmark]"
"""An id, a pack's folder, `{"id": …}` with fields, a class, or an instance."""
HarnessLike: TypeAlias = "str | Settings | Harness | type[Harness]"
"""An id, `{"id": …}` with fields, a class, or an instance."""
EnvironmentLike: TypeAlias = "str | Settings | Environment | type[Environment]"
"""An id, `{"id": …}` with fields, a class, or an instance."""


def _given(value: Any) -> dict[str, Any]:
    """The fields of a builder that were given."""
    found = {each.name: getattr(value, each.name) for each in fields(value)}
    return {name: one for name, one in found.items() if one is not None}


@dataclass(frozen=True, slots=True, repr=False)
class Model:
    """A model and how it is reached; None leaves a field to the layers below."""

    id: str
    """What is sent to the endpoint; `none` where no model is called."""
    base_url: str | None = None
    api_key: Any = None
    """Best as `"${NAME}"`: read from that variable, it stands in no code. Or a `SecretStr`."""
    api_protocol: Literal["openai-chat", "openai-responses", "anthropic"] | None = None
    params: Settings | None = None
    """Options of generation, forwarded as they are."""
    extra_headers: Mapping[str, Any] | None = None
    """Of every call; all are secret."""
    max_request_retries: int | None = None
    max_connections: int | None = None
    rpm: float | None = None
    """Calls a minute."""
    tpm: float | None = None
    """Tokens a minute."""
    request_timeout_seconds: float | None = None
    max_response_bytes: int | None = None
    provider_tools: bool | None = None
    """Agents behind the gateway may use what the provider runs itself: web search, MCP, URLs."""

    def as_settings(self) -> dict[str, Any]:
        """Give the section `model` of a file. Holds the key as it was given."""
        return _given(self)

    def __repr__(self) -> str:
        return f"Model({self.id!r})"


ModelLike: TypeAlias = "str | Model | Settings | None"
"""An id, a `Model`, `{"id": …}` with fields, or None for a harness that calls none."""


@dataclass(frozen=True, slots=True, repr=False)
class Request:
    """One evaluation request: the sections of `requests[]` in an orchestration file."""

    benchmark: BenchmarkLike
    harness: HarnessLike
    model: ModelLike = None
    environment: EnvironmentLike | None = None
    name: str | None = field(default=None, kw_only=True)
    """None: `<model>_<benchmark>_<harness>`."""
    k: int | None = field(default=None, kw_only=True)
    """Short for `execution={"attempts": {"k": …}}`."""
    execution: Settings | None = field(default=None, kw_only=True)
    runtime: Settings | None = field(default=None, kw_only=True)
    output: Settings | None = field(default=None, kw_only=True)
    budget: Settings | None = field(default=None, kw_only=True)

    def __repr__(self) -> str:
        parts = (self.benchmark, self.harness, self.model)
        name = "" if self.name is None else f"{self.name!r}: "
        return f"<Request {name}{' × '.join(map(shown_id, parts))}>"


@dataclass(frozen=True, slots=True, repr=False)
class Orchestration:
    """Requests in order over one pool: what an orchestration file holds."""

    requests: Sequence[Request | Settings]
    name: str | None = field(default=None, kw_only=True)
    task_concurrency: int | None = field(default=None, kw_only=True)
    defaults: Settings | None = field(default=None, kw_only=True)
    """What every request inherits; components by id here, not as objects."""
    runtime: Settings | None = field(default=None, kw_only=True)
    budget: Settings | None = field(default=None, kw_only=True)
    prices: Settings | None = field(default=None, kw_only=True)

    def __repr__(self) -> str:
        name = "" if self.name is None else f"{self.name!r}, "
        return (
            f"<Orchestration {name}{len(self.requests)} request{'s' * (len(self.requests) != 1)}>"
        )


def shown_id(part: object) -> str:
    """Give how a component or a model is named in a `repr`: by its id, never by its fields."""
    if part is None:
        return "none"
    if isinstance(part, str | os.PathLike):
        return os.fsdecode(part)
    if isinstance(part, Model):
        return part.id
    if isinstance(part, Mapping):
        found = part.get("id")
        return shown_id(found) if found is not None else "?"
    return part.__name__ if isinstance(part, type) else type(part).__name__
