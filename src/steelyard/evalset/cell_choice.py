"""Which cells, cases and names a person means: whole ones, or patterns. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Final

from steelyard.config.errors import BadInput, Problem
from steelyard.evalset.set_document import SetCell

_NEAR: Final = 3


class NothingMatches(BadInput):
    """A key or pattern that nothing answers to."""


def matches(pattern: str, name: str) -> bool:
    """True where a name is meant: written whole, or by a pattern (`*` crosses slashes)."""
    return pattern == name or fnmatchcase(name, pattern)


def chosen_cells(cells: Sequence[SetCell], patterns: Sequence[str]) -> list[SetCell]:
    """Give the cells that any of these keys or patterns means, in their order; all where none is.

    A key that is written whole means that cell alone, whatever it holds.

    Raises:
        NothingMatches: one of them means no cell; the nearest keys are named.
    """
    if not patterns:
        return list(cells)
    keys = {cell.matrix_key for cell in cells}
    whole = {pattern for pattern in patterns if pattern in keys}
    check_each_matches([one for one in patterns if one not in whole], keys, "cell")
    return [
        cell
        for cell in cells
        if cell.matrix_key in whole
        or any(fnmatchcase(cell.matrix_key, one) for one in patterns if one not in whole)
    ]


def check_each_matches(patterns: Iterable[str], names: Iterable[str], what: str) -> None:
    """Refuse patterns that mean nothing.

    Args:
        patterns: whole names, or patterns.
        names: what there is.
        what: how messages call one of them.

    Raises:
        NothingMatches: for each of them, with the nearest names.
    """
    known = sorted(set(names))
    problems = [
        Problem(f"no {what} matches {pattern!r}", remedy=_remedy(pattern, known, what))
        for pattern in patterns
        if not any(matches(pattern, name) for name in known)
    ]
    if problems:
        raise NothingMatches.of(problems)


def _remedy(pattern: str, names: Sequence[str], what: str) -> str | None:
    if not names:
        return f"there is no {what} yet"
    near = difflib.get_close_matches(pattern, names, n=_NEAR, cutoff=0.5)
    if near:
        return f"did you mean {', '.join(map(repr, near))}?"
    shown = ", ".join(map(repr, names[:_NEAR]))
    return f"there are {len(names)}: {shown}{', …' if len(names) > _NEAR else ''}"
