"""Every figure of a report is that of a slow computation which shares no code with it."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from steelyard.evalset.comparing import compare_sets
from steelyard.evalset.report.report import ReadSet, read_set
from steelyard.evalset.set_document import SetCell
from steelyard.evalset.set_reader import OpenedSet
from steelyard.results.records import AttemptRecord
from tests.evalset.sets import a_record, failed, fatal, write_set
from tests.evalset.slow_figures import (
    Entry,
    Estimate,
    always_figure,
    estimate,
    filled,
    holm_of,
    mean_figure,
    paired,
    pass_figure,
    quantile_of,
    sign_flip_p,
)

SEEDS = range(16)
Key = tuple[str, str, str | None]


class RandomSet:
    """What each cell of a small set holds, by (pack, agent, model), then case, then repeat."""

    def __init__(self, seed: int, drift: float = 0.0) -> None:
        rng = random.Random(seed)
        self.packs = ["alpha", "beta"][: rng.randint(1, 2)]
        self.agents = ["base", "new", "third"][: rng.randint(2, 3)]
        self.models: list[str] | None = rng.choice([None, ["small", "large"]])
        self.repeats = rng.randint(1, 3)
        self.cases = {pack: rng.randint(2, 4) for pack in self.packs}
        self.entries: dict[Key, dict[str, list[Entry]]] = {}
        chance = random.Random(f"{seed} {drift}")
        hole = chance.choice([0.0, 0.15])
        for pack in self.packs:
            for agent in self.agents:
                for model in self.models or (None,):
                    self.entries[pack, agent, model] = {
                        f"case-{n}": [self._entry(chance, hole, drift) for _ in range(self.repeats)]
                        for n in range(self.cases[pack])
                    }

    def _entry(self, chance: random.Random, hole: float, drift: float) -> Entry:
        if chance.random() < hole:
            return chance.choice([None, "fatal"])
        if chance.random() < 0.1:
            return "failed"
        return chance.random() < 0.5 + drift

    def of(self, **wanted: str) -> list[tuple[Key, Mapping[str, Sequence[Entry]]]]:
        """Those of an agent, a pack or a model."""
        place = {"pack": 0, "agent": 1, "model": 2}
        return [
            (key, cases)
            for key, cases in self.entries.items()
            if all((key[place[name]] or "m-1") == value for name, value in wanted.items())
        ]

    def write(self, root: Path, set_id: str = "20261201-080000") -> OpenedSet:
        return OpenedSet(
            write_set(
                root, self._records, packs=self.packs, agents=self.agents, models=self.models,
                repeats=self.repeats, cases=lambda cell: self.cases[cell.pack.slug],
                set_id=set_id,
            )
        )  # fmt: skip

    def _records(self, cell: SetCell) -> Iterator[AttemptRecord]:
        key = cell.pack.slug, cell.agent.shown, cell.cell.model_ref
        for case, entries in self.entries[key].items():
            entry = entries[cell.cell.repeat - 1]
            if entry == "fatal":
                yield fatal(case)
            elif entry == "failed":
                yield failed(case)
            elif entry is not None:
                assert isinstance(entry, bool)
                yield a_record(case, entry, agent_s=duration(key, case, cell.cell.repeat))


def duration(key: Key, case: str, repeat: int) -> float:
    return round(random.Random(f"{key} {case} {repeat}").uniform(1, 60), 3)


def clustered(parts: Sequence[tuple[Key, Mapping[str, Sequence[Entry]]]], figure: Any) -> Any:
    return [
        (f"{key[0]} {case}", figure(entries))
        for key, cases in parts
        for case, entries in cases.items()
    ]


def assert_estimate(found: Mapping[str, Any], wanted: Estimate | None) -> None:
    if wanted is None:
        assert found["value"] is None
        return
    assert found["value"] == pytest.approx(float(wanted.value), abs=1e-11)
    assert (found["tasks"], found["clusters"]) == (wanted.tasks, wanted.clusters)
    assert found["standard_error"] == (
        None if wanted.error is None else pytest.approx(wanted.error, abs=1e-11)
    )
    assert found["interval"] == (
        None if wanted.interval is None else pytest.approx(list(wanted.interval), abs=1e-9)
    )


@pytest.fixture(params=SEEDS)
def made(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[RandomSet, ReadSet]:
    drawn = RandomSet(request.param)
    return drawn, read_set(drawn.write(tmp_path))


def test_scores_pass_at_k_and_pass_hat_k(made: tuple[RandomSet, ReadSet]) -> None:
    drawn, read = made
    report = read.report
    rows = [(report.whole, drawn.of())]
    rows += [(row, drawn.of(agent=str(row.names.agent))) for row in report.agents]
    rows += [(row, drawn.of(pack=str(row.names.pack)[:-2])) for row in report.packs]
    rows += [(row, drawn.of(model=str(row.names.model))) for row in report.models]
    rows += [
        (row, drawn.of(pack=str(row.names.pack)[:-2], agent=str(row.names.agent),
                       model=str(row.names.model)))
        for row in report.combinations
    ]  # fmt: skip
    k = drawn.repeats
    for row, parts in rows:
        by_name = {score["estimator"]: score["estimate"] for score in row.scores}
        wanted = {f"avg@{k}": mean_figure}
        if k > 1:
            wanted |= {f"pass@{k}": pass_figure, f"pass^{k}": always_figure}
        assert list(by_name) == list(wanted)
        for name, figure in wanted.items():
            assert_estimate(
                by_name[name], estimate(clustered(parts, figure), is_one_attempt=k == 1)
            )


def test_coverage_zero_and_bounds(made: tuple[RandomSet, ReadSet]) -> None:
    drawn, read = made
    for row in (read.report.whole, *read.report.agents, *read.report.combinations):
        names = {
            name: str(value)[:-2] if name == "pack" else str(value)
            for name, value in row.names.as_json().items()
        }
        cases = [entries for _, of in drawn.of(**names) for entries in of.values()]
        attempts = [entry for entries in cases for entry in entries]
        counts = [entry for entry in attempts if entry is not None and entry != "fatal"]
        head = row.headline
        assert head is not None
        assert head["coverage"] == {
            "planned": len(attempts), "counted": len(counts), "excluded": 0,
            "missing": len(attempts) - len(counts), "fraction": len(counts) / len(attempts),
        }  # fmt: skip
        low, high = (
            sum((filled(entries, value) for entries in cases), Fraction(0)) / len(cases)
            for value in (0, 1)
        )
        if len(counts) < len(attempts):
            assert head["bounds"] == pytest.approx([float(low), float(high)], abs=1e-11)
            assert head["failures_as_zero"] == pytest.approx(float(low), abs=1e-11)
            assert head["official"] is None
        else:
            assert head["official"] == pytest.approx(float(low), abs=1e-11)


def test_the_win_matrix(made: tuple[RandomSet, ReadSet]) -> None:
    drawn, read = made
    expected = []
    for number, first in enumerate(drawn.agents):
        for second in drawn.agents[number + 1 :]:
            pairs: list[tuple[str, Fraction]] = []
            for (pack, _, model), cases in drawn.of(agent=second):
                found = paired(drawn.entries[pack, first, model], cases)
                pairs += [(f"{pack} {case}", value) for case, value in found.items()]
            sums: dict[str, Fraction] = {}
            for cluster, value in pairs:
                sums[cluster] = sums.get(cluster, Fraction(0)) + value
            expected.append((first, second, pairs, sign_flip_p(list(sums.values()))))
    assert [(p.first, p.second) for p in read.report.wins] == [(a, b) for a, b, *_ in expected]
    tested = [p for *_, p in expected if p is not None]
    adjusted = iter(holm_of(tested)) if len(expected) > 1 else iter(())
    for pair, (_, _, pairs, p) in zip(read.report.wins, expected, strict=True):
        values = [value for _, value in pairs]
        assert (pair.tally.wins, pair.tally.ties, pair.tally.losses) == (
            sum(value > 0 for value in values),
            sum(value == 0 for value in values),
            sum(value < 0 for value in values),
        )
        if not values:
            assert (pair.difference, pair.test) == (None, None)
            continue
        assert pair.difference is not None
        assert pair.test is not None
        assert pair.difference.value == pytest.approx(float(sum(values) / len(values)), abs=1e-11)
        wanted = difference_interval(pairs)
        assert pair.difference.interval == (
            None if wanted is None else pytest.approx(wanted, abs=1e-9)
        )
        assert pair.test.p == (None if p is None else pytest.approx(float(p), abs=1e-9))
        if p is not None and len(expected) > 1:
            assert pair.p_holm == pytest.approx(float(next(adjusted)), abs=1e-9)


def difference_interval(pairs: Sequence[tuple[str, Fraction]]) -> tuple[float, float] | None:
    """Student's t with clustered errors; a difference of shares lies between -1 and 1."""
    if len({value for _, value in pairs}) == 1:
        return None
    # Halved and moved, differences are shares, and the slow estimate of those is at hand.
    shares = [(cluster, (value + 1) / 2) for cluster, value in pairs]
    found = estimate([*shares], is_one_attempt=False)
    if found is None or found.error is None or found.interval is None:
        return None
    low, high = found.interval
    return 2 * low - 1, 2 * high - 1


def test_costs_and_durations(made: tuple[RandomSet, ReadSet]) -> None:
    drawn, read = made
    for row in (read.report.whole, *read.report.agents):
        names = {name: str(value) for name, value in row.names.as_json().items()}
        times, executed = [], 0
        for key, cases in drawn.of(**names):
            for case, entries in cases.items():
                for repeat, entry in enumerate(entries, 1):
                    if entry is None:
                        continue
                    executed += 1
                    agent_s = 1.0 if isinstance(entry, str) else duration(key, case, repeat)
                    times.append(agent_s + 0.5)
        assert row.cost_usd == pytest.approx(executed * 0.001)
        assert row.durations == executed
        assert row.p50_s == pytest.approx(quantile_of(times, Fraction(1, 2)), abs=2e-6)
        assert row.p95_s == pytest.approx(quantile_of(times, Fraction(95, 100)), abs=2e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_comparison_of_sets(seed: int, tmp_path: Path) -> None:
    was, now = RandomSet(seed), RandomSet(seed, drift=0.3)
    base = read_set(was.write(tmp_path, "20261130-080000"), with_digests=True)
    this = read_set(now.write(tmp_path), with_digests=True)
    found = compare_sets(base, this)
    assert (found.added, found.removed) == ((), ())
    by_key = {key: paired(was.entries[key], cases) for key, cases in now.entries.items()}
    tests = {key: sign_flip_p(list(values.values())) for key, values in by_key.items()}
    keys = [key for key, p in tests.items() if p is not None]
    adjusted = dict(zip(keys, holm_of([tests[key] or Fraction(0) for key in keys]), strict=True))
    assert [one.key for one in found.combinations] == list(by_key)
    for one in found.combinations:
        values, p = by_key[one.key], tests[one.key]
        if not values:
            assert one.verdict == "untested"
            continue
        assert one.test is not None
        assert one.test.p == (None if p is None else pytest.approx(float(p), abs=1e-9))
        mean = sum(values.values(), Fraction(0)) / len(values)
        is_shown = p is not None and adjusted[one.key] < Fraction(1, 20) and mean != 0
        verdict = ("improved" if mean > 0 else "regressed") if is_shown else "unchanged"
        assert one.verdict == verdict
        changed = {case: float(value) for case, value in values.items() if value}
        assert {each.case: each.gain for each in one.changes} == pytest.approx(changed, abs=1e-9)
