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
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, Final

from steelyard.components import id_forms
from steelyard.components.catalog import CATALOG, catalog_pack
from steelyard.components.contract import UnusableComponent as UnusableComponent
from steelyard.components.contract import check_class, said, where_raised
from steelyard.components.id_forms import IdFault
from steelyard.config.errors import BadInput


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


PACK_TARGET: Final = "steelyard.benchmarks.pack:PackBenchmark"
"""Serves every benchmark id that is a path to a folder, or the name of a catalog pack."""

BUILTINS: Final[Mapping[Kind, Mapping[str, Entry]]] = MappingProxyType(
    {
        Kind.BENCHMARK: {
            "humaneval": Entry(
                "steelyard.benchmarks.humaneval:HumanEval",
                "164 Python functions to complete, scored by running their tests",
                extra="humaneval",
            ),
            **{name: Entry(PACK_TARGET, summary) for name, summary in CATALOG.items()},
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


class UnknownComponent(BadInput):
    """An id that nothing answers to."""


@dataclass(frozen=True, slots=True)
class Listing:
    """A known component, for `list`; nothing of it has been imported."""

    id: str
    summary: str
    origin: str
    """`built-in`, or the distribution that brings it."""
    aliases: tuple[str, ...] = ()
    extra: str | None = None
    problem: str | None = None
    """Why a use of the id is refused: something else has it too."""


@dataclass(frozen=True, slots=True)
class Found:
    """A component's class, with the id that records and identities use."""

    id: str
    """Aliases resolved."""
    component: type[Any]


@cache
def _plugins(kind: Kind) -> list[EntryPoint]:
    """Once a kind: reading every distribution's metadata takes 10 ms."""
    return sorted(entry_points(group=kind.group), key=lambda point: point.name)


def _origin(point: EntryPoint) -> str:
    return point.dist.name if point.dist else "an installed package"


def list_components(kind: Kind) -> list[Listing]:
    """List the known components of a kind, built-ins first; imports none of them."""
    points = _plugins(kind)
    built_in = [
        Listing(
            name,
            entry.summary,
            "built-in",
            entry.aliases,
            entry.extra,
            _clash([_origin(point) for point in points if point.name == name]),
        )
        for name, entry in BUILTINS[kind].items()
    ]
    return built_in + [
        Listing(
            point.name,
            point.value,
            _origin(point),
            problem=_clash(
                ["steelyard"] * (point.name in BUILTINS[kind])
                + [_origin(one) for one in points if one.name == point.name and one is not point]
            ),
        )
        for point in points
    ]


def _clash(others: list[str]) -> str | None:
    """Say why `find` refuses an id; None where nobody else declares it."""
    return f"refused: also declared by {' and '.join(others)}" if others else None


def canonical_id(kind: Kind, name: str) -> str:
    """Resolve an alias of a built-in; other ids come back as they are."""
    for known, entry in BUILTINS[kind].items():
        if name in entry.aliases:
            return known
    return name


def is_pack_path(name: str) -> bool:
    """True where a benchmark id is a path to a folder, not a name or a class."""
    return id_forms.is_path(name) and not id_forms.is_file_class(name)


def pack_folder(name: str, base_dir: Path) -> Path | None:
    """Give the folder of a benchmark id that is a pack, in the catalog or at a path.

    Args:
        name: the id as written.
        base_dir: what relative paths start from.

    Returns:
        An absolute path, which need not exist; None where the id is no pack.
    """
    return (base_dir / name).resolve() if is_pack_path(name) else catalog_pack(name)


def is_known(kind: Kind, name: str) -> bool:
    """True where the id is in the tables or has the form of a path; imports nothing."""
    if kind is Kind.BENCHMARK and is_pack_path(name):
        return True
    if id_forms.is_module_class(name) or id_forms.is_file_class(name):
        return True
    return canonical_id(kind, name) in known_ids(kind)


def id_fault(kind: Kind, name: str, base_dir: Path | None) -> IdFault | None:
    """Say what is wrong with an id, as far as can be told without an import.

    Args:
        kind: what it must be.
        name: the id as written.
        base_dir: what relative paths start from; None: files are not looked at.

    Returns:
        None where it leads somewhere.
    """
    if is_known(kind, name):
        if base_dir is None:
            return None
        if kind is Kind.BENCHMARK and is_pack_path(name):
            return id_forms.missing_pack(name, base_dir)
        is_file = id_forms.is_file_class(name)
        return id_forms.missing_file(kind.value, name, base_dir) if is_file else None
    meant = id_forms.meant(kind.value, name, base_dir) if base_dir is not None else None
    known = known_ids(kind)
    near = meant or next(iter(difflib.get_close_matches(name.lower(), known, n=1)), None)
    remedy = f"did you mean {near}? " if near else ""
    if meant is None:
        shown = f"(`steelyard list {kind.value}` shows them)"
        remedy += f"known: {', '.join(known) or 'none'} {shown}"
    return IdFault(f"unknown {kind.value} {name!r}", remedy.strip())


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
    if id_forms.is_file_class(name):
        return Found(
            name, check_class(kind.value, name, _from_file(kind, name, base_dir or Path.cwd()))
        )
    if id_forms.is_module_class(name):
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
    fault = id_fault(kind, name, base_dir or Path.cwd())
    message = fault.message if fault is not None else f"unknown {kind.value} {name!r}"
    raise UnknownComponent(message, remedy=fault.remedy if fault is not None else None)


def _load_class(target: str, kind: Kind, name: str) -> type[Any]:
    module_name, _, class_name = target.partition(":")
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:
        remedy = f"see what `python -c 'import {module_name}'` says"
        if isinstance(error, ModuleNotFoundError):
            remedy = _near_module(module_name, class_name) or remedy
        raise _not_imported(kind, name, error, remedy) from error
    found = _attribute(module, class_name, kind, name, module_name)
    return check_class(kind.value, name, found)


def _not_imported(
    kind: Kind, name: str, error: BaseException, remedy: str, file: str | None = None
) -> UnusableComponent:
    # The import machinery's own frames say nothing; the file's do.
    place = where_raised(error, file) if file or isinstance(error, SyntaxError) else None
    return UnusableComponent(
        f"the {kind.value} {name!r} cannot be imported: {said(error)}"
        f"{f' ({place})' if place else ''}",
        remedy=remedy,
    )


def _near_module(module_name: str, class_name: str) -> str | None:
    """A module that is a file here needs its path: the working folder is not searched."""
    path = Path(*module_name.split(".")).with_suffix(".py")
    return f"did you mean ./{path}:{class_name}?" if path.is_file() else None


def _from_file(kind: Kind, name: str, base_dir: Path) -> object:
    fault = id_forms.missing_file(kind.value, name, base_dir)
    if fault is not None:
        raise UnusableComponent(fault.message, remedy=fault.remedy)
    path_text, _, class_name = name.rpartition(":")
    path = (base_dir / path_text).resolve()
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
        except (Exception, SystemExit) as error:
            del sys.modules[module_name]
            remedy = f"see what `python {path_text}` says"
            raise _not_imported(kind, name, error, remedy, str(path)) from error
    return _attribute(module, class_name, kind, name, path_text)


def _attribute(module: ModuleType, class_name: str, kind: Kind, name: str, shown: str) -> object:
    if not hasattr(module, class_name):
        own = [
            n
            for n, v in vars(module).items()
            if inspect.isclass(v) and v.__module__ == module.__name__
        ]
        near = difflib.get_close_matches(class_name, own, n=1)
        remedy = f"did you mean {near[0]}?" if near else f"it has: {', '.join(own) or 'no class'}"
        raise UnusableComponent(
            f"the {kind.value} {name!r}: {shown} has no class {class_name}", remedy=remedy
        )
    found: object = getattr(module, class_name)
    return found
