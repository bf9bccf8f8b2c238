"""Import the class that an id leads to; whatever its code does meanwhile is its own fault.

An import that raises or exits is refused with the reason; one that prints does so on standard
error, since standard output is the command's.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from steelyard.components import id_forms
from steelyard.components.contract import UnusableComponent, check_class, said, where_raised

T = TypeVar("T")


def load_class(target: str, kind: str, name: str, *, declared_id: str | None = None) -> type[Any]:
    """Import `package.module:Class` and hold the class against the contract of its kind.

    Args:
        target: where it is.
        kind: what it must be.
        name: the id it was found by, for messages.
        declared_id: the id that the class must call itself; None where any will do.

    Raises:
        UnusableComponent: it cannot be imported, or breaks the contract.
    """
    module_name, _, class_name = target.partition(":")
    try:
        module = _quietly(lambda: importlib.import_module(module_name))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        remedy = f"see what `python -c 'import {module_name}'` says"
        if isinstance(error, ModuleNotFoundError):
            remedy = _near_module(module_name, class_name) or remedy
        raise _not_imported(kind, name, error, remedy) from error
    found = _attribute(module, class_name, kind, name, module_name)
    return check_class(kind, name, found, declared_id=declared_id)


def load_file_class(name: str, kind: str, base_dir: Path) -> type[Any]:
    """Import `./file.py:Class` and hold the class against the contract of its kind.

    Raises:
        UnusableComponent: it cannot be imported, or breaks the contract.
    """
    fault = id_forms.missing_file(kind, name, base_dir)
    if fault is not None:
        raise UnusableComponent(fault.message, remedy=fault.remedy)
    path_text, _, class_name = name.rpartition(":")
    module = _module_of(name, kind, path_text, (base_dir / path_text).resolve())
    return check_class(kind, name, _attribute(module, class_name, kind, name, path_text))


def _module_of(name: str, kind: str, path_text: str, path: Path) -> ModuleType:
    module_name = f"steelyard_user_{hashlib.sha256(str(path).encode()).hexdigest()[:16]}"
    known = sys.modules.get(module_name)
    if known is not None:
        return known
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise UnusableComponent(f"the {kind} {name!r}: {path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    loader = spec.loader
    try:
        _quietly(lambda: loader.exec_module(module))
    except BaseException as error:
        del sys.modules[module_name]
        if isinstance(error, KeyboardInterrupt):
            raise
        remedy = f"see what `python {path_text}` says"
        raise _not_imported(kind, name, error, remedy, str(path)) from error
    return module


def _quietly(call: Callable[[], T]) -> T:
    with contextlib.redirect_stdout(sys.stderr):
        return call()


def _not_imported(
    kind: str, name: str, error: BaseException, remedy: str, file: str | None = None
) -> UnusableComponent:
    # The import machinery's own frames say nothing; the file's do.
    place = where_raised(error, file) if file or isinstance(error, SyntaxError) else None
    return UnusableComponent(
        f"the {kind} {name!r} cannot be imported: {said(error)}{f' ({place})' if place else ''}",
        remedy=remedy,
    )


def _near_module(module_name: str, class_name: str) -> str | None:
    """A module that is a file here needs its path: the working folder is not searched."""
    path = Path(*module_name.split(".")).with_suffix(".py")
    return f"did you mean ./{path}:{class_name}?" if path.is_file() else None


def _attribute(module: ModuleType, class_name: str, kind: str, name: str, shown: str) -> object:
    try:
        found: object = _quietly(lambda: reduce(getattr, class_name.split("."), module))
    except AttributeError:
        own = [
            n
            for n, v in vars(module).items()
            if inspect.isclass(v) and v.__module__ == module.__name__
        ]
        near = difflib.get_close_matches(class_name, own, n=1)
        remedy = f"did you mean {near[0]}?" if near else f"it has: {', '.join(own) or 'no class'}"
        raise UnusableComponent(
            f"the {kind} {name!r}: {shown} has no class {class_name}", remedy=remedy
        ) from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a module that imports lazily runs code here
        remedy = f"see what `python -c 'from {shown} import {class_name}'` says"
        raise _not_imported(kind, name, error, remedy) from error
    return found
