"""What people call things: short ids, prefixes, words, the best of a metric."""

from __future__ import annotations

import pytest

from steelyard.fix.ids import (
    AmbiguousId,
    Best,
    Kind,
    Named,
    UnknownId,
    number_of,
    resolve,
    short_id,
)

ROWS = [
    Named("cand-aa01", "c1", is_baseline=True, values=(("ms", 10.0), ("q", 0.5))),
    Named("cand-aa02", "c2", values=(("ms", 8.0), ("q", 0.5))),
    Named("cand-bb03", "c3", values=(("ms", 8.0), ("q", 0.4))),
    Named("cand-bb10", "c10"),
]
METRICS = [Best("ms", higher_is_better=False), Best("q", higher_is_better=True)]


def find(text: str) -> str:
    return resolve(text, ROWS, Kind.CANDIDATE, metrics=METRICS).short


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("c1", "c1"),
        ("C10", "c10"),
        (" c2 ", "c2"),
        ("cand-aa02", "c2"),
        ("cand-bb1", "c10"),
        ("latest", "c10"),
        ("baseline", "c1"),
        ("best:ms", "c2"),  # of equals the earliest
        ("best:q", "c1"),
    ],
)
def test_names_and_what_they_mean(text: str, short: str) -> None:
    assert find(text) == short


def test_a_prefix_of_several_is_said_to_be() -> None:
    with pytest.raises(AmbiguousId) as caught:
        find("cand-aa")
    assert "c1 (cand-aa01), c2 (cand-aa02)" in str(caught.value)


def test_what_is_unknown_gets_the_nearest_name() -> None:
    with pytest.raises(UnknownId, match="did you mean cand-aa02"):
        find("cand-ab02")
    with pytest.raises(UnknownId, match="best:METRIC"):
        find("x")
    with pytest.raises(UnknownId, match="did you mean best:ms"):
        find("best:mss")
    with pytest.raises(UnknownId):
        find("")
    with pytest.raises(UnknownId, match="there are no runs"):
        resolve("latest", [], Kind.RUN)


def test_nothing_is_the_best_where_nothing_is_verified() -> None:
    with pytest.raises(UnknownId, match="no candidate has a verified value of ms"):
        resolve("best:ms", ROWS[3:], Kind.CANDIDATE, metrics=METRICS)


def test_baseline_and_best_are_words_for_candidates_only() -> None:
    runs = [Named("run-1", "r1")]
    with pytest.raises(UnknownId):
        resolve("baseline", runs, Kind.RUN)
    assert resolve("latest", runs, Kind.RUN).short == "r1"


def test_short_ids() -> None:
    assert short_id(Kind.TRIAL, 41) == "t41"
    assert number_of(Kind.TRIAL, "t41") == 41
    for text in ("t0", "t", "r41", "t4x", "t-1"):
        assert number_of(Kind.TRIAL, text) is None
