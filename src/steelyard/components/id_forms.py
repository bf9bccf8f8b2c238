"""The forms of a component's id: a name, a class of a module or file, a pack's folder.

Looks at names of files, imports nothing; says what an id that leads nowhere was meant to be.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PACK_FILE: Final = "pack.yaml"
_MAX_LOOKED_AT: Final = 1000
"""Entries of a folder that are compared with a name; it may be anyone's downloads."""

_CLASS = re.compile(r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*$")
_FILE = re.compile(r"^(\.{1,2}/|/).*\.py:[A-Za-z_]\w*$", re.DOTALL)
_BARE_FILE = re.compile(r"^[^:\n]+\.py:[A-Za-z_]\w*$")


@dataclass(frozen=True, slots=True)
class IdFault:
    """What is wrong with an id, and what would be right."""

    message: str
    remedy: str


def is_path(name: str) -> bool:
    """True where an id is written as a path."""
    return name.startswith(("./", "../", "/"))


def is_file_class(name: str) -> bool:
    """True for `./file.py:Class`."""
    return bool(_FILE.match(name))


def is_bare_file_class(name: str) -> bool:
    """True for `file.py:Class`, which lacks its `./`."""
    return bool(_BARE_FILE.match(name)) and not is_path(name)


def is_module_class(name: str) -> bool:
    """True for `package.module:Class`."""
    return bool(_CLASS.match(name)) and not is_bare_file_class(name)


def is_rule_file(name: str) -> bool:
    """True for `./rules.yaml`: a scanner that is written as rules, no code."""
    return is_path(name) and name.endswith((".yaml", ".yml"))


def missing_rule_file(name: str, base_dir: Path) -> IdFault | None:
    """What is wrong with a path as a file of rules; None where one is there."""
    if _is_file(base_dir / name):
        return None
    near = near_paths(name, base_dir, lambda entry: entry.suffix in (".yaml", ".yml"))
    remedy = f"did you mean {near}?" if near else _relative(name)
    return IdFault(f"the scanner {name!r}: there is no file {name}", remedy)


def missing_file(kind: str, name: str, base_dir: Path) -> IdFault | None:
    """What is wrong with the file of `./file.py:Class`; None where it is there."""
    text = name.rpartition(":")[0]
    if _is_file(base_dir / text):
        return None
    near = near_paths(text, base_dir, lambda entry: entry.suffix == ".py")
    remedy = f"did you mean {near}:{name.rpartition(':')[2]}?" if near else _relative(text)
    return IdFault(f"the {kind} {name!r}: there is no file {text}", remedy)


def missing_pack(text: str, base_dir: Path) -> IdFault | None:
    """What is wrong with a path as a pack's folder; None where one is there."""
    path = base_dir / text
    if (path.name == PACK_FILE and _is_file(path)) or _is_file(path / PACK_FILE):
        return None
    try:
        is_folder, is_file = path.is_dir(), path.is_file()
    except OSError as error:
        return IdFault(f"there is no pack at {text}: {error.strerror}", "check the path")
    if is_file and path.suffix == ".py":
        return IdFault(
            f"{text} is a Python file, not a pack", f"name the class in it: {text}:CLASS"
        )
    near = near_paths(text, base_dir, lambda entry: _is_file(entry / PACK_FILE))
    inside = _packs_in(text, path) if is_folder else ""
    if near or inside:
        remedy = f"did you mean {near or inside}?"
    else:
        remedy = f"a pack is a folder with a {PACK_FILE}; `steelyard pack init DIR` makes one"
        remedy += "" if text.startswith("/") else f"; {_relative(text)}"
    if is_folder:
        return IdFault(f"{text} is not a pack: it has no {PACK_FILE}", remedy)
    return IdFault(f"there is no pack at {text}", remedy)


def _relative(text: str) -> str:
    if text.startswith("/"):
        return "check the path"
    return "a path starts from the folder of the file it is written in"


def _packs_in(text: str, folder: Path) -> str:
    found = (e.name for e in _entries(folder) if _is_file(e / PACK_FILE))
    first = next(iter(sorted(found)), None)
    return f"{text.rstrip('/')}/{first}" if first is not None else ""


def near_paths(text: str, base_dir: Path, fits: Callable[[Path], bool]) -> str | None:
    """Give the path beside a wrong one, written the same way, whose name is nearest."""
    head, _, last = text.rstrip("/").rpartition("/")
    folder = base_dir / head if head else Path("/") if text.startswith("/") else base_dir
    if not _is_dir(folder) and head not in ("", ".", ".."):
        # The folder's own name may be what is misspelt.
        better = near_paths(head, base_dir, lambda entry: fits(entry / last))
        return f"{better}/{last}" if better else None
    names = [entry.name for entry in _entries(folder) if fits(entry)]
    near = _nearest(last, names)
    return (f"{head}/{near}" if head or text.startswith("/") else near) if near else None


def _nearest(name: str, names: Iterable[str]) -> str | None:
    by_lower = {one.lower(): one for one in names}
    found = difflib.get_close_matches(name.lower(), list(by_lower), n=1, cutoff=0.6)
    return by_lower[found[0]] if found else None


def _entries(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as found:
            names = [entry.name for _, entry in zip(range(_MAX_LOOKED_AT), found, strict=False)]
    except OSError:
        return []
    return [folder / name for name in sorted(names) if not name.startswith(".")]


def meant(kind: str, name: str, base_dir: Path) -> str | None:
    """Give what an unknown id was probably meant to be: a path that lacks its `./`."""
    if is_bare_file_class(name):
        return f"./{name}"
    if "\n" in name or is_path(name) or not name:
        return None
    if kind == "benchmark" and _is_file(base_dir / name / PACK_FILE):
        return f"./{name}"
    if kind == "scanner" and name.endswith((".yaml", ".yml")) and _is_file(base_dir / name):
        return f"./{name}"
    if name.endswith(".py") and _is_file(base_dir / name):
        return f"./{name}:CLASS"
    return None


def _is_file(path: Path) -> bool:
    """As `Path.is_file`, but for what may not be looked at, or has a name that no file can have."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _is_dir(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False
