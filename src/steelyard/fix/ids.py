"""What people call runs, candidates and trials: short ids, prefixes, and words. Pure.

Every row has a long id, which is what is recorded, and a short one (`r3`, `c7`, `t41`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeVar

from steelyard.config.errors import BadInput
from steelyard.config.validation import nearest

LATEST: Final = "latest"
BASELINE: Final = "baseline"
BEST: Final = "best:"
_MAX_LISTED: Final = 8


class Kind(StrEnum):
    """What an id names; the value is the letter of its short ids."""

    RUN = "r"
    CANDIDATE = "c"
    TRIAL = "t"

    @property
    def word(self) -> str:
        """The word that people use."""
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Named:
    """A row that can be named."""

    long: str
    short: str
    is_baseline: bool = False
    values: tuple[tuple[str, float], ...] = ()
    """Candidates that may be the best of something: their medians by metric; else nothing."""


@dataclass(frozen=True, slots=True)
class Best:
    """A metric that `best:METRIC` may name."""

    metric: str
    higher_is_better: bool


class UnknownId(BadInput):
    """A name that no row has."""


class AmbiguousId(BadInput):
    """A prefix that several rows have."""


NamedT = TypeVar("NamedT", bound=Named)


def short_id(kind: Kind, number: int) -> str:
    """Write a short id.

    Args:
        kind: of what.
        number: counted from 1.
    """
    return f"{kind.value}{number}"


def number_of(kind: Kind, text: str) -> int | None:
    """Give the number of a short id, None where the text is none of this kind."""
    found = re.fullmatch(rf"{kind.value}([1-9][0-9]{{0,17}})", text.strip().lower())
    return int(found[1]) if found else None


def resolve(
    text: str, rows: Sequence[NamedT], kind: Kind, *, metrics: Sequence[Best] = ()
) -> NamedT:
    """Find the row that somebody means.

    In this order: a whole id, long or short; `latest`; of candidates `baseline` and
    `best:METRIC`; a prefix of one long id only.

    Args:
        text: what was written.
        rows: in the order they were made.
        kind: what is looked for.
        metrics: what `best:` may name.

    Raises:
        UnknownId: no row is meant; the nearest names are given.
        AmbiguousId: several are.
    """
    wanted = text.strip()
    for row in rows:
        if wanted == row.long or wanted.lower() == row.short.lower():
            return row
    if wanted == LATEST and rows:
        return rows[-1]
    if kind is Kind.CANDIDATE and wanted == BASELINE:
        for row in rows:
            if row.is_baseline:
                return row
    if kind is Kind.CANDIDATE and wanted.startswith(BEST):
        return _best(wanted.removeprefix(BEST), rows, metrics)
    found = [row for row in rows if wanted and row.long.startswith(wanted)]
    if len(found) == 1:
        return found[0]
    if found:
        listed = ", ".join(f"{row.short} ({row.long})" for row in found[:_MAX_LISTED])
        more = f" and {len(found) - _MAX_LISTED} more" if len(found) > _MAX_LISTED else ""
        raise AmbiguousId(
            f"{wanted!r} is the beginning of {len(found)} {kind.word}s: {listed}{more}",
            remedy="write more of it, or the short id",
        )
    raise _unknown(wanted, rows, kind)


def _best(metric: str, rows: Sequence[NamedT], metrics: Sequence[Best]) -> NamedT:
    known = {best.metric: best for best in metrics}
    if metric not in known:
        near = nearest(metric, known)
        hint = f"did you mean {BEST}{near}? " if near else ""
        raise UnknownId(
            f"there is no metric {metric!r}",
            remedy=f"{hint}known: {', '.join(known) or 'none'}",
        )
    sign = 1 if known[metric].higher_is_better else -1
    valued = [(sign * dict(row.values)[metric], row) for row in rows if metric in dict(row.values)]
    if not valued:
        raise UnknownId(
            f"no candidate has a verified value of {metric}",
            remedy="measure and review one first: `fix status` shows what is pending",
        )
    highest = max(value for value, _ in valued)
    return next(row for value, row in valued if value == highest)


def _unknown(wanted: str, rows: Sequence[Named], kind: Kind) -> UnknownId:
    if not rows:
        return UnknownId(f"there is no {kind.word} {wanted!r}", remedy=f"there are no {kind.word}s")
    names = [name for row in rows for name in (row.short, row.long)]
    near = nearest(wanted, names)
    hint = f"did you mean {near}? " if near else ""
    words = "latest, baseline, best:METRIC" if kind is Kind.CANDIDATE else "latest"
    newest = ", ".join(row.short for row in rows[-_MAX_LISTED:])
    return UnknownId(
        f"there is no {kind.word} {wanted!r}",
        remedy=f"{hint}known: {newest}; or {words}, or the beginning of a long id",
    )
