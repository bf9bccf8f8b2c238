"""Components that a script hands over as objects, under ids by which settings can name them.

A class goes by `module:Class`, in a script by `__main__:Class`: the id by which the command line
would import it. An instance goes by the id of its class, with its params beside it, so that records
and identities are those of the class. Both are held here for the launch that they were given to.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from steelyard.components import id_forms
from steelyard.components.clock import Clock, SystemClock
from steelyard.components.contract import check_class
from steelyard.components.known import REGISTRY
from steelyard.components.registry import BUILTINS, Found, Kind
from steelyard.config.errors import BadInput, Problem, Where
from steelyard.config.resolution import Resolution
from steelyard.config.source import FieldPath, Node, path_text
from steelyard.engine.services import EndpointPool, Maker
from steelyard.engine.spec import ComponentSpec
from steelyard.sdk.faults import UnusableArgument

Lent = dict[tuple[Kind, str], Any]
"""Classes and instances, by kind and id."""

_WHAT: Final[Mapping[Kind, str]] = {
    Kind.BENCHMARK: "an id, a pack's folder, {'id': …} with fields, a Benchmark or its class",
    Kind.HARNESS: "an id, {'id': …} with fields, a Harness or its class",
    Kind.ENVIRONMENT: "an id, {'id': …} with fields, an Environment or its class",
}


class Lending:
    """Gathers the objects of one call; answers for their ids as the registry does for its own."""

    def __init__(self) -> None:
        self.lent: Lent = {}
        self._named: set[tuple[Kind, str]] = set()

    def reserve(self, kind: Kind, given: object) -> None:
        """Note an id that is written as text: no object may take it."""
        name = given.get("id") if isinstance(given, Mapping) else given
        if isinstance(name, str):
            self._named.add((kind, name))

    # -- what a caller wrote -------------------------------------------------------------------

    def fields(self, kind: Kind, given: object, path: FieldPath) -> Any:
        """Give a component's section of the settings, `{"id": …, …}`, objects lent.

        Args:
            kind: what it must be.
            given: what the caller wrote.
            path: where, for messages.

        Raises:
            BadInput: it is an object that can be no component of this kind.
        """
        if isinstance(given, Mapping):
            if "id" not in given or isinstance(given["id"], str):
                return given
            return {**self.fields(kind, given["id"], (*path, "id")), **_without_id(given)}
        if isinstance(given, str):
            return {"id": given}
        if isinstance(given, os.PathLike):
            return {"id": _path_id(os.fsdecode(given))}
        where = Where(field=path_text(path))
        if not inspect.isclass(given) and not hasattr(type(given), "api"):
            said = f"a value of type {type(given).__name__} is no {kind.value}"
            raise UnusableArgument(said, where=where, remedy=f"give {_WHAT[kind]}")
        return self._lend(kind, given, where)

    def _lend(self, kind: Kind, given: Any, where: Where) -> dict[str, Any]:
        cls = given if inspect.isclass(given) else type(given)
        name = f"{cls.__module__}:{cls.__qualname__.replace('.<locals>', '')}"
        try:
            check_class(kind.value, name, cls)
        except BadInput as error:
            raise BadInput.of([Problem(p.message, where, p.remedy) for p in error.problems]) from (
                error
            )
        if cls is given:
            return {"id": _known(kind, cls) or self._hold(kind, name, given)}
        return {"id": self._hold(kind, name, given), **_params(given, name, where)}

    def _hold(self, kind: Kind, name: str, given: Any) -> str:
        """Keep an object under an id of its own, the same each time it is given."""
        if inspect.isclass(given) and _is_importable(given):
            self._named.discard((kind, name))  # it is what that text means
        number, free = 1, name
        while (kind, free) in self._named or (
            self.lent.setdefault((kind, free), given) is not given
        ):
            number += 1
            free = f"{name}-{number}"
        return free

    def maker(self, resolution: Resolution, clock: Clock | None = None) -> LendingMaker:
        """Give what makes the components of a resolved orchestration, the lent ones included."""
        clock = clock or SystemClock()
        secrets = resolution.secrets
        pool = EndpointPool(secrets, clock)
        return LendingMaker(secrets, clock, pool, resolution.base_dir, lent=self.lent)

    # -- what settings ask (`ComponentIds`) ----------------------------------------------------

    def is_known(self, kind: str, name: str) -> bool:
        """True where the id is of a lent object, or the registry knows it."""
        return (Kind(kind), name) in self.lent or REGISTRY.is_known(kind, name)

    def fault(self, kind: str, name: str, base_dir: Path | None) -> tuple[str, str] | None:
        """What is wrong with an id; None where it leads somewhere."""
        is_lent = (Kind(kind), name) in self.lent
        return None if is_lent else REGISTRY.fault(kind, name, base_dir)

    def known(self, kind: str) -> Sequence[str]:
        """Every id of a kind."""
        return [*(name for of, name in self.lent if of == kind), *REGISTRY.known(kind)]

    def canonical(self, kind: str, name: str) -> str:
        """Resolve an alias; other ids come back as they are."""
        return name if (Kind(kind), name) in self.lent else REGISTRY.canonical(kind, name)

    def path_fields(
        self, kind: str, name: str, base_dir: Path
    ) -> Mapping[str, Callable[[str], bool]]:
        """Give a component's parameters that are paths; a lent one's are its own affair."""
        is_lent = (Kind(kind), name) in self.lent
        return {} if is_lent else REGISTRY.path_fields(kind, name, base_dir)


@dataclass(frozen=True, slots=True)
class LendingMaker(Maker):
    """Makes components; those that are lent it takes as they are."""

    lent: Lent = field(default_factory=dict)

    def found(self, kind: Kind, name: str) -> Found:
        """Find a lent class, else what the registry finds."""
        held = self.lent.get((kind, name))
        # Not `super()`: a slotted dataclass is another class than the one its methods remember.
        return Maker.found(self, kind, name) if held is None else Found(name, held)

    def component(
        self, kind: Kind, spec: ComponentSpec, written: Node | None = None, *, at: FieldPath = ()
    ) -> Any:
        """Give the lent instance, or make one of the class."""
        held = self.lent.get((kind, spec.id))
        if held is None or inspect.isclass(held):
            return Maker.component(self, kind, spec, written, at=at)
        return held


def _without_id(given: Mapping[Any, Any]) -> dict[Any, Any]:
    return {key: value for key, value in given.items() if key != "id"}


def _path_id(text: str) -> str:
    return text if id_forms.is_path(text) else f"./{text}"


def _known(kind: Kind, cls: type[Any]) -> str | None:
    """Give the id of a built-in; None for others."""
    target = f"{cls.__module__}:{cls.__qualname__}"
    return next((name for name, each in BUILTINS[kind].items() if each.target == target), None)


def _is_importable(cls: type[Any]) -> bool:
    return getattr(sys.modules.get(cls.__module__), cls.__qualname__, None) is cls


def _params(instance: Any, name: str, where: Where) -> dict[str, Any]:
    """Give an instance's parameters as settings: they belong to identities and to `run.json`."""
    from pydantic import BaseModel

    params = getattr(instance, "params", None)
    if not isinstance(params, BaseModel):
        raise UnusableArgument(
            f"{name} has no params, which its base class keeps",
            where=where,
            remedy="call super().__init__(params) in its constructor",
        )
    try:
        dumped: dict[str, Any] = params.model_dump(mode="json")
    except Exception as error:  # a serializer of the user's own may raise anything
        raise UnusableArgument(
            f"the params of {name} are no plain data ({type(error).__name__})",
            where=where,
            remedy="keep such a field out of records with Field(exclude=True)",
        ) from error
    written: dict[str, Any] = _literal(dumped)
    return written


def _literal(data: Any) -> Any:
    """Write data so that settings read it as it is: in an object `${NAME}` is no reference."""
    if isinstance(data, str):
        return data.replace("${", "$${")
    if isinstance(data, dict):
        return {key: _literal(value) for key, value in data.items()}
    return [_literal(value) for value in data] if isinstance(data, list) else data
