"""Scores: what is official, what a missing attempt does, and how sure each figure is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from steelyard.components.benchmark import MetricSpec, binary, scalar
from steelyard.components.issues import Outcome
from steelyard.results.records import AttemptRecord
from steelyard.results.scores import NO_CLUSTER_VARIANCE, NO_VARIANCE, NOTHING, TOO_FEW, scores
from steelyard.results.scores import SKIPPED as SKIPPED_NOTE
from steelyard.results.tallies import Tallier, metric_specs
from steelyard.stats.intervals import wilson

FATAL = Outcome.FAILED_FATAL
ERROR = Outcome.FAILED_ERROR
SKIPPED = Outcome.SKIPPED_PASSED


def run(
    attempts: Sequence[Sequence[float | bool | Outcome]],
    *,
    spec: MetricSpec | None = None,
    k: int = 1,
    strategy: str = "avg",
    early_stop: bool | None = None,
    planned_tasks: int | None = None,
    categories: Sequence[str] | None = None,
    clusters: Sequence[str] | None = None,
) -> dict[str, dict[str, Any]]:
    """Score tasks, each a list of values or outcomes; give the scores by estimator."""
    spec = spec or binary("m")
    tallier = Tallier([spec])
    for task, values in enumerate(attempts):
        for attempt, value in enumerate(values):
            is_outcome = isinstance(value, Outcome)
            tallier.add(
                AttemptRecord(
                    f"t{task}",
                    attempt + 1,
                    value if isinstance(value, Outcome) else Outcome.SCORED,
                    metrics={} if is_outcome else {spec.name: value},  # type: ignore[dict-item]
                    category=categories[task] if categories else None,
                    cluster=clusters[task] if clusters else None,
                )
            )
    tasks = len(attempts) if planned_tasks is None else planned_tasks
    tally = tallier.result(
        primary=spec.name,
        plan={"k": k, "strategy": strategy, "early_stop": early_stop},
        planned_attempts=tasks * k,
    )
    return {score["estimator"]: score for score in scores(tally)}


def test_one_binary_attempt_a_task_has_wilsons_interval() -> None:
    score = run([[True]] * 8 + [[False]] * 2)["avg@1"]
    assert score["official"] == 0.8
    assert score["reference"] is None
    assert score["estimate"]["interval"] == pytest.approx(wilson(8, 10))
    assert score["estimate"]["interval_method"] == "wilson"
    assert score["bounds"] == [0.8, 0.8]
    assert score["failures_as_zero"] == 0.8
    assert score["coverage"]["fraction"] == 1.0


def test_a_number_that_is_0_or_1_at_every_task_has_the_interval_of_a_claim() -> None:
    values = [[1.0], [0.0], [0.0], [1.0]]
    claim = run([[value == 1.0 for value in task] for task in values])["avg@1"]["estimate"]
    assert run(values, spec=scalar("m", bounds=(0.0, 1.0)))["avg@1"]["estimate"] == claim
    # A count that happens to be 0 or 1 is no share of anything.
    assert run(values, spec=scalar("m"))["avg@1"]["estimate"]["interval_method"] == "t"
    half = run([*values, [0.5]], spec=scalar("m", bounds=(0.0, 1.0)))["avg@1"]["estimate"]
    assert half["interval_method"] == "t"


def test_means_of_several_attempts_have_a_t_interval_over_tasks() -> None:
    score = run([[True, True], [True, False], [False, False], [True, True]], k=2)["avg@2"]
    means = [1.0, 0.5, 0.0, 1.0]
    expected = scipy_stats.ttest_1samp(means, 0).confidence_interval(0.95)
    assert score["official"] == 0.625
    assert score["estimate"]["interval_method"] == "t"
    assert score["estimate"]["standard_error"] == pytest.approx(scipy_stats.sem(means))
    assert score["estimate"]["interval"] == pytest.approx([max(0.0, expected.low), 1.0])


def test_an_interval_ends_at_the_bounds_of_its_metric_and_no_sooner() -> None:
    free = run([[0.9], [1.0], [0.2]], spec=scalar("m"))["avg@1"]["estimate"]["interval"]
    cut = run([[0.9], [1.0], [0.2]], spec=scalar("m", bounds=(0.0, 1.0)))["avg@1"]
    assert free[0] < 0
    assert free[1] > 1
    assert cut["estimate"]["interval"] == [0.0, 1.0]


def test_clusters_of_the_benchmark_widen_the_error() -> None:
    values = [[True], [True], [True], [False], [False], [False]]
    alone = run(values)["avg@1"]["estimate"]
    clustered = run(values, clusters=["a", "a", "a", "b", "b", "b"])["avg@1"]["estimate"]
    assert clustered["standard_error"] == pytest.approx(0.5)
    assert clustered["standard_error"] > alone["standard_error"]
    assert clustered["interval_method"] == "t"
    assert clustered["clusters"] == 2


def test_pass_at_k_and_pass_hat_k_of_k_attempts() -> None:
    found = run([[True, False], [True, True], [False, False]], k=2)
    assert found["pass@2"]["official"] == pytest.approx(2 / 3)
    assert found["pass^2"]["official"] == pytest.approx(1 / 3)
    assert found["avg@2"]["is_headline"]
    assert not found["pass@2"]["is_headline"]


def test_strategy_pass_counts_what_was_skipped_and_gives_no_mean() -> None:
    attempts: list[list[bool | Outcome]] = [
        [True, SKIPPED, SKIPPED],
        [False, True, SKIPPED],
        [False, False, False],
    ]
    found = run(attempts, k=3, strategy="pass")
    assert list(found) == ["pass@3"]
    assert found["pass@3"]["official"] == pytest.approx(2 / 3)
    assert found["pass@3"]["is_headline"]


def stopped_early(
    extra: MetricSpec, attempts: Sequence[Sequence[tuple[bool, float | bool] | Outcome]], k: int
) -> dict[tuple[str, str], dict[str, Any]]:
    """Score tasks under strategy `pass`: each attempt (primary, extra); by (metric, estimator)."""
    tallier = Tallier([binary("correct"), extra])
    for task, ended in enumerate(attempts):
        for number, one in enumerate(ended, 1):
            if isinstance(one, Outcome):
                tallier.add(AttemptRecord(f"t{task}", number, one))
                continue
            values = {"correct": one[0], extra.name: one[1]}
            tallier.add(AttemptRecord(f"t{task}", number, Outcome.SCORED, metrics=values))
    tally = tallier.result(
        primary="correct", plan={"k": k, "strategy": "pass"}, planned_attempts=len(attempts) * k
    )
    return {(score["metric"], score["estimator"]): score for score in scores(tally)}


def test_a_mean_over_the_tasks_that_were_not_stopped_is_no_figure_at_all() -> None:
    # Task 0 stopped at its success: a mean of task 1 alone would be a mean of what failed.
    attempts = [[(True, 1.0), SKIPPED], [(False, 0.2), (False, 0.4)]]
    found = stopped_early(scalar("score", bounds=(0.0, 1.0)), attempts, k=2)
    assert found["correct", "pass@2"]["official"] == 0.5
    score = found["score", "avg@2"]
    assert (score["official"], score["reference"], score["failures_as_zero"]) == (None,) * 3
    assert score["estimate"]["value"] is None
    assert score["estimate"]["note"] == SKIPPED_NOTE
    assert score["categories"] == {}
    assert score["bounds"] == [pytest.approx(0.4), pytest.approx(0.65)]
    assert (score["coverage"]["counted"], score["coverage"]["missing"]) == (3, 1)


def test_a_mean_is_official_under_early_stop_where_nothing_was_skipped() -> None:
    attempts = [[(False, 0.0), (True, 1.0)], [(False, 0.2), (False, 0.4)]]
    score = stopped_early(scalar("score"), attempts, k=2)["score", "avg@2"]
    assert score["official"] == pytest.approx(0.4)


def test_a_success_of_the_primary_metric_is_none_of_another() -> None:
    attempts = [[(True, False), SKIPPED], [(False, False), (False, True)]]
    score = stopped_early(binary("tidy"), attempts, k=2)["tidy", "pass@2"]
    assert (score["official"], score["reference"]) == (None, None)
    assert score["estimate"]["note"] == SKIPPED_NOTE
    assert score["bounds"] == [0.5, 1.0]
    assert score["coverage"]["missing"] == 1


def test_another_metric_is_decided_by_a_success_of_its_own() -> None:
    attempts = [[(True, True), SKIPPED], [(False, False), (False, False)]]
    found = stopped_early(binary("tidy"), attempts, k=2)
    assert found["tidy", "pass@2"]["official"] == 0.5
    assert {estimator for _, estimator in found} == {"pass@2"}


def test_attempts_that_were_skipped_forbid_means_also_where_the_plan_is_lost() -> None:
    found = run([[True, SKIPPED], [False, False]], k=2)  # says strategy avg
    assert list(found) == ["pass@2"]


def test_strategy_pass_without_early_stop_gives_all_three() -> None:
    found = run([[True, False]], k=2, strategy="pass", early_stop=False)
    assert list(found) == ["pass@2", "avg@2", "pass^2"]


def test_a_fatal_attempt_takes_the_official_figure_away() -> None:
    score = run([[True], [True], [False], [FATAL]])["avg@1"]
    assert score["official"] is None
    assert score["reference"] == pytest.approx(2 / 3)
    assert score["failures_as_zero"] == 0.5
    assert score["bounds"] == [0.5, 0.75]
    assert score["coverage"]["counted"] == 3
    assert score["coverage"]["missing"] == 1


@pytest.mark.parametrize("outcome", [FATAL, Outcome.CANCELLED, Outcome.SKIPPED_BUDGET])
def test_what_does_not_count_is_never_official(outcome: Outcome) -> None:
    assert run([[True], [outcome]])["avg@1"]["official"] is None


@pytest.mark.parametrize("outcome", [ERROR, Outcome.TIMED_OUT])
def test_a_failure_of_the_agent_is_a_zero_of_a_binary_metric(outcome: Outcome) -> None:
    score = run([[True], [outcome]])["avg@1"]
    assert score["official"] == 0.5
    assert score["coverage"]["counted"] == 2


def test_a_benchmark_may_leave_failures_out_and_coverage_shows_it() -> None:
    score = run([[3.0], [5.0], [ERROR]], spec=scalar("m"))["avg@1"]
    assert score["official"] == 4.0
    assert score["coverage"]["excluded"] == 1
    assert score["coverage"]["counted"] == 2
    assert score["failures_as_zero"] == pytest.approx(8 / 3)


def test_a_failure_counts_by_the_benchmarks_own_rule() -> None:
    score = run([[3.0], [ERROR]], spec=scalar("m", on_failure=1.0))["avg@1"]
    assert score["official"] == 2.0


def test_tasks_that_never_started_are_missing() -> None:
    score = run([[True], [True]], planned_tasks=4)["avg@1"]
    assert score["official"] is None
    assert score["reference"] == 1.0
    assert score["bounds"] == [0.5, 1.0]
    assert score["coverage"]["missing"] == 2


def test_a_mean_with_an_attempt_missing_is_only_a_reference() -> None:
    score = run([[True, FATAL], [True, False]], k=2)["avg@2"]
    assert score["official"] is None
    assert score["reference"] == 0.75
    assert score["bounds"] == [0.5, 0.75]


def test_a_task_that_is_decided_counts_whatever_is_missing_of_it() -> None:
    found = run([[True, FATAL], [False, FATAL], [False, False]], k=2)
    assert found["pass@2"]["reference"] == 0.5  # the second may still pass
    assert found["pass@2"]["estimate"]["tasks"] == 2
    assert found["pass@2"]["bounds"] == [pytest.approx(1 / 3), pytest.approx(2 / 3)]
    assert found["pass^2"]["reference"] == 0.0  # the first may still pass twice
    assert found["pass^2"]["estimate"]["tasks"] == 2
    assert found["pass^2"]["bounds"] == [0.0, pytest.approx(1 / 3)]


def test_a_value_lies_within_its_bounds_after_an_interruption() -> None:
    interrupted: list[list[bool | Outcome]] = [[True, SKIPPED, SKIPPED]] * 4
    interrupted += [[False, False, False], [False, True, Outcome.CANCELLED]]
    score = run(interrupted, k=3, strategy="pass")["pass@3"]
    assert score["coverage"]["missing"] == 1
    assert score["reference"] == pytest.approx(5 / 6)
    assert score["estimate"]["tasks"] == 6
    assert score["bounds"] == [score["reference"], score["reference"]]


def test_an_unbounded_metric_with_missing_attempts_has_no_bounds() -> None:
    assert run([[3.0], [FATAL]], spec=scalar("m"))["avg@1"]["bounds"] is None


def test_where_less_is_better_worst_is_high_and_zero_would_flatter() -> None:
    spec = scalar("m", higher_is_better=False, bounds=(0.0, 10.0))
    score = run([[4.0], [FATAL]], spec=spec)["avg@1"]
    assert score["bounds"] == [7.0, 2.0]
    assert score["failures_as_zero"] is None


def test_a_binary_metric_where_less_is_better_has_no_pass_at_k() -> None:
    assert list(run([[True]], spec=binary("m", higher_is_better=False))) == ["avg@1"]


def test_a_scored_attempt_without_a_metric_is_missing_there() -> None:
    tallier = Tallier([binary("m"), scalar("extra")])
    tallier.add(AttemptRecord("t", 1, Outcome.SCORED, metrics={"m": True}))
    tally = tallier.result(primary="m", plan={"k": 1}, planned_attempts=1)
    by_name = {score["metric"]: score for score in scores(tally)}
    assert by_name["m"]["official"] == 1.0
    assert by_name["extra"]["official"] is None
    assert by_name["extra"]["estimate"]["note"] == NOTHING


def test_one_task_of_several_attempts_is_too_few_for_an_interval() -> None:
    estimate = run([[True, False]], k=2)["avg@2"]["estimate"]
    assert (estimate["value"], estimate["interval"], estimate["note"]) == (0.5, None, TOO_FEW)
    assert estimate["standard_error"] is None


def test_equal_values_have_no_interval_of_width_zero() -> None:
    estimate = run([[2.5], [2.5], [2.5]], spec=scalar("m"))["avg@1"]["estimate"]
    assert (estimate["interval"], estimate["note"]) == (None, NO_VARIANCE)
    assert estimate["standard_error"] is None


def test_sums_of_equal_values_in_another_order_are_equal() -> None:
    attempts = [[0.1, 0.2, 0.3], [0.3, 0.2, 0.1], [0.2, 0.3, 0.1]]
    assert 0.1 + 0.2 + 0.3 != 0.3 + 0.2 + 0.1
    estimate = run(attempts, spec=scalar("m"), k=3)["avg@3"]["estimate"]
    assert estimate["value"] == pytest.approx(0.2)
    assert (estimate["interval"], estimate["note"]) == (None, NO_VARIANCE)
    assert estimate["standard_error"] is None


def test_equal_clusters_of_unlike_tasks_are_not_called_tasks_of_one_value() -> None:
    estimate = run([[True], [False]] * 3, clusters=["a", "a", "b", "b", "c", "c"])["avg@1"]
    found = estimate["estimate"]
    assert (found["value"], found["interval"]) == (0.5, None)
    assert found["note"] == NO_CLUSTER_VARIANCE


@pytest.mark.parametrize("missing", [[FATAL, True, SKIPPED], [True, SKIPPED]])
def test_a_task_that_stopped_at_a_success_is_decided_whatever_is_missing_of_it(
    missing: Sequence[float | bool | Outcome],
) -> None:
    attempts: list[Sequence[float | bool | Outcome]] = [
        [False, False, False],
        missing,
        [True, SKIPPED, SKIPPED],
    ]
    score = run(attempts, k=3, strategy="pass")["pass@3"]
    assert score["official"] is None
    assert score["reference"] == score["failures_as_zero"] == pytest.approx(2 / 3)
    assert score["bounds"] == pytest.approx([2 / 3, 2 / 3])
    assert score["coverage"]["missing"] == 1


def test_where_every_task_passed_the_interval_still_has_a_width() -> None:
    estimate = run([[True, False]] * 10, k=2)["pass@2"]["estimate"]
    assert estimate["value"] == 1.0
    assert estimate["interval"] == pytest.approx(wilson(10, 10))


def test_no_tasks_at_all_is_no_zero() -> None:
    score = run([], planned_tasks=0)["avg@1"]
    assert score["official"] is None
    assert score["estimate"]["value"] is None
    assert score["coverage"]["fraction"] is None


def test_categories_have_intervals_too() -> None:
    score = run([[True], [False], [True]], categories=["b", "a", "b"])["avg@1"]
    assert list(score["categories"]) == ["a", "b"]
    assert score["categories"]["b"]["value"] == 1.0
    assert score["categories"]["b"]["interval"] == pytest.approx(wilson(2, 2))


def test_clusters_widen_the_error_within_a_category_too() -> None:
    values = [[True], [True], [False], [False], [True], [True]]
    clusters = ["a", "a", "b", "b", "c", "c"]
    category = run(values, categories=["x"] * 6, clusters=clusters)["avg@1"]["categories"]["x"]
    whole = run(values, clusters=clusters)["avg@1"]["estimate"]
    assert category == whole
    assert (category["clusters"], category["interval_method"]) == (3, "t")
    alone = run(values, categories=["x"] * 6)["avg@1"]["categories"]["x"]
    assert category["standard_error"] > alone["standard_error"]


def test_metric_specs_that_are_malformed_are_left_out() -> None:
    good = {"name": "m", "kind": "binary", "higher_is_better": True, "bounds": [0, 1],
            "on_failure": 0}  # fmt: skip
    assert metric_specs({"metrics": [good, {}, None, {**good, "bounds": [0]}]}) == (binary("m"),)
    assert metric_specs({}) == ()


attempt = st.sampled_from([True, False, FATAL, ERROR, Outcome.CANCELLED])


@settings(deadline=None)
@given(
    st.integers(1, 3).flatmap(
        lambda k: st.tuples(st.just(k), st.lists(st.lists(attempt, max_size=k), max_size=6))
    ),
    st.integers(0, 3),
)
def test_every_figure_lies_within_its_bounds_and_coverage_adds_up(
    drawn: tuple[int, list[list[bool | Outcome]]], unseen: int
) -> None:
    k, tasks = drawn
    tasks = [task for task in tasks if task]
    for score in run(tasks, k=k, planned_tasks=len(tasks) + unseen).values():
        coverage = score["coverage"]
        assert (
            coverage["counted"] + coverage["excluded"] + coverage["missing"]
            == (coverage["planned"])
        )
        if score["bounds"] is None:
            continue
        worst, best = score["bounds"]
        assert worst <= best
        assert worst - 1e-12 <= score["failures_as_zero"] <= best + 1e-12
        if score["official"] is not None:
            assert worst == best == score["official"]
        interval = score["estimate"]["interval"]
        if interval is not None:
            assert 0 <= interval[0] <= score["estimate"]["value"] <= interval[1] <= 1


@settings(deadline=None)
@given(
    st.sampled_from(
        [
            (binary("m"), [True, False]),
            (binary("m", higher_is_better=False), [True, False]),
            (scalar("m", bounds=(0.0, 1.0)), [0.0, 0.3, 1.0]),
            (scalar("m", higher_is_better=False, bounds=(-2.0, 5.0), on_failure=4.0), [-2.0, 1.0]),
            (MetricSpec("m", "binary", True, (0.0, 1.0), None), [True, False]),
        ]
    ),
    st.integers(1, 4),
    st.sampled_from([("avg", None), ("pass", None), ("pass", False)]),
    st.integers(0, 3),
    st.data(),
)
def test_a_value_always_lies_within_its_bounds(
    metric: tuple[MetricSpec, list[float | bool]],
    k: int,
    plan: tuple[str, bool | None],
    unseen: int,
    data: st.DataObject,
) -> None:
    spec, values = metric
    ended = st.sampled_from([*values, FATAL, ERROR, Outcome.TIMED_OUT, Outcome.CANCELLED])
    tasks = data.draw(st.lists(st.lists(ended, min_size=1, max_size=k), max_size=6))
    if plan == ("pass", None) and spec.higher_is_better:
        tasks = [_stopped(task, k) for task in tasks]
    found = run(
        tasks, spec=spec, k=k, strategy=plan[0], early_stop=plan[1],
        planned_tasks=len(tasks) + unseen,
    )  # fmt: skip
    for score in found.values():
        value, bounds = score["estimate"]["value"], score["bounds"]
        if value is not None and bounds is not None:
            assert min(bounds) <= value <= max(bounds), (score["estimator"], value, bounds)


def _stopped(task: Sequence[float | bool | Outcome], k: int) -> list[float | bool | Outcome]:
    """The same task under strategy `pass`: nothing after a success."""
    for number, value in enumerate(task, 1):
        if value is True:
            return [*task[:number], *[SKIPPED] * (k - number)]
    return list(task)
