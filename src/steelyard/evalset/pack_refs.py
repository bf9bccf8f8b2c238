"""Pack refs: a version's UUID, `slug`, `slug@N`, `catalog/<slug>`, or a pack's folder.

A pack that is used is opened whole, its cases too: what is wrong with it is said before anything
starts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from steelyard.benchmarks.pack import PackBenchmark
from steelyard.components.benchmark import Task
from steelyard.components.catalog import CATALOG, catalog_pack
from steelyard.components.id_forms import is_path, missing_pack
from steelyard.config.errors import BadInput, Problem, Where
from steelyard.evalset.agent_refs import derived_uuid, is_uuid, near_names
from steelyard.evalset.own_packs import OwnPacks, PackHead
from steelyard.evalset.set_document import PinnedPack

_CATALOG: Final = "catalog/"
_SLUG = re.compile(
    r"(?P<slug>[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*)(?:@v?(?P<version>0|[1-9][0-9]{0,8}))?"
)
_FORMS: Final = "a UUID, slug, slug@N, catalog/<slug> or ./folder"


class UnknownPack(BadInput):
    """No pack of the project has that slug."""


@dataclass(frozen=True, slots=True)
class OpenedPack:
    """A pack that was read whole."""

    pinned: PinnedPack
    benchmark: PackBenchmark
    tasks: Sequence[Task]


class Packs:
    """Finds and opens packs; each is opened once."""

    def __init__(self, own: OwnPacks) -> None:
        self.own = own
        self._opened: dict[Path, OpenedPack] = {}

    def resolve(self, ref: str, base_dir: Path, where: Where | None = None) -> OpenedPack:
        """Give the pack that a ref names.

        Args:
            ref: as written.
            base_dir: what a relative path starts from.
            where: the ref's place, for errors.

        Raises:
            BadInput: there is none, there are several, or the one there is has faults: all of
                them.
        """
        found = self.opened(_Looking(ref, self, base_dir, where or Where()).path()).pinned
        pinned = PinnedPack(ref, found.slug, found.version, found.digest, found.uuid, found.path)
        opened = self._opened[Path(found.path)]
        return OpenedPack(pinned, opened.benchmark, opened.tasks)

    def opened(self, path: Path) -> OpenedPack:
        """Open a pack's folder, its cases too.

        Raises:
            BadInput: everything that is wrong with it.
        """
        path = path.resolve()
        if path not in self._opened:
            benchmark = PackBenchmark(PackBenchmark.Params(path=str(path)))
            pack = benchmark.pack
            pinned = PinnedPack(
                ref=str(path),
                slug=pack.file.slug,
                version=pack.file.version,
                digest=pack.digest,
                uuid=version_uuid(pack.file.slug, pack.file.version, pack.digest),
                path=str(path),
            )
            self._opened[path] = OpenedPack(pinned, benchmark, benchmark.load_tasks())
        return self._opened[path]


def version_uuid(slug: str, version: int, digest: str) -> str:
    """Derive the UUID of a pack's version.

    Args:
        slug: the pack's.
        version: its number.
        digest: of all its files, hex.
    """
    return derived_uuid("pack", slug, str(version), digest)


def resolve_pack(ref: str, packs: Packs, base_dir: Path, where: Where | None = None) -> PinnedPack:
    """Pin the pack that a ref names; arguments and errors as `Packs.resolve`."""
    return packs.resolve(ref, base_dir, where).pinned


class _Looking:
    """Looks for the folder of one ref."""

    def __init__(self, ref: str, packs: Packs, base_dir: Path, where: Where) -> None:
        self.ref, self.packs, self.base_dir, self.where = ref.strip(), packs, base_dir, where
        self.own = packs.own

    def path(self) -> Path:
        if is_path(self.ref):
            return self._folder()
        if is_uuid(self.ref):
            return self._version()
        form = _SLUG.fullmatch(self.ref.rpartition("/")[2])
        slug = form["slug"] if form else None
        version = int(form["version"]) if form and form["version"] else None
        if self.ref.startswith(_CATALOG) and self.ref.count("/") == 1:
            return self._of_catalog(slug, version)
        heads = self._own(slug, version) if slug is not None else []
        paths = {head.path: head for head in heads}
        if missing_pack(self.ref, self.base_dir) is None:
            folder = self._folder()
            paths.setdefault(folder, PackHead(folder, Where(), None, None))
        if len(paths) == 1:
            return next(iter(paths))
        if paths:
            raise self._several(list(paths.values()))
        raise self._none(slug, version)

    def _folder(self) -> Path:
        fault = missing_pack(self.ref, self.base_dir)
        if fault is not None:
            raise BadInput(fault.message, where=self.where, remedy=fault.remedy)
        path = (self.base_dir / self.ref).resolve()
        return path.parent if path.is_file() else path

    def _version(self) -> Path:
        found: list[PackHead] = []
        lost: list[Problem] = []
        for path in [*(entry.path for entry in self.own.entries), *catalog_folders()]:
            try:
                opened = self.packs.opened(path)
            except BadInput as error:
                lost += error.problems
                continue
            if opened.pinned.uuid == self.ref.lower():
                found.append(PackHead(path, Where(), opened.pinned.slug, opened.pinned.version))
        if len(found) == 1:
            return found[0].path
        if found:
            raise self._several(found)
        if lost:  # it may be one of these
            raise self._unsure(lost)
        raise BadInput(
            f"no pack has a version with the id {self.ref}",
            where=self.where,
            remedy="it changes with a pack's files and version; `steelyard pack list` shows ids",
        )

    def _of_catalog(self, slug: str | None, version: int | None) -> Path:
        heads = self._own(slug, version) if slug is not None else []
        if len(heads) > 1:
            raise self._several(heads)
        if heads:
            return heads[0].path
        if lost := self._lost():
            raise self._unsure(lost)
        shipped = catalog_pack(slug or "")
        if shipped is None:
            near = near_names(slug or self.ref, CATALOG)
            hint = f"did you mean {_CATALOG}{near[0]}? " if near else ""
            raise BadInput(
                f"neither the project nor the catalog has a pack {slug or self.ref!r}",
                where=self.where,
                remedy=f"{hint}shipped: {', '.join(_CATALOG + name for name in CATALOG)}",
            )
        if version is not None and (has := self.packs.opened(shipped).pinned.version) != version:
            raise BadInput(
                f"the shipped pack {slug} is of version {has}, not {version}",
                where=self.where,
                remedy=f"write {_CATALOG}{slug}@{has}",
            )
        return shipped

    def _own(self, slug: str, version: int | None) -> list[PackHead]:
        """The project's packs that fit; one whose version cannot be told might.

        Without a version the pack itself is meant, not what is kept of it beside it.
        """
        heads = self.own.by_slug.get(slug, [])
        if version is not None:
            return [head for head in heads if head.version in (version, None)]
        return [head for head in heads if not head.is_kept] or heads

    def _lost(self) -> list[Problem]:
        return [problem for head in self.own.unknown for problem in head.problems]

    def _several(self, heads: Sequence[PackHead]) -> BadInput:
        def shown(head: PackHead) -> str:
            if head.slug is None:
                return str(head.path)
            return f"{head.slug}@{'?' if head.version is None else head.version} at {head.path}"

        versions = {head.version for head in heads}
        first = heads[0]
        distinct = len(versions) == len(heads) and first.slug is not None
        remedy = "name its folder, or take one of them out of the project's `packs:`"
        if distinct:
            remedy = f"say which version: {' or '.join(f'{h.slug}@{h.version}' for h in heads)}"
        return BadInput(
            f"the pack {self.ref!r} is named by {len(heads)}: {'; '.join(map(shown, heads))}",
            where=self.where,
            remedy=remedy,
        )

    def _none(self, slug: str | None, version: int | None) -> BadInput:
        if lost := self._lost():
            return self._unsure(lost)
        if slug is None:
            return BadInput(
                f"{self.ref!r} is no pack ref", where=self.where, remedy=f"write {_FORMS}"
            )
        if others := self.own.by_slug.get(slug):
            return BadInput(
                f"the pack {slug} has no version {version}",
                where=self.where,
                remedy=f"there is {', '.join(f'{one.slug}@{one.version}' for one in others)}",
            )
        none = Problem(f"the project has no pack {slug!r}", self.where, self._nearest(slug))
        return UnknownPack.of([none, *self.own.empty])

    def _nearest(self, slug: str) -> str:
        if slug in CATALOG:
            return f"write {_CATALOG}{slug} for the one that is shipped"
        near = near_names(slug, self.own.by_slug)
        near = near or [_CATALOG + name for name in near_names(slug, CATALOG)]
        if near:
            return f"did you mean {' or '.join(near)}?"
        if not self.own.entries:
            return "list the project's packs under `packs:` of steelyard.yaml"
        return "`steelyard pack list` shows the packs there are"

    def _unsure(self, lost: Sequence[Problem]) -> BadInput:
        message = f"whether there is a pack {self.ref!r} cannot be told: a pack cannot be read"
        return BadInput.of([Problem(message, self.where, "mend it first"), *lost])


def catalog_folders() -> list[Path]:
    """List the folders of the packs that are shipped."""
    return [path for name in CATALOG if (path := catalog_pack(name)) is not None]
