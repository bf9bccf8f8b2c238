"""Racing, A/A calibration, interleaved blocks, drift, verdicts for CI."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from steelyard.fix.verify.blocks import interleaved
from steelyard.fix.verify.calibration import calibrate, drift
from steelyard.fix.verify.confirmation import TooFewRepetitions
from steelyard.fix.verify.constraints import Constraint
from steelyard.fix.verify.measured import Measured, Objective, Sample, measured_of
from steelyard.fix.verify.racing import Eliminated, race
from steelyard.fix.verify.verdict import Verdict, margin_of, overall, verdicts

LATENCY = Objective("latency_ms", "min", "ms")
QUALITY = Objective("quality", "max", "fraction")
BASE = [100.0, 103, 98, 101, 99, 102, 100.5, 97, 104, 101.5]


def latency(values: list[float], who: str = "c1") -> dict[str, Measured]:
    return {"latency_ms": measured_of(who, "latency_ms", values)}


def racers(count: int = 5, seed: int = 0, **shifts: float) -> dict[str, Mapping[str, Measured]]:
    generator = np.random.default_rng(seed)
    return {
        who: latency([v + shift + float(generator.normal(0, 1)) for v in BASE[:count]], who)
        for who, shift in {"c0": 0.0, **shifts}.items()
    }


def raced(
    measured: Mapping[str, Mapping[str, Measured]],
    objectives: tuple[Objective, ...] = (LATENCY,),
    constraints: tuple[Constraint, ...] = (),
) -> dict[str, Eliminated]:
    found = race(
        [who for who in measured if who != "c0"],
        "c0",
        measured,
        objectives,
        constraints,
        repetitions=10,
        anchor=latency(BASE, "c0"),
    )
    return {one.candidate: one for one in found}


# -- racing ------------------------------------------------------------------------------------


def test_who_is_clearly_worse_stops_early() -> None:
    found = raced(racers(c1=-20, c2=0, c3=40))
    assert "c3" in found
    assert found["c3"].rival in ("c0", "c1", "c2")
    assert found["c3"].after == 5
    assert "c1" not in found


def test_nobody_is_looked_at_before_five_pairs_nor_after_the_last() -> None:
    assert raced(racers(4, c1=-20, c3=90)) == {}
    assert raced(racers(10, c1=-20, c3=90)) == {}


def test_worse_in_one_objective_alone_is_a_tradeoff() -> None:
    measured = {
        who: {**row, "quality": measured_of(who, "quality", values)}
        for (who, row), values in zip(
            racers(c1=40).items(),
            ([0.90, 0.91, 0.92, 0.90, 0.93], [0.97, 0.99, 0.98, 0.96, 0.99]),
            strict=True,
        )
    }
    assert raced(measured, (LATENCY, QUALITY)) == {}
    assert set(raced(measured, (LATENCY,))) == {"c1"}


def test_a_constraint_that_must_fail_ends_the_race() -> None:
    rule = Constraint("latency_ms", "lte", 1.05, "baseline_ratio")
    found = raced(racers(6, c1=20, c2=0), constraints=(rule,))
    assert found["c1"].constraint == rule
    assert "c2" not in found
    # Five of ten on the wrong side are not yet a median: here the race itself decides.
    assert raced(racers(5, c1=20, c2=0), constraints=(rule,))["c1"].constraint is None


def test_who_always_loses_by_the_same_goes_without_a_p() -> None:
    measured = {"c0": latency([100.0] * 5, "c0"), "c1": latency([101.0] * 5)}
    assert set(raced(measured)) == {"c1"}
    assert raced({"c0": latency([100.0] * 5, "c0"), "c1": latency([100.0] * 5)}) == {}


def test_candidates_that_change_nothing_are_rarely_lost_whatever_is_looked_at() -> None:
    generator = np.random.default_rng(11)
    lost, runs = 0, 200
    for _ in range(runs):
        whole = {
            f"c{i}": [float(v) for v in generator.lognormal(0, 0.1, size=10)] for i in range(5)
        }
        gone: set[str] = set()
        for count in range(5, 10):
            racing = [who for who in whole if who != "c0" and who not in gone]
            part = {who: latency(whole[who][:count], who) for who in ["c0", *racing]}
            found = race(racing, "c0", part, [LATENCY], [], repetitions=10)
            gone |= {one.candidate for one in found}
        lost += len(gone)
    # Each of the four is lost in 5% of runs at most: 40 here; four standard errors above are 65.
    assert lost <= 65


def test_looking_after_every_block_costs_no_more_than_the_error_that_is_allowed() -> None:
    generator = np.random.default_rng(12)
    lost, runs = 0, 800
    for _ in range(runs):
        whole = {
            who: [float(v) for v in generator.lognormal(0, 0.1, size=10)] for who in ("c0", "c1")
        }
        lost += any(
            race(["c1"], "c0", {w: latency(v[:n], w) for w, v in whole.items()}, [LATENCY], [],
                 repetitions=10)
            for n in range(5, 10)
        )  # fmt: skip
    assert lost <= runs * 0.05


# -- calibration -------------------------------------------------------------------------------


def test_the_same_code_measured_twice_is_steady() -> None:
    generator = np.random.default_rng(5)
    again = [v + float(generator.normal(0, 1)) for v in BASE]
    (found,) = calibrate(latency(BASE, "c0"), latency(again, "c0"), [LATENCY])
    assert found.is_steady
    assert found.pairs == 10
    assert found.p is not None


def test_a_machine_that_drifts_is_found_out() -> None:
    slower = [v + 3 + i / 10 for i, v in enumerate(BASE)]
    (found,) = calibrate(latency(BASE, "c0"), latency(slower, "c0"), [LATENCY])
    assert not found.is_steady
    assert found.mean == pytest.approx(-3.45)
    (found,) = calibrate(latency([1.0] * 6), latency([2.0] * 6), [LATENCY])
    assert not found.is_steady
    assert found.p is None
    (found,) = calibrate(latency([1.0] * 6), latency([1.0] * 6), [LATENCY])
    assert found.is_steady
    assert found.is_deterministic


def test_calibration_pairs_seeds_across_blocks() -> None:
    def of_block(block: int, values: list[float]) -> dict[str, Measured]:
        rows = tuple(Sample(i, i, value, block) for i, value in enumerate(values))
        return {"latency_ms": Measured("c0", "latency_ms", rows)}

    (found,) = calibrate(of_block(0, BASE), of_block(1, BASE), [LATENCY])
    assert found.pairs == 10
    (found,) = calibrate({}, of_block(1, BASE), [LATENCY])
    assert found.pairs == 0
    assert found.is_steady


def test_a_trend_over_blocks_is_shown() -> None:
    rows = tuple(Sample(i, i, 100 + i, i) for i in range(8))
    found = drift(Measured("c0", "latency_ms", rows))
    assert found is not None
    assert found.tau == pytest.approx(1)
    assert found.p < 0.001
    assert drift(measured_of("c0", "latency_ms", BASE)) is None


# -- blocks ------------------------------------------------------------------------------------


def test_each_block_runs_everybody_once_in_an_order_of_its_own() -> None:
    names = ["c0", "c1", "c2", "c3"]
    found = interleaved(names, [11, 22, 33, 44, 55], seed=7, run="run-1", first=2)
    assert [block.index for block in found] == [2, 3, 4, 5, 6]
    assert [block.seed for block in found] == [11, 22, 33, 44, 55]
    assert all(sorted(block.order) == names for block in found)
    assert len({block.order for block in found}) > 2
    assert interleaved(names, [11, 22, 33, 44, 55], seed=7, run="run-1", first=2) == found
    other = interleaved(names, [11, 22, 33, 44, 55], seed=8, run="run-1", first=2)
    assert [block.order for block in other] != [block.order for block in found]


# -- verdicts ----------------------------------------------------------------------------------


def verdict_of(
    values: list[float], margin: float = 0.0, base: list[float] | None = None
) -> Verdict:
    (found,) = verdicts(
        latency(values, "head"),
        latency(base or BASE, "base"),
        [LATENCY],
        margins={"latency_ms": margin},
    )
    return found.verdict


def test_better_worse_and_inconclusive() -> None:
    assert verdict_of([v - 5 - i / 10 for i, v in enumerate(BASE)]) is Verdict.BETTER
    assert verdict_of([v + 5 + i / 10 for i, v in enumerate(BASE)]) is Verdict.WORSE
    wobble = [v + (-1) ** i * (1 + i / 10) for i, v in enumerate(BASE)]
    assert verdict_of(wobble) is Verdict.INCONCLUSIVE
    assert verdict_of(wobble, margin=3) is Verdict.EQUIVALENT
    assert verdict_of(wobble, margin=0.5) is Verdict.INCONCLUSIVE


def test_a_difference_within_the_margin_is_equivalent_however_sure() -> None:
    little = [v - 0.5 - i / 100 for i, v in enumerate(BASE)]
    assert verdict_of(little) is Verdict.BETTER
    assert verdict_of(little, margin=2) is Verdict.EQUIVALENT


def test_what_does_not_vary_is_decided_by_the_difference() -> None:
    same = [100.0] * 6
    assert verdict_of(same, base=same) is Verdict.EQUIVALENT
    assert verdict_of([99.0] * 6, base=same) is Verdict.BETTER
    assert verdict_of([101.0] * 6, base=same) is Verdict.WORSE
    assert verdict_of([101.0] * 6, margin=1, base=same) is Verdict.EQUIVALENT
    (found,) = verdicts(latency(same), latency([99.0] * 6), [LATENCY], margins={})
    assert found.p_adjusted is None
    assert found.comparison.interval is None


def test_a_verdict_of_fewer_than_six_pairs_is_refused() -> None:
    with pytest.raises(TooFewRepetitions):
        verdict_of(BASE[:5], base=BASE[:5])
    with pytest.raises(TooFewRepetitions):
        verdicts(latency(BASE), latency(BASE), [QUALITY], margins={})


def test_the_whole_is_worse_where_anything_is() -> None:
    head = {
        "latency_ms": measured_of("h", "latency_ms", [v - 5 - i / 10 for i, v in enumerate(BASE)]),
        "quality": measured_of("h", "quality", [0.90 - i / 1000 for i in range(10)]),
    }
    base = {
        "latency_ms": measured_of("b", "latency_ms", BASE),
        "quality": measured_of("b", "quality", [0.97 + i / 1000 for i in range(10)]),
    }
    found = verdicts(head, base, [LATENCY, QUALITY], margins={})
    assert [one.verdict for one in found] == [Verdict.BETTER, Verdict.WORSE]
    assert [one.p_adjusted for one in found] == [2 * 2 * 2**-10] * 2
    assert overall(found) is Verdict.WORSE
    assert overall(found[:1]) is Verdict.BETTER
    assert overall([]) is Verdict.INCONCLUSIVE


def test_a_margin_may_be_a_share_of_base() -> None:
    assert margin_of(0.02, measured_of("b", "m", [50.0, 100.0, 150.0])) == 2
    assert margin_of(0.02, measured_of("b", "m", [])) == 0


def test_verdicts_on_no_effect_are_seldom_better_or_worse() -> None:
    generator = np.random.default_rng(2)
    wrong = 0
    for _ in range(150):
        head, base = generator.normal(100, 5, size=(2, 10)).tolist()
        wrong += verdict_of(head, base=base) in (Verdict.BETTER, Verdict.WORSE)
    assert wrong <= 150 * 0.05 + 4 * (150 * 0.05 * 0.95) ** 0.5
