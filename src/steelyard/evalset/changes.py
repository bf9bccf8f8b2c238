"""What has changed since a set was made, and which of it only adds. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from steelyard.evalset.set_document import SetCell, SetDocument

_BINDING: Final = ("name", "execution")
"""Fields of a manifest that decide what a cell's result is; seeds are compared cell by cell."""
_FREE: Final = (
    "limits", "scanners", "gates", "baseline", "runtime", "output", "case_fanout", "include",
    "exclude",
)  # fmt: skip
"""Fields that decide when and where cells run, and what is done with their results."""


@dataclass(frozen=True, slots=True)
class Changes:
    """The differences between a set as it was made and as it would be made now."""

    added: tuple[SetCell, ...] = ()
    """Cells that the set has not, with numbers of their own."""
    removed: tuple[str, ...] = ()
    """Matrix keys of cells that would be no more."""
    changed: tuple[str, ...] = ()
    """What makes results before and after differ, in words."""
    free: tuple[str, ...] = ()
    """What changes no cell, in words."""
    same: tuple[SetCell, ...] = field(default=(), repr=False)
    """The set's cells, in the order of the new manifest."""

    @property
    def is_none(self) -> bool:
        """True where nothing has changed."""
        return not (self.added or self.removed or self.changed or self.free)

    @property
    def only_adds(self) -> bool:
        """True where everything that the set has stays as it is."""
        return not (self.removed or self.changed)

    def lines(self) -> list[str]:
        """Say it for people."""
        return [
            *self.changed,
            *(f"removed: {key}" for key in _few(self.removed)),
            *(f"added: {key}" for key in _few([cell.matrix_key for cell in self.added])),
            *self.free,
        ]


def changes_between(made: SetDocument, now: SetDocument) -> Changes:
    """Compare a set as it was made with what its manifest and references would make now.

    Args:
        made: from `evalset.json`.
        now: with the numbers of a set that is made anew.
    """
    before = {cell.matrix_key: cell for cell in made.cells}
    after = {cell.matrix_key: cell for cell in now.cells}
    changed = [*_changed_fields(made.manifest, now.manifest, _BINDING)]
    changed += _changed_packs(made, now)
    changed += _changed_agents(made, now)
    number = max((cell.index for cell in made.cells), default=-1) + 1
    added: list[SetCell] = []
    same: list[SetCell] = []
    for key, cell in after.items():
        known = before.get(key)
        if known is None:
            added.append(cell.numbered(number + len(added)))
            continue
        same.append(known)
        differences = _changed_cell(known, cell)
        if differences:
            changed.append(f"{key}: {', '.join(differences)}")
    return Changes(
        tuple(added),
        tuple(key for key in before if key not in after),
        tuple(changed),
        tuple(_changed_fields(made.manifest, now.manifest, _FREE)),
        tuple(same),
    )


def _changed_fields(
    before: Mapping[str, Any], after: Mapping[str, Any], names: tuple[str, ...]
) -> Iterator[str]:
    for name in names:
        yield from _differences(name, before.get(name), after.get(name))


def _differences(path: str, before: Any, after: Any) -> Iterator[str]:
    if before == after:
        return
    sides = [{} if side is None else side for side in (before, after)]
    if all(isinstance(side, Mapping) for side in sides):
        for name in dict.fromkeys([*sides[0], *sides[1]]):
            yield from _differences(f"{path}.{name}", sides[0].get(name), sides[1].get(name))
        return
    yield f"{path}: {_shown(before)} -> {_shown(after)}"


def _shown(value: Any) -> str:
    text = "not set" if value is None else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _changed_packs(made: SetDocument, now: SetDocument) -> Iterator[str]:
    after = {pack.ref: pack for pack in now.packs}
    for pack in made.packs:
        other = after.get(pack.ref)
        if other is None or other.digest == pack.digest:
            continue
        yield (
            f"the pack {pack.ref} has changed: {pack.slug}@{pack.version} ({pack.digest[:12]}) -> "
            f"{other.slug}@{other.version} ({other.digest[:12]})"
        )


def _changed_agents(made: SetDocument, now: SetDocument) -> Iterator[str]:
    after = {(agent.ref, agent.label): agent for agent in now.agents}
    for agent in made.agents:
        other = after.get((agent.ref, agent.label))
        if other is not None and other.digest != agent.digest:
            yield f"the deployment {agent.name} has changed: its harness, model or environment"


def _changed_cell(before: SetCell, after: SetCell) -> list[str]:
    old, new = before.cell, after.cell
    pairs = {
        "pack": (old.pack_ref, new.pack_ref),
        "deployment": (old.agent_ref, new.agent_ref),
        "model": (old.model_ref, new.model_ref),
        "seed": (old.seed, new.seed),
    }
    return [f"{name} {a!r} -> {b!r}" for name, (a, b) in pairs.items() if a != b]


def _few(keys: Sequence[str], shown: int = 8) -> list[str]:
    if len(keys) <= shown:
        return list(keys)
    return [*keys[:shown], f"and {len(keys) - shown} more"]
