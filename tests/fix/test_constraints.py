"""Hard constraints: three answers, anchored to the original baseline."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.fix.verify.constraints import (
    Answer,
    Constraint,
    RatioOfNothing,
    check_ratios,
    is_certain_to_fail,
    judge,
    judge_all,
)
from steelyard.fix.verify.measured import Measured, Sample, measured_of, paired, spread

RATIO = Constraint("latency_ms", "lte", 1.05, "baseline_ratio")
LEAST = Constraint("quality", "gte", 0.95)


def measured(*values: float, who: str = "c1", metric: str = "latency_ms") -> Measured:
    return measured_of(who, metric, values)


def test_a_ratio_is_certified_where_its_upper_bound_keeps_to_it() -> None:
    baseline = measured(100, 100, 100, 100, 100, who="c0")
    found = judge(RATIO, measured(102, 99, 104, 101, 103), baseline)
    assert found.answer is Answer.CERTIFIED
    assert found.value == pytest.approx(1.02)
    assert found.sure_bound == pytest.approx(1.036423, abs=5e-7)
    assert found.is_kept
    fewer = judge(RATIO, measured(102, 99, 104), measured(100, 100, 100, who="c0"))
    assert fewer.answer is Answer.MET
    assert fewer.sure_bound == pytest.approx(1.059890, abs=5e-7)
    assert fewer.is_kept


def test_the_medians_decide_whether_it_is_met() -> None:
    baseline = measured(100, 100, 100, who="c0")
    found = judge(RATIO, measured(104, 106, 105.5), baseline)
    assert found.answer is Answer.FAILED
    assert found.value == pytest.approx(1.055)
    assert not found.is_kept
    assert judge(RATIO, measured(1, 105, 900), baseline).answer is Answer.MET


def test_ratios_are_taken_seed_by_seed() -> None:
    """A seed that is slow for both cancels out: apart they vary, together they do not."""
    baseline = measured(100, 200, 400, 800, who="c0")
    found = judge(RATIO, measured(101, 203, 402, 812), baseline)
    assert found.sure_bound is not None
    assert found.sure_bound < 1.03
    assert found.answer is Answer.CERTIFIED


def test_an_absolute_bound_looks_at_the_candidate_alone() -> None:
    found = judge(LEAST, measured(0.97, 0.98, 0.96, metric="quality"), None)
    assert found.value == 0.97
    assert found.sure_bound == pytest.approx(0.97 - 2.919986 * 0.01 / 3**0.5, abs=1e-6)
    assert found.answer is Answer.CERTIFIED
    assert judge(LEAST, measured(0.95, 0.9, 0.99, metric="quality"), None).answer is Answer.MET
    assert judge(LEAST, measured(0.94, 0.9, 0.99, metric="quality"), None).answer is Answer.FAILED


def test_a_delta_is_a_difference_from_the_baselines_median() -> None:
    rule = Constraint("latency_ms", "lte", 5, "baseline_delta")
    baseline = measured(100, 110, 120, who="c0")
    assert judge(rule, measured(104, 115, 125), baseline).value == 5
    assert judge(rule, measured(104, 115, 125), baseline).answer is Answer.MET
    assert judge(rule, measured(101, 111, 122), baseline).answer is Answer.CERTIFIED
    assert judge(rule, measured(104, 116, 125), baseline).answer is Answer.FAILED


def test_what_does_not_vary_is_met_and_said_to_be_deterministic() -> None:
    found = judge(LEAST, measured(0.97, 0.97, 0.97, metric="quality"), None)
    assert found.answer is Answer.MET
    assert found.is_deterministic
    assert found.sure_bound is None
    one = judge(LEAST, measured(0.97, metric="quality"), None)
    assert one.answer is Answer.MET
    assert not one.is_deterministic


def test_what_was_not_measured_keeps_to_nothing() -> None:
    assert judge(LEAST, None, None).answer is Answer.FAILED
    assert judge(LEAST, measured(metric="quality"), None).reason == "it was not measured"
    assert judge(RATIO, measured(1), None).reason == "the baseline was not measured"
    found = judge_all([RATIO, LEAST], {"latency_ms": measured(1)}, {"latency_ms": measured(1)})
    assert [one.answer for one in found] == [Answer.MET, Answer.FAILED]


@pytest.mark.parametrize("anchor", [0.0, -1.0])
def test_a_ratio_to_nothing_is_refused(anchor: float) -> None:
    baseline = measured(anchor, anchor, anchor, who="c0")
    with pytest.raises(RatioOfNothing, match="use baseline_delta or absolute"):
        judge(RATIO, measured(1, 1, 1), baseline)
    assert len(check_ratios([RATIO, LEAST], {"latency_ms": baseline})) == 1
    assert check_ratios([RATIO], {"latency_ms": measured(1.0)}) == []


def test_a_ratio_that_means_nothing_on_one_seed_is_not_certified() -> None:
    found = judge(RATIO, measured(1, 2, 3), measured(0, 2, 3, who="c0"))
    assert found.answer is Answer.MET
    assert found.sure_bound is None


def test_a_constraint_says_itself_as_people_would() -> None:
    assert str(RATIO) == "latency_ms ≤ 1.05 × baseline"
    assert str(LEAST) == "quality ≥ 0.95"
    assert str(Constraint("m", "lte", -2, "baseline_delta")) == "m ≤ baseline -2"


# -- certain to fail ---------------------------------------------------------------------------


@settings(deadline=None)
@given(
    st.lists(st.integers(0, 9), max_size=5),
    st.integers(0, 4),
    st.integers(1, 8),
    st.sampled_from(["gte", "lte"]),
    st.sampled_from(["absolute", "baseline_delta", "baseline_ratio"]),
)
def test_certain_to_fail_is_to_fail_whatever_is_still_to_come(
    so_far: list[int], more: int, bound: int, op: str, reference: str
) -> None:
    rule = Constraint("m", op, float(bound), reference)  # type: ignore[arg-type]
    baseline = measured_of("c0", "m", [2.0] * (len(so_far) + more))
    seen = measured_of("c1", "m", [float(value) for value in so_far])
    planned = len(so_far) + more
    kindest = 1e6 if op == "gte" else -1e6
    final = measured_of("c1", "m", [*map(float, so_far), *[kindest] * more])
    can_be_kept = bool(planned) and judge(rule, final, baseline).is_kept
    if is_certain_to_fail(rule, seen, baseline, planned):
        assert not can_be_kept
    elif planned % 2 == 1:
        assert can_be_kept


def test_nothing_is_certain_without_the_baseline() -> None:
    assert not is_certain_to_fail(RATIO, measured(900, 900, 900), None, 3)
    assert not is_certain_to_fail(RATIO, measured(900, 900, 900), measured(0.0), 3)
    assert is_certain_to_fail(RATIO, measured(900, 900), measured(1, 1, 1), 3)


# -- what was measured -------------------------------------------------------------------------


def test_the_median_and_the_range_that_was_seen() -> None:
    found = spread(measured(3, 1, 2, 10))
    assert found is not None
    assert (found.median, found.low, found.high, found.count) == (2.5, 1, 10, 4)
    assert spread(measured()) is None


def test_samples_pair_by_seed_and_block() -> None:
    ours = Measured("a", "m", (Sample(0, 7, 1.0), Sample(1, 8, 2.0), Sample(2, 9, 3.0)))
    theirs = Measured("b", "m", (Sample(5, 9, 30.0), Sample(6, 7, 10.0), Sample(7, 8, 0.0, 1)))
    found = paired(ours, theirs)
    assert found.ours == (1.0, 3.0)
    assert found.theirs == (10.0, 30.0)
    assert found.unpaired == 2
    with pytest.raises(ValueError, match="cannot be compared"):
        paired(ours, measured_of("b", "other", [1.0]))


def test_a_seed_counts_once_and_a_value_is_a_number() -> None:
    with pytest.raises(ValueError, match="measured twice"):
        measured_of("a", "m", [1.0, 2.0], [7, 7])
    with pytest.raises(ValueError, match="not finite"):
        measured_of("a", "m", [float("nan")])
