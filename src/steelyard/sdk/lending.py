"""Components that a script hands over as objects, under ids by which settings can name them.

A class that can be imported by its name needs no lending: it goes by `module:Class`, in a script
`__main__:Class`. Others (of a function, of a notebook's cell that was run again) and instances are
held here, for the launch that they were given to.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from steelyard.components import id_forms
from steelyard.components.contract import check_class
from steelyard.components.known import REGISTRY
from steelyard.components.registry import BUILTINS, Found, Kind
from steelyard.config.errors import BadInput, Problem, Where
from steelyard.config.source import FieldPath, Node, path_text
from steelyard.engine.services import Maker
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
        name = f"{cls.__module__}:{cls.__qualname__}"
        try:
            check_class(kind.value, name, cls)
        except BadInput as error:
            raise BadInput.of([Problem(p.message, where, p.remedy) for p in error.problems]) from (
                error
            )
        if cls is given:
            known = _importable(kind, cls)
            return {"id": known or self._hold(kind, name, given)}
        return {"id": self._hold(kind, name, given), **_params(given, name, where)}

    def _hold(self, kind: Kind, name: str, given: Any) -> str:
        """Keep an object under an id of its own, the same each time it is given."""
        number, free = 1, name
        while self.lent.setdefault((kind, free), given) is not given:
            number += 1
            free = f"{name}-{number}"
        return free

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


def _importable(kind: Kind, cls: type[Any]) -> str | None:
    """Give the id by which the engine finds a class again; None where it would not."""
    module, name = cls.__module__, cls.__qualname__
    target = f"{module}:{name}"
    for known, entry in BUILTINS[kind].items():
        if entry.target == target:
            return known
    is_there = getattr(sys.modules.get(module), name, None) is cls
    return target if is_there and id_forms.is_module_class(target) else None


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
    return dumped
