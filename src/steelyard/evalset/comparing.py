"""Two sets, joined by pack slug, agent, model, repeat and case: what got better, what worse. Pure.

A pack's new version joins the old one, and is named. A case whose content is another one is named
and left out of the tests, unless told otherwise. Differences are this set less the base, in the
direction that is better; a case is the unit, as in a report's pairs of agents.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import fsum
from typing import Final

from steelyard.components.benchmark import MetricSpec
from steelyard.components.issues import COUNTED
from steelyard.evalset.report.cell_tally import CellTally
from steelyard.evalset.report.grouping import Combination, combinations_of
from steelyard.evalset.report.report import ReadSet
from steelyard.evalset.report.wins import Figures, Side, cell_figures, joined, paired
from steelyard.results.comparison import Difference, ExactTest
from steelyard.stats.multiple import holm
from steelyard.stats.paired import Tally

SIGNIFICANT: Final = 0.05
"""Of the p that Holm's rule gives."""
THIS_SET: Final = "this set: "
"""Before warnings that are not of the comparison, but of the later set alone."""
_DIGITS: Final = 12

Key = tuple[str, str, str | None]
"""Pack slug, agent, model of the axis."""


class Verdict(StrEnum):
    """What the tests say of a combination."""

    REGRESSED = "regressed"
    IMPROVED = "improved"
    UNCHANGED = "unchanged"
    """No difference is shown: that there is none is another claim."""
    UNTESTED = "untested"
    """Nothing could be paired; `note` says why."""


@dataclass(frozen=True, slots=True)
class CaseChange:
    """A case whose figure is another one now."""

    case: str
    was: float
    now: float
    gain: float
    """In the direction that is better."""


@dataclass(frozen=True, slots=True)
class ComparedCombination:
    """A pack under an agent and a model, in both sets."""

    key: Key
    verdict: Verdict
    tally: Tally
    """Cases at which this set is better, as good, worse."""
    difference: Difference | None
    test: ExactTest | None
    p_holm: float | None
    """Adjusted for all combinations; the p itself where there is one."""
    changes: tuple[CaseChange, ...]
    """The largest losses first, then the gains."""
    added: tuple[str, ...]
    """Cases of this set alone."""
    removed: tuple[str, ...]
    other_content: tuple[str, ...]
    """Cases of both, whose content differs."""
    repeats_added: tuple[int, ...]
    repeats_removed: tuple[int, ...]
    was_counted: tuple[int, int | None]
    """Attempts counted and planned, in the base."""
    now_counted: tuple[int, int | None]
    note: str | None = None

    @property
    def name(self) -> str:
        """Pack, agent and model in one line."""
        return " / ".join(part for part in self.key if part is not None)


@dataclass(frozen=True, slots=True)
class AgentChange:
    """An agent over all combinations that both sets have."""

    agent: str
    tally: Tally
    difference: Difference | None
    test: ExactTest | None


@dataclass(frozen=True, slots=True)
class SetComparison:
    """What changed from one set to another."""

    base_id: str
    base_name: str
    set_id: str
    name: str
    combinations: tuple[ComparedCombination, ...]
    agents: tuple[AgentChange, ...]
    added: tuple[Key, ...]
    removed: tuple[Key, ...]
    packs: tuple[tuple[str, int, int], ...]
    """(slug, version in the base, version now) where they differ, or the content does."""
    deployments: tuple[str, ...]
    """Agents whose deployment is another one."""
    was_counted: tuple[int, int | None]
    """Attempts counted and planned of all that the base has, shared or not."""
    now_counted: tuple[int, int | None]
    warnings: tuple[str, ...]
    created_at: str = ""
    """When the later one was made, in UTC."""

    def of(self, verdict: Verdict) -> list[ComparedCombination]:
        """Give the combinations of one verdict."""
        return [one for one in self.combinations if one.verdict is verdict]


def compare_sets(
    base: ReadSet, this: ReadSet, *, with_other_content: bool = False
) -> SetComparison:
    """Compare a set with an earlier one.

    Args:
        base: the earlier one, read with digests.
        this: the later one, read with digests.
        with_other_content: whether to test cases whose content differs, too.
    """
    ours, theirs = _by_key(base.cells), _by_key(this.cells)
    shared = [key for key in ours if key in theirs]
    found, pooled = [], dict[str, list[_Joined]]()
    for key in shared:
        side = _Joined.of(ours[key], theirs[key], with_other_content=with_other_content)
        found.append(_compared(key, side, len(shared)))
        if side.note is None:
            pooled.setdefault(key[1], []).append(side)
    adjusted = _adjusted(found)
    agents = []
    for agent, sides in pooled.items():
        pairs = paired([side.shared for side in sides])
        test = pairs.test(len(pooled))
        agents.append(AgentChange(agent, pairs.tally, pairs.difference(), test))
    return SetComparison(
        base.opened.set_id,
        base.opened.name,
        this.opened.set_id,
        this.opened.name,
        tuple(adjusted),
        tuple(agents),
        tuple(key for key in theirs if key not in ours),
        tuple(key for key in ours if key not in theirs),
        tuple(_packs(base, this)),
        tuple(_deployments(base, this)),
        (base.report.whole.counted, base.report.whole.planned),
        (this.report.whole.counted, this.report.whole.planned),
        tuple(_warnings(adjusted, base, this)),
        this.opened.document.created_at,
    )


def _by_key(cells: Sequence[CellTally]) -> dict[Key, Combination]:
    """Join combinations of one slug, whichever ref it had; of two versions in a set the last."""
    return {
        (one.part.cases.pack.slug, one.agent, one.model_ref): one for one in combinations_of(cells)
    }


@dataclass(frozen=True, slots=True)
class _Joined:
    """Two combinations, the base's cases numbered as this set's are."""

    first: Combination
    second: Combination
    ours: Figures
    theirs: Figures
    other_content: tuple[str, ...]
    note: str | None

    @property
    def shared(self) -> Side:
        """Give what is paired."""
        return self.first.part, self.second.part, self.ours, self.theirs

    @classmethod
    def of(cls, first: Combination, second: Combination, *, with_other_content: bool) -> _Joined:
        was, now = first.part.cases.numbers, second.part.cases.numbers
        other = tuple(_other_content(first, second))
        left_out = frozenset() if with_other_content else frozenset(other)
        place = {now[case]: was[case] for case in now if case in was and case not in left_out}
        ours = {
            repeat: [
                values[place[number]] if number in place else None for number in range(len(now))
            ]
            for repeat, values in cell_figures(first.part).items()
        }
        note = _incomparable(first.part.spec, second.part.spec)
        return cls(first, second, ours, cell_figures(second.part), other, note)


def _incomparable(was: MetricSpec | None, now: MetricSpec | None) -> str | None:
    if was is None or now is None:
        side = "the base" if was is None else "this set"
        return f"{side} has no figures of it"
    for what, a, b in (
        ("metric", was.name, now.name),
        ("metric's kind", was.kind, now.kind),
        ("metric's direction", was.higher_is_better, now.higher_is_better),
        ("metric's bounds", was.bounds, now.bounds),
    ):
        if a != b:
            return f"the {what} was {a!r}, is {b!r}"
    return None


def _other_content(first: Combination, second: Combination) -> Iterator[str]:
    """Name the cases whose content is known to differ.

    What an agent is shown tells always; how an answer is scored only where the pack's version is
    the same, since the version is a part of it.
    """
    was, now = _digests(first), _digests(second)
    a, b = first.part.cases.pack, second.part.cases.pack
    is_same_pack = (a.version, a.digest) == (b.version, b.digest)
    for case, (content, scoring) in now.items():
        content_was, scoring_was = was.get(case, (None, None))
        if _differ(content_was, content) or (is_same_pack and _differ(scoring_was, scoring)):
            yield case


def _differ(was: str | None, now: str | None) -> bool:
    return None not in (was, now) and was != now


def _digests(one: Combination) -> dict[str, tuple[str | None, str | None]]:
    names = list(one.part.cases.numbers)
    return {
        names[number]: digests
        for cell in one.part.cells
        for number, digests in cell.digests.items()
    }


def _compared(key: Key, side: _Joined, family: int) -> ComparedCombination:
    pairs = paired([side.shared]) if side.note is None else paired([])
    note = side.note
    if note is None and not pairs.differences:
        note = "no case has a figure in both"
    seen_was, seen_now = _seen(side.first), _seen(side.second)
    repeats_was, repeats_now = _repeats(side.first), _repeats(side.second)
    return ComparedCombination(
        key,
        Verdict.UNCHANGED if note is None else Verdict.UNTESTED,
        pairs.tally,
        pairs.difference(),
        pairs.test(family),
        None,
        tuple(_changes(side)) if side.note is None else (),
        tuple(case for case in seen_now if case not in seen_was),
        tuple(case for case in seen_was if case not in seen_now),
        side.other_content,
        tuple(sorted(repeats_now - repeats_was)),
        tuple(sorted(repeats_was - repeats_now)),
        _counted(side.first),
        _counted(side.second),
        note,
    )


def _seen(one: Combination) -> Mapping[str, None]:
    seen = one.part.columns.seen
    return dict.fromkeys(case for case, number in one.part.cases.numbers.items() if seen[number])


def _repeats(one: Combination) -> set[int]:
    return {cell.cell.cell.repeat for cell in one.part.cells}


def _counted(one: Combination) -> tuple[int, int | None]:
    counted = sum(cell.outcomes[o] for cell in one.part.cells for o in COUNTED)
    return counted, one.part.planned


def _changes(side: _Joined) -> list[CaseChange]:
    spec = side.second.part.spec
    sign = -1.0 if spec is not None and not spec.higher_is_better else 1.0
    found = []
    for case, number in side.second.part.cases.numbers.items():
        both = [
            (a, b)
            for repeat, values in side.ours.items()
            if (b := side.theirs.get(repeat, {number: None})[number]) is not None
            and (a := values[number]) is not None
        ]
        if not both:
            continue
        was = fsum(a for a, _ in both) / len(both)
        now = fsum(b for _, b in both) / len(both)
        gain = round(sign * (now - was), _DIGITS)
        if gain:
            found.append(CaseChange(case, was, now, gain))
    return sorted(found, key=lambda one: (one.gain > 0, -abs(one.gain), one.case))


def _adjusted(found: Sequence[ComparedCombination]) -> list[ComparedCombination]:
    """Adjust the p of all combinations by Holm's rule, and say what they show."""
    tested = [
        (number, one.test.p)
        for number, one in enumerate(found)
        if one.test is not None and one.test.p is not None
    ]
    result = list(found)
    for (number, _), p in zip(tested, holm([p for _, p in tested]), strict=True):
        one = found[number]
        verdict = one.verdict
        if p < SIGNIFICANT and one.difference is not None and one.difference.value:
            verdict = Verdict.IMPROVED if one.difference.value > 0 else Verdict.REGRESSED
        result[number] = replace(one, p_holm=p, verdict=verdict)
    return result


def _packs(base: ReadSet, this: ReadSet) -> Iterator[tuple[str, int, int]]:
    was = {pack.slug: pack for pack in base.opened.document.packs}
    for slug, pack in {one.slug: one for one in this.opened.document.packs}.items():
        old = was.get(slug)
        if old is not None and (old.version, old.digest) != (pack.version, pack.digest):
            yield slug, old.version, pack.version


def _deployments(base: ReadSet, this: ReadSet) -> Iterator[str]:
    was = {agent.shown: agent.digest for agent in base.opened.document.agents}
    for agent in this.opened.document.agents:
        if was.get(agent.shown, agent.digest) != agent.digest:
            yield agent.shown


def _warnings(found: Sequence[ComparedCombination], base: ReadSet, this: ReadSet) -> Iterator[str]:
    for side, read in (("the base: ", base), (THIS_SET, this)):
        yield from (f"{side}{warning}" for warning in read.report.warnings)
    for slug, was, now in _packs(base, this):
        if was == now:
            yield f"the pack {slug} has another content under the same version {now}"
        yield (
            f"the pack {slug} was version {was}, is {now}: whether its cases are scored alike "
            "cannot be told"
        )
    for one in found:
        if one.note is not None:
            yield f"{one.name}: not tested: {one.note}"
        if one.other_content:
            named = joined(one.other_content)
            yield f"{one.name}: other content, left out of the tests unless told: {named}"
        for what, cases in (("only in this set", one.added), ("only in the base", one.removed)):
            if cases:
                yield f"{one.name}: cases {what}: {joined(cases)}"
        for what, repeats in (
            ("only in this set", one.repeats_added), ("only in the base", one.repeats_removed)
        ):  # fmt: skip
            if repeats:
                yield f"{one.name}: repeats {what}: {', '.join(map(str, repeats))}"
        if _share(one.was_counted) != _share(one.now_counted):
            yield (
                f"{one.name}: the coverage differs: {coverage_text(one.was_counted)} attempts "
                f"count in the base, {coverage_text(one.now_counted)} in this set"
            )


def _share(counted: tuple[int, int | None]) -> float | None:
    n, planned = counted
    return n / planned if planned else None


def coverage_text(counted: tuple[int, int | None]) -> str:
    """Write how many attempts count, of those planned: `18 of 36`."""
    n, planned = counted
    return f"{n} of {'?' if planned is None else planned}"
