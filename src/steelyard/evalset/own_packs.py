"""The project's own packs: the folders that `packs:` names, and what each calls itself.

Only the heads of packs are read here: slug and version. `evalset/pack_refs.py` opens those that
are used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from steelyard.benchmarks.pack.versions import kept_folders, kept_version
from steelyard.components.id_forms import PACK_FILE, missing_pack
from steelyard.config.errors import BadInput, Problem, Where
from steelyard.config.source import Node, read_file

_WILD: Final = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class PackEntry:
    """A folder that `packs:` names."""

    path: Path
    """Absolute, links followed."""
    where: Where
    """Where the project names it."""
    fault: Problem | None = None
    """Why there is no pack."""
    is_empty: bool = False
    """True for a pattern that no pack matches."""


@dataclass(frozen=True, slots=True)
class PackHead:
    """What a pack calls itself."""

    path: Path
    where: Where
    slug: str | None
    """None where that cannot be told."""
    version: int | None
    problems: tuple[Problem, ...] = ()
    """Why slug or version cannot be told."""

    @property
    def is_kept(self) -> bool:
        """True for an earlier version that `pack new-version` has kept beside the pack."""
        return self.version is not None and kept_version(self.path) == self.version


def pack_folders(node: Node, folder: Path) -> Iterator[PackEntry]:
    """Iterate over the folders that an item of `packs` names.

    A folder with a `pack.yaml`, or a pattern: of what it matches, the folders with one count.

    Args:
        node: the item.
        folder: what a relative path starts from.
    """
    text, where = str(node.value), node.origin.where
    if _WILD & set(text):
        try:
            base = Path(text).anchor
            found = Path(base).glob(text[len(base) :]) if base else folder.glob(text)
            packs = [path for path in sorted(found) if _may_be_pack(path)]
            yield from (PackEntry(path.resolve(), where) for path in packs)
            if not packs:
                said = f"no folder with a {PACK_FILE} matches {text!r}"
                problem = Problem(said, where, f"it starts from {folder.absolute()}")
                yield PackEntry(folder, where, problem, is_empty=True)
        except (OSError, ValueError) as error:
            problem = Problem(f"{text!r} is no pattern of folders: {error}", where)
            yield PackEntry(folder, where, problem)
        return
    fault = missing_pack(text, folder)
    if fault is not None:
        yield PackEntry(folder / text, where, Problem(fault.message, where, fault.remedy))
        return
    path = (folder / text).resolve()
    yield PackEntry(path.parent if path.name == PACK_FILE else path, where)


def _may_be_pack(folder: Path) -> bool:
    """True for a folder with a `pack.yaml`, and for one that may not be looked into."""
    try:
        return (folder / PACK_FILE).is_file()
    except PermissionError:
        return True
    except OSError:
        return False


def head_of(entry: PackEntry) -> PackHead:
    """Read what a pack calls itself."""
    if entry.fault is not None:
        return PackHead(entry.path, entry.where, None, None, (entry.fault,))
    try:
        root = read_file(entry.path / PACK_FILE)
    except BadInput as error:
        return PackHead(entry.path, entry.where, None, None, error.problems)
    slug, version = root.at(("slug",)), root.at(("version",))
    text = slug.value if slug is not None and isinstance(slug.value, str) else None
    number = version.value if version is not None else None
    if not isinstance(number, int) or isinstance(number, bool):
        number = None
    problems: tuple[Problem, ...] = ()
    if text is None or number is None:
        lacks = "slug" if text is None else "version"
        problems = (Problem(f"the pack has no {lacks}", root.origin.where, f"write `{lacks}:`"),)
    return PackHead(entry.path, entry.where, text, number, problems)


class OwnPacks:
    """A project's packs, kept versions too; their heads are read when first asked for."""

    def __init__(self, entries: Iterable[PackEntry]) -> None:
        by_path: dict[Path, PackEntry] = {}
        empty: list[Problem] = []
        for entry in entries:
            if entry.is_empty and entry.fault is not None:
                empty.append(entry.fault)
                continue
            by_path.setdefault(entry.path, entry)
            if entry.fault is None:
                for kept in kept_folders(entry.path):
                    by_path.setdefault(kept, PackEntry(kept, entry.where))
        self.entries = tuple(by_path.values())
        self.empty = tuple(empty)
        """The patterns that no pack matches."""

    @cached_property
    def heads(self) -> tuple[PackHead, ...]:
        """What each pack calls itself, in the order in which they are named."""
        return tuple(map(head_of, self.entries))

    @cached_property
    def by_slug(self) -> dict[str, list[PackHead]]:
        """The packs whose slug can be told, by it."""
        found: dict[str, list[PackHead]] = {}
        for head in self.heads:
            if head.slug is not None:
                found.setdefault(head.slug, []).append(head)
        return found

    @cached_property
    def unknown(self) -> tuple[PackHead, ...]:
        """The packs of which nobody can say what they are: any slug might be theirs."""
        return tuple(head for head in self.heads if head.slug is None)
