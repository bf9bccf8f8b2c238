"""Find components by id, without importing those that are not used.

Built-ins stand in a table of strings; installed packages add ids through entry points; a user may
name `package.module:Class` or `./path/file.py:Class`. Only a user's own configuration reaches
this module: a pack or a candidate's tree never names a class.
"""

from __future__ import annotations

import difflib
import hashlib
import importlib
import importlib.util
import inspect
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, Final

from steelyard.config.errors import BadInput

SUPPORTED_API: Final = 1


class Kind(StrEnum):
    """The kinds of component; the value is the name that commands use."""

    BENCHMARK = "benchmark"
    HARNESS = "harness"
    ENVIRONMENT = "environment"
    ANALYZER = "analyzer"
    SCANNER = "scanner"

    @property
    def group(self) -> str:
        """The entry-point group that adds ids of this kind."""
        plural = {"harness": "harnesses"}.get(self.value, f"{self.value}s")
        return f"steelyard.{plural}"


@dataclass(frozen=True, slots=True)
class Entry:
    """A built-in: where it lives and what it is, as strings."""

    target: str
    """`module:Class`, imported when used."""
    summary: str
    aliases: tuple[str, ...] = ()
    extra: str | None = None
    """The optional dependency group it needs."""


BUILTINS: Final[Mapping[Kind, Mapping[str, Entry]]] = MappingProxyType(
    {
        Kind.BENCHMARK: {
            "humaneval": Entry(
                "steelyard.benchmarks.humaneval:HumanEval",
                "164 Python functions to complete, scored by running their tests",
                extra="humaneval",
            ),
        },
        Kind.HARNESS: {
            "chat": Entry(
                "steelyard.harnesses.chat:Chat",
                "one model call, the task's text as it is",
                aliases=("openai_chat",),
            ),
            "oracle": Entry("steelyard.harnesses.oracle:Oracle", "plays each task's reference"),
            "nop": Entry("steelyard.harnesses.nop:Nop", "does nothing; the floor"),
        },
        Kind.ENVIRONMENT: {
            "host_process": Entry(
                "steelyard.environments.host_process:HostProcess",
                "programs on this machine, held by nothing",
            ),
            "sandbox": Entry(
                "steelyard.environments.sandbox:Sandbox",
                "bubblewrap: no network, read-only system, limits, no daemon",
            ),
        },
        Kind.ANALYZER: {},
        Kind.SCANNER: {},
    }
)

PACK_TARGET: Final = "steelyard.benchmarks.pack:PackBenchmark"
"""Serves every benchmark id that is a path to a folder."""

_CLASS_PATH = re.compile(r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*$")
_FILE_PATH = re.compile(r"^(\.{1,2}/|/).*\.py:[A-Za-z_]\w*$", re.DOTALL)


class UnknownComponent(BadInput):
    """An id that nothing answers to."""

    def __init__(self, kind: Kind, name: str, known: Sequence[str]) -> None:
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
        remedy = f"did you mean {near[0]}?" if near else f"known: {', '.join(known) or 'none'}"
        super().__init__(
            f"unknown {kind.value} {name!r}",
            remedy=f"{remedy} (`steelyard list {kind.value}` shows them)",
        )


class UnusableComponent(BadInput):
    """A component that was found but breaks the contract, or cannot be imported."""


@dataclass(frozen=True, slots=True)
class Listing:
    """A known component, for `list`; nothing of it has been imported."""

    id: str
    summary: str
    origin: str
    """`built-in`, or the distribution that brings it."""
    aliases: tuple[str, ...] = ()
    extra: str | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """A component's class, with the id that records and identities use."""

    id: str
    """Aliases resolved."""
    component: type[Any]


def _plugins(kind: Kind) -> list[EntryPoint]:
    return sorted(entry_points(group=kind.group), key=lambda point: point.name)


def _origin(point: EntryPoint) -> str:
    return point.dist.name if point.dist else "an installed package"


def list_components(kind: Kind) -> list[Listing]:
    """List the known components of a kind, built-ins first; imports none of them."""
    listings = [
        Listing(name, entry.summary, "built-in", entry.aliases, entry.extra)
        for name, entry in BUILTINS[kind].items()
    ]
    listings += [Listing(point.name, point.value, _origin(point)) for point in _plugins(kind)]
    return listings


def canonical_id(kind: Kind, name: str) -> str:
    """Resolve an alias of a built-in; other ids come back as they are."""
    for known, entry in BUILTINS[kind].items():
        if name in entry.aliases:
            return known
    return name


def is_pack_path(name: str) -> bool:
    """True where a benchmark id is a path to a folder, not a name or a class."""
    return name.startswith(("./", "../", "/")) and not _FILE_PATH.match(name)


def is_known(kind: Kind, name: str) -> bool:
    """True where the id is in the tables or has the form of a path; imports nothing."""
    if kind is Kind.BENCHMARK and is_pack_path(name):
        return True
    if _CLASS_PATH.match(name) or _FILE_PATH.match(name):
        return True
    return canonical_id(kind, name) in known_ids(kind)


def known_ids(kind: Kind) -> list[str]:
    """Every id and alias, for messages and checks; imports nothing."""
    ids = [*BUILTINS[kind], *(point.name for point in _plugins(kind))]
    return ids + [alias for entry in BUILTINS[kind].values() for alias in entry.aliases]


def find(kind: Kind, name: str, *, base_dir: Path | None = None) -> Found:
    """Import the component that an id names.

    Args:
        kind: what it must be.
        name: an id, an alias, `package.module:Class`, `./file.py:Class`, or for a benchmark
            the path of a pack's folder.
        base_dir: what relative paths start from; the working directory by default.

    Raises:
        UnknownComponent: nothing has that id.
        UnusableComponent: it cannot be imported, is not of that kind, declares another `api`, or
            a plug-in takes the id of a built-in.
    """
    name = canonical_id(kind, name)
    if kind is Kind.BENCHMARK and is_pack_path(name):
        return Found(name, _load_class(PACK_TARGET, kind, name))
    if _FILE_PATH.match(name):
        return Found(name, _checked(kind, name, _from_file(kind, name, base_dir or Path.cwd())))
    if _CLASS_PATH.match(name):
        return Found(name, _load_class(name, kind, name))
    points = [point for point in _plugins(kind) if point.name == name]
    if name in BUILTINS[kind]:
        if points:
            raise UnusableComponent(
                f"{_origin(points[0])} declares the {kind.value} {name!r}, which is built in",
                remedy="rename the plug-in's entry point, or uninstall the package",
            )
        return Found(name, _load_class(BUILTINS[kind][name].target, kind, name))
    if len(points) > 1:
        raise UnusableComponent(
            f"the {kind.value} {name!r} is declared by {' and '.join(map(_origin, points))}",
            remedy="uninstall one of them",
        )
    if points:
        return Found(name, _load_class(points[0].value, kind, name))
    raise UnknownComponent(kind, name, known_ids(kind))


def _load_class(target: str, kind: Kind, name: str) -> type[Any]:
    module_name, _, class_name = target.partition(":")
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        raise UnusableComponent(
            f"the {kind.value} {name!r} cannot be imported: {type(error).__name__}: {error}",
            remedy=f"see what `python -c 'import {module_name}'` says",
        ) from error
    return _checked(kind, name, _attribute(module, class_name, kind, name))


def _from_file(kind: Kind, name: str, base_dir: Path) -> object:
    path_text, _, class_name = name.rpartition(":")
    path = (base_dir / path_text).resolve()
    if not path.is_file():
        raise UnusableComponent(
            f"the {kind.value} {name!r}: there is no file {path}",
            remedy=f"paths are relative to {base_dir}",
        )
    module_name = f"steelyard_user_{hashlib.sha256(str(path).encode()).hexdigest()[:16]}"
    module = sys.modules.get(module_name)
    if module is None:
        spec = importlib.util.spec_from_file_location(module_name, path)
        if spec is None or spec.loader is None:
            raise UnusableComponent(f"the {kind.value} {name!r}: {path} is not a Python file")
        module = importlib.util.module_from_spec(spec)
        sys.modules[module_name] = module
        try:
            spec.loader.exec_module(module)
        except Exception as error:
            del sys.modules[module_name]
            raise UnusableComponent(
                f"the {kind.value} {name!r} cannot be imported: {type(error).__name__}: {error}",
                remedy=f"see what `python {path}` says",
            ) from error
    return _attribute(module, class_name, kind, name)


def _attribute(module: ModuleType, class_name: str, kind: Kind, name: str) -> object:
    if not hasattr(module, class_name):
        classes = [n for n, v in vars(module).items() if inspect.isclass(v)]
        near = difflib.get_close_matches(class_name, classes, n=1)
        raise UnusableComponent(
            f"the {kind.value} {name!r}: {module.__name__} has no {class_name}",
            remedy=f"did you mean {near[0]}?" if near else None,
        )
    return getattr(module, class_name)


def _contract(kind: Kind) -> type[Any] | None:
    if kind is Kind.BENCHMARK:
        from steelyard.components.benchmark import Benchmark

        return Benchmark
    if kind is Kind.HARNESS:
        from steelyard.components.harness import Harness

        return Harness
    if kind is Kind.ENVIRONMENT:
        from steelyard.components.environment import Environment

        return Environment
    return None


def _checked(kind: Kind, name: str, found: object) -> type[Any]:
    contract = _contract(kind)
    if not inspect.isclass(found) or (contract is not None and not issubclass(found, contract)):
        raise UnusableComponent(
            f"the {kind.value} {name!r} is not a {kind.value}",
            remedy=f"subclass steelyard.components.{kind.value}.{kind.value.title()}",
        )
    api = getattr(found, "api", None)
    if api != SUPPORTED_API:
        raise UnusableComponent(
            f"the {kind.value} {name!r} declares api = {api!r}; this version supports "
            f"{SUPPORTED_API}",
            remedy="install a version of the plug-in made for this product, or set `api = 1`",
        )
    if inspect.isabstract(found):
        missing = ", ".join(sorted(getattr(found, "__abstractmethods__", ())))
        raise UnusableComponent(
            f"the {kind.value} {name!r} leaves out {missing}", remedy="implement them"
        )
    return found
