"""Runs are compared task by task, and refused where they answer different questions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from steelyard.config.errors import BadInput
from steelyard.results.comparable import DifferentTasks, NotComparable, UnknownMetric
from steelyard.results.comparison import ALL_SAME, ONE_TASK, Compared, compare_runs
from steelyard.results.comparison_json import comparison_json
from steelyard.results.lines import encode
from steelyard.stats.paired import Tally
from tests.results.comparing import ERROR, FATAL, NO, YES, a_document, a_side, scalar_metric

A = [0.9, 0.8, 0.7, 0.6, 0.95, 0.5, 0.85, 0.4]
B = [0.92, 0.84, 0.69, 0.66, 0.97, 0.55, 0.86, 0.47]
QUALITY = [scalar_metric("quality", higher_is_better=True, bounds=[0.0, 1.0])]


def numbered(values: Any) -> dict[str, list[Any]]:
    return {f"t{number:02}": [value] for number, value in enumerate(values)}


def compared(tmp_path: Path, a: Any, b: Any, **changes: Any) -> Compared:
    first = a_side(tmp_path, "a", a, **changes)
    second = a_side(tmp_path, "b", b, **changes)
    return compare_runs([first, second])[0]


# -- figures -----------------------------------------------------------------------------------


def test_the_difference_is_paired(tmp_path: Path) -> None:
    found = compared(
        tmp_path, numbered(A), numbered(B), metric="quality", document=a_document(metrics=QUALITY)
    )
    assert found.difference.value == pytest.approx(0.0325)
    assert found.difference.standard_error == pytest.approx(0.009590, abs=5e-7)
    assert found.difference.interval == pytest.approx((0.0098, 0.0552), abs=1e-4)
    assert found.tally == Tally(7, 0, 1)
    assert (found.test.name, found.test.resamples) == ("sign_flip", None)
    assert found.test.p == pytest.approx(6 / 256)
    assert found.is_official


def test_one_yes_or_no_a_task_is_mcnemars(tmp_path: Path) -> None:
    a = numbered([YES] * 3 + [NO] * 12 + [YES] * 5)
    b = numbered([NO] * 3 + [YES] * 12 + [YES] * 5)
    found = compared(tmp_path, a, b)
    assert (found.test.name, found.test.p) == ("mcnemar", pytest.approx(0.035156, abs=5e-7))
    assert found.tally == Tally(12, 5, 3)
    assert found.difference.value == pytest.approx(9 / 20)


def test_several_attempts_become_task_means(tmp_path: Path) -> None:
    a = {"x": [YES, NO], "y": [NO, NO], "z": [YES, YES]}
    b = {"x": [YES, YES], "y": [NO, YES], "z": [YES, YES]}
    found = compared(tmp_path, a, b)
    assert found.asked.label == "avg@2"
    assert [pair.difference for pair in found.pairs] == [0.5, 0.5, 0.0]
    assert (found.test.name, found.test.p) == ("sign_flip", pytest.approx(0.5))


def test_runs_that_stop_at_the_first_success_are_compared_by_pass_at_k(tmp_path: Path) -> None:
    document = a_document(k=2, strategy="pass")
    a = {"x": [YES, "skipped_passed"], "y": [NO, NO], "z": [NO, NO]}
    b = {"x": [NO, YES], "y": [YES, "skipped_passed"], "z": [NO, NO]}
    found = compared(tmp_path, a, b, document=document)
    assert found.asked.label == "pass@2"
    assert [pair.difference for pair in found.pairs] == [0.0, 1.0, 0.0]
    assert found.is_official


def test_clusters_widen_the_interval_and_are_flipped_whole(tmp_path: Path) -> None:
    a, b = numbered([NO] * 6 + [YES] * 6), numbered([YES] * 5 + [NO] + [YES] * 6)
    clusters = {task_id: "abcd"[number // 3] for number, task_id in enumerate(a)}
    alone = compared(tmp_path / "alone", a, b)
    grouped = compared(tmp_path / "grouped", a, b, clusters=clusters)
    assert grouped.difference.clusters == 4
    assert alone.difference.standard_error < grouped.difference.standard_error  # type: ignore[operator]
    assert grouped.test.name == "sign_flip"
    assert grouped.test.p == pytest.approx(0.5)  # two clusters differ


def test_less_may_be_better(tmp_path: Path) -> None:
    document = a_document(metrics=[scalar_metric()])
    found = compared(
        tmp_path, numbered([5.0, 4.0, 6.0]), numbered([4.0, 4.0, 7.5]), metric="latency",
        document=document,
    )  # fmt: skip
    assert found.tally == Tally(1, 1, 1)
    assert found.gain == pytest.approx(-found.difference.value)
    low, high = found.difference.interval or (0, 0)
    assert found.gain_interval == (-high, -low)
    assert [pair.task_id for pair in found.largest(1)] == ["t02"]


def test_differences_that_do_not_vary_have_no_interval_and_say_why(tmp_path: Path) -> None:
    same = compared(tmp_path / "same", numbered([YES, NO]), numbered([YES, NO]))
    assert (same.difference.interval, same.difference.note) == (None, ALL_SAME)
    assert (same.test.p, same.detectable) == (None, None)
    assert "no task differs" in (same.test.note or "")
    one = compared(tmp_path / "one", numbered([YES]), numbered([NO]))
    assert (one.difference.interval, one.difference.note) == (None, ONE_TASK)


def test_an_interval_ends_where_differences_must(tmp_path: Path) -> None:
    found = compared(tmp_path, numbered([NO] * 4), numbered([YES, YES, YES, NO]))
    low, high = found.difference.interval or (0.0, 0.0)
    assert low < 0
    assert high == 1.0


def test_cost_and_time_stand_beside(tmp_path: Path) -> None:
    figures = numbered([YES, NO, YES])
    first = a_side(tmp_path, "a", figures, cost_usd=0.001, agent_s=1.0)
    second = a_side(tmp_path, "b", figures, cost_usd=0.003, agent_s=0.5)
    third = a_side(tmp_path, "c", figures, cost_usd=None)
    found, unpriced = compare_runs([first, second, third])
    assert found.cost_usd is not None
    assert found.agent_s is not None
    assert found.cost_usd.value == pytest.approx(0.002)
    assert found.agent_s.value == pytest.approx(-0.5)
    assert unpriced.cost_usd is None


def test_categories_have_their_own_differences(tmp_path: Path) -> None:
    a, b = numbered([NO, NO, YES, YES]), numbered([YES, NO, YES, NO])
    found = compared(tmp_path, a, b, categories={"t00": "x", "t01": "x", "t02": "y", "t03": "y"})
    assert {name: each[0].value for name, each in found.categories.items()} == {"x": 0.5, "y": -0.5}
    assert found.categories["y"][1] == Tally(0, 1, 1)


def test_the_other_way_round_all_is_mirrored(tmp_path: Path) -> None:
    first = a_side(
        tmp_path, "a", {"x": [YES, NO], "y": [NO, NO], "z": [NO, FATAL], "w": [YES, YES]}
    )
    second = a_side(tmp_path, "b", {"x": [YES, YES], "y": [YES, NO], "z": [NO, NO], "w": [NO, YES]})
    (forth,) = compare_runs([first, second])
    (back,) = compare_runs([second, first])
    assert back.difference.value == pytest.approx(-forth.difference.value)
    assert back.test.p == pytest.approx(forth.test.p)
    assert (back.tally.wins, back.tally.losses) == (forth.tally.losses, forth.tally.wins)
    low, high = forth.bounds or (0.0, 0.0)
    assert back.bounds == pytest.approx((-high, -low))


def test_several_runs_are_adjusted_by_holm(tmp_path: Path) -> None:
    base = a_side(tmp_path, "a", numbered([NO] * 12))
    others = [
        a_side(tmp_path, f"b{wins}", numbered([YES] * wins + [NO] * (12 - wins)))
        for wins in (0, 6, 10)
    ]
    none, six, ten = compare_runs([base, *others])
    assert (none.test.p, none.p_holm) == (None, None)
    assert ten.p_holm == pytest.approx(2 * (ten.test.p or 0))
    assert six.p_holm == pytest.approx(six.test.p)
    (alone,) = compare_runs([base, others[1]])
    assert alone.p_holm is None


# -- what is missing ---------------------------------------------------------------------------


def test_missing_attempts_bound_the_difference(tmp_path: Path) -> None:
    a = {"x": [YES], "y": [NO], "z": [YES], "w": [NO]}
    b = {"x": [YES], "y": [YES], "z": [FATAL], "w": [ERROR]}
    found = compared(tmp_path, a, b)
    assert not found.is_official
    assert [pair.task_id for pair in found.pairs] == ["x", "y", "w"]  # an ERROR counts as 0
    assert found.unpaired == 1
    assert found.bounds == pytest.approx((0 / 4, 1 / 4))  # z: -1 or 0
    assert any("not official: 3 of 4" in warning for warning in found.warnings)
    assert any("coverage differs: 100.0% and 75.0%" in warning for warning in found.warnings)


def test_a_task_without_a_record_counts_with_its_whole_range(tmp_path: Path) -> None:
    a = a_side(tmp_path, "a", {"x": [YES], "y": [YES]}, tasks=2)
    b = a_side(tmp_path, "b", {"x": [YES]}, tasks=2)
    (found,) = compare_runs([a, b])
    assert found.bounds == pytest.approx((-0.5, 0.0))
    both = a_side(tmp_path / "both", "a", {"x": [YES]}, tasks=2)
    (unknown,) = compare_runs([both, b])
    assert unknown.bounds == pytest.approx((-0.5, 0.5))


def test_without_bounds_of_the_metric_missing_attempts_could_make_anything(tmp_path: Path) -> None:
    document = a_document(metrics=[scalar_metric()])
    found = compared(
        tmp_path, {"x": [1.0], "y": [2.0]}, {"x": [1.0], "y": [FATAL]}, metric="latency",
        document=document,
    )  # fmt: skip
    assert found.bounds is None


def test_an_official_difference_is_its_own_bound(tmp_path: Path) -> None:
    found = compared(tmp_path, numbered([YES, NO]), numbered([NO, NO]))
    assert found.bounds == pytest.approx((found.difference.value,) * 2)


def test_failures_that_the_benchmark_leaves_out_pair_with_nothing(tmp_path: Path) -> None:
    document = a_document(metrics=[scalar_metric()])
    found = compared(
        tmp_path, {"x": [1.0], "y": [2.0]}, {"x": [3.0], "y": [ERROR]}, metric="latency",
        document=document,
    )  # fmt: skip
    assert [pair.task_id for pair in found.pairs] == ["x"]
    assert found.bounds == (2.0, 2.0)


def test_tasks_that_one_run_alone_has_are_named(tmp_path: Path) -> None:
    first = a_side(tmp_path, "a", {"x": [YES], "y": [YES]})
    second = a_side(tmp_path, "b", {"x": [YES], "z": [YES]})
    (found,) = compare_runs([first, second])
    assert (found.only_first, found.only_second) == (("y",), ("z",))
    assert any(
        "1 task in the first run alone, 1 in the second" in warning for warning in found.warnings
    )
    assert found.bounds == (0.0, 0.0)  # of the tasks that both planned


def test_other_numbers_of_attempts_are_compared_with_a_warning(tmp_path: Path) -> None:
    first = a_side(tmp_path, "a", {"x": [YES, NO], "y": [NO, NO]})
    second = a_side(tmp_path, "b", {"x": [YES], "y": [NO]})
    (found,) = compare_runs([first, second])
    assert found.asked.label == "avg"
    assert any("k = 2 and k = 1" in warning for warning in found.warnings)


def test_reused_attempts_are_said_to_be_the_same(tmp_path: Path) -> None:
    first = a_side(tmp_path, "a", numbered([YES, NO]))
    origin = {"run_id": "a", "path": "elsewhere", "cost_usd": 0.0}
    second = a_side(tmp_path, "b", numbered([YES, NO]), reused_from=origin)
    (found,) = compare_runs([first, second])
    assert any("2 attempts of the second run were taken" in w for w in found.warnings)


# -- what is refused ---------------------------------------------------------------------------


def refused(*roots: Path, **how: Any) -> str:
    with pytest.raises(BadInput) as error:
        compare_runs(list(roots), **how)
    assert error.value.exit_status == 2
    assert error.value.problems[0].remedy
    return str(error.value)


def test_other_task_contents_are_refused_and_named(tmp_path: Path) -> None:
    first = a_side(tmp_path, "a", numbered([YES, NO, YES]))
    second = a_side(tmp_path, "b", numbered([YES, NO, YES]), contents={"t01": "f" * 32})
    with pytest.raises(DifferentTasks, match=r"content of 1 of 3 tasks differs \('t01'\)"):
        compare_runs([first, second])
    (found,) = compare_runs([first, second], common_only=True)
    assert [pair.task_id for pair in found.pairs] == ["t00", "t02"]
    assert found.common.differing == ("t01",)


def test_another_version_is_refused_and_says_which_fields_differ(tmp_path: Path) -> None:
    figures = numbered([YES, NO])
    first = a_side(tmp_path, "a", figures, document=a_document(params={"form": "x"}))
    changed = a_document(version="2", params={"form": "y"})
    contents = dict.fromkeys(figures, "f" * 32)
    second = a_side(tmp_path, "b", figures, document=changed, contents=contents)
    said = refused(first, second)
    assert "benchmark.version is '1' and '2'" in said
    assert "benchmark.params.form is 'x' and 'y'" in said
    (found,) = compare_runs([first, second], common_only=True)
    assert len(found.pairs) == 2
    assert any("cannot be told" in warning for warning in found.warnings)


def test_another_prompt_is_seen_where_model_and_harness_are_the_same(tmp_path: Path) -> None:
    first = a_side(tmp_path, "a", numbered([YES]), generation="1" * 32)
    second = a_side(tmp_path, "b", numbered([YES]), generation="2" * 32)
    assert "content of 1 of 1 tasks differs" in refused(first, second)
    other = a_document(model="another")
    third = a_side(tmp_path, "c", numbered([YES]), generation="2" * 32, document=other)
    assert compare_runs([first, third])  # the model is why they differ


def test_another_prompt_is_seen_though_the_model_is_another_too(tmp_path: Path) -> None:
    other = a_document(model="another")
    shown = {"t00": "a" * 32, "t01": "b" * 32}
    first = a_side(tmp_path, "a", numbered([YES, NO]), generation="1" * 32, shown=shown)
    changed = {**shown, "t01": "c" * 32}
    second = a_side(
        tmp_path, "b", numbered([YES, YES]), generation="2" * 32, shown=changed, document=other
    )
    assert "content of 1 of 2 tasks differs ('t01')" in refused(first, second)
    (found,) = compare_runs([first, second], common_only=True)
    assert [pair.task_id for pair in found.pairs] == ["t00"]
    same = a_side(
        tmp_path, "c", numbered([YES, YES]), generation="2" * 32, shown=shown, document=other
    )
    assert len(compare_runs([first, same])[0].pairs) == 2


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"document": a_document(benchmark="other")}, "the benchmarks differ: 'toy'"),
        (
            {"document": a_document(metrics=[scalar_metric("accuracy", higher_is_better=True)])},
            "the kind of 'accuracy' differs: binary",
        ),
        ({"document": a_document(metrics=QUALITY)}, "the primary metrics differ: 'accuracy'"),
    ],
    ids=["benchmark", "kind", "primary"],
)
def test_other_questions_are_refused(changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    first = a_side(tmp_path, "a", numbered([YES, NO]))
    second = a_side(tmp_path, "b", numbered([YES, NO]), **changes)
    assert said in refused(first, second)


def test_another_direction_is_refused(tmp_path: Path) -> None:
    roots = [
        a_side(
            tmp_path, name, numbered([1.0]), metric="latency",
            document=a_document(metrics=[scalar_metric(higher_is_better=higher)]),
        )
        for name, higher in (("a", True), ("b", False))
    ]  # fmt: skip
    assert "the direction of 'latency' differs: higher is better" in refused(*roots)


def test_no_common_task_is_refused(tmp_path: Path) -> None:
    first = a_side(tmp_path, "a", {"x": [YES]})
    second = a_side(tmp_path, "b", {"y": [YES]})
    assert "no task has a record in both" in refused(first, second)
    third = a_side(tmp_path, "c", {"x": [YES]}, contents={"x": "f" * 32})
    assert "no task is the same" in refused(first, third, common_only=True)
    broken = a_side(tmp_path, "d", {"x": [FATAL]})
    assert "no task has a value" in refused(first, broken)


def test_an_unknown_metric_offers_the_nearest(tmp_path: Path) -> None:
    roots = [a_side(tmp_path, name, numbered([YES])) for name in "ab"]
    with pytest.raises(UnknownMetric, match="did you mean 'accuracy'"):
        compare_runs(roots, metric="acuracy")


def test_a_run_is_not_compared_with_itself(tmp_path: Path) -> None:
    first = a_side(tmp_path, "a", numbered([YES]))
    link = tmp_path / "link"
    link.symlink_to(first)
    assert "is the same run as" in refused(first, link)
    assert "is the same run as" in refused(first, first)


def test_stopped_tasks_have_no_mean_of_another_metric(tmp_path: Path) -> None:
    metrics = [*a_document()["benchmark_info"]["metrics"], *QUALITY]
    document = a_document(k=2, strategy="pass", metrics=metrics)
    roots = [
        a_side(tmp_path, name, {"x": [YES, "skipped_passed"]}, document=document) for name in "ab"
    ]
    assert "stopped tasks at their first success" in refused(*roots, metric="quality")
    other = a_side(
        tmp_path, "c", {"x": [YES, "skipped_passed"]},
        document=a_document(k=3, strategy="pass", metrics=metrics),
    )  # fmt: skip
    assert "pass@k of different k" in refused(roots[0], other)


@pytest.mark.parametrize("content", [None, b"", b"{}", b'{"schema": "run/9"}', b"\x00\xff"])
def test_what_is_no_run_is_refused(content: bytes | None, tmp_path: Path) -> None:
    first = a_side(tmp_path, "a", numbered([YES]))
    other = tmp_path / "other"
    other.mkdir()
    if content is not None:
        (other / "run.json").write_bytes(content)
    refused(first, other)
    refused(other, first)


def test_a_torn_run_is_compared_as_far_as_it_is_whole(tmp_path: Path) -> None:
    first = a_side(tmp_path, "a", numbered([YES, NO, YES]))
    second = a_side(tmp_path, "b", numbered([YES, YES, YES]))
    journal = second / "attempts.jsonl"
    journal.write_bytes(journal.read_bytes()[:-3])
    (found,) = compare_runs([first, second])
    assert [pair.task_id for pair in found.pairs] == ["t00", "t01"]
    assert any("torn" in warning for warning in found.warnings)


def test_a_value_that_is_no_number_is_left_out_with_a_warning(tmp_path: Path) -> None:
    first = a_side(tmp_path, "a", numbered([YES, NO, YES]))
    second = a_side(tmp_path, "b", numbered([YES, YES, YES]))
    journal = second / "attempts.jsonl"
    lines = journal.read_bytes().split(b"\n")[:-1]
    record = orjson.loads(lines[1].partition(b"\t")[0])
    record["metrics"]["accuracy"] = "NaN"
    lines[1] = encode(record).rstrip(b"\n")
    journal.write_bytes(b"\n".join(lines) + b"\n")
    (found,) = compare_runs([first, second])
    assert [pair.task_id for pair in found.pairs] == ["t00", "t02"]
    assert not found.is_official


def test_a_run_that_lost_its_metrics_is_refused(tmp_path: Path) -> None:
    first = a_side(tmp_path, "a", numbered([YES]))
    lost = {**a_document(), "benchmark_info": []}
    second = a_side(tmp_path, "b", numbered([YES]), document=lost)
    assert "names no metrics" in refused(first, second)


def test_a_run_without_any_record_is_refused(tmp_path: Path) -> None:
    first = a_side(tmp_path, "a", numbered([YES]))
    empty = a_side(tmp_path, "b", {}, tasks=3)
    with pytest.raises(NotComparable, match="no task has a record in both"):
        compare_runs([first, empty])


# -- JSON --------------------------------------------------------------------------------------


def test_no_value_of_the_document_stands_without_its_interval_or_a_note(tmp_path: Path) -> None:
    found = compared(
        tmp_path, numbered([YES, NO, YES, NO]), numbered([YES, YES, YES, FATAL]),
        categories={"t00": "x", "t01": "x"},
    )  # fmt: skip
    document = comparison_json([found], [])
    assert document["schema"] == "compare/1"
    orjson.dumps(document)
    estimates = list(_estimates(document))
    assert len(estimates) >= 5
    for estimate in estimates:
        assert estimate["interval"] is not None or estimate["note"]


def _estimates(tree: Any) -> Any:
    if isinstance(tree, dict):
        if "interval" in tree:
            yield tree
        for value in tree.values():
            yield from _estimates(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from _estimates(value)
