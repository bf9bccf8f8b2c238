"""The live view's lines: for every size of terminal, nothing too wide and nothing that lies."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from steelyard.cli.screen import Charset, View, render
from steelyard.components.issues import Outcome
from steelyard.config import printable
from tests.cli.showing import VIEWS, loading, progress, view, waiting

GOLDEN = Path(__file__).with_name("golden") / "screen"
SIZES = ((80, 23), (120, 40), (60, 12), (40, 8), (20, 5), (20, 3), (20, 1), (7, 2))


@pytest.mark.parametrize("name", VIEWS)
def test_the_view_is_what_it_was_agreed_to_be(name: str) -> None:
    """`STEELYARD_GOLDEN=write` writes what is shown now; look at the difference then."""
    drawn = []
    for width, height in SIZES:
        drawn.append(f"== {width} x {height}")
        drawn += render(VIEWS[name], width, height, Charset.UNICODE)
    text = "\n".join((*drawn, ""))
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("STEELYARD_GOLDEN") == "write":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


NAMES = st.text(min_size=1, max_size=60).filter(str.strip)
PROGRESSES = st.builds(
    progress,
    name=NAMES,
    state=st.sampled_from(("loading", "running", "ended")),
    planned=st.none() | st.integers(0, 10**7),
    running=st.integers(0, 5_000),
    outcomes=st.dictionaries(st.sampled_from(Outcome), st.integers(0, 10**7)),
    issues=st.dictionaries(NAMES, st.integers(1, 10**6), max_size=6),
    cost_usd=st.none() | st.floats(0, 1e6),
    elapsed_s=st.floats(0, 1e7),
)


@settings(max_examples=300, deadline=None)
@given(
    snapshot=st.lists(PROGRESSES, max_size=8, unique_by=lambda one: one.name),
    width=st.integers(1, 200),
    height=st.integers(1, 60),
    charset=st.sampled_from(Charset),
    state=st.sampled_from(("running", "paused", "draining", "stopping")),
    question=st.none() | st.just("drain?"),
    shows_help=st.booleans(),
)
def test_no_line_is_too_wide_and_there_are_never_too_many(
    snapshot: list[object], width: int, height: int, charset: Charset, **rest: object
) -> None:
    lines = render(view(snapshot, **rest), width, height, charset)  # type: ignore[arg-type]
    assert len(lines) <= height
    for line in lines:
        assert cell_len(line) <= width
        assert printable.one_line(line) == line
        assert charset is Charset.UNICODE or line.isascii()


def text(shown: View, width: int = 100, height: int = 30) -> str:
    return "\n".join(render(shown, width, height, Charset.UNICODE))


def test_an_eta_is_given_only_where_something_is_known_of_the_pace() -> None:
    assert "ETA 17m57s" in text(view([progress()]))
    assert "ETA ~" in text(view([progress(outcomes={Outcome.SCORED: 3}, reused=0)]))
    assert "ETA unknown" in text(view([progress(outcomes={}, reused=0)]))
    assert "ETA" not in text(view([waiting("a")]))
    assert "ETA" not in text(view([progress()], state="paused"))
    assert "ETA" not in text(view([progress()], state="draining"))


def test_a_cost_that_is_not_known_is_not_shown_as_nothing() -> None:
    assert "cost unknown" in text(view([progress(cost_usd=None)]))


def test_a_sum_that_leaves_out_what_is_not_known_says_so() -> None:
    known, unknown = progress("a", cost_usd=0.5), progress("b", cost_usd=None)
    assert "at least $0.50" in text(view([known, unknown]))
    assert "at least" not in text(view([known, progress("b", cost_usd=0.25)]))


def test_what_ended_has_no_line_and_when_all_has_nothing_is_shown() -> None:
    ended = progress("over", state="ended", running=0)
    assert "over" not in text(view([ended, progress("going")]))
    assert render(view([ended]), 80, 24, Charset.UNICODE) == []


def test_those_that_run_stand_before_those_that_wait_and_the_rest_are_counted() -> None:
    shown = text(VIEWS["sixty-four"], 100, 20)
    assert "r1 " in shown
    assert "r0 " not in shown
    assert "more requests" in shown
    assert "running longest" in shown
    assert "all " in shown


@pytest.mark.parametrize("height", [1, 2, 3, 10])
def test_a_question_is_always_seen(height: int) -> None:
    assert render(VIEWS["question"], 80, height, Charset.UNICODE)[-1].startswith("y/n drain")


def test_loading_is_said_with_how_long_it_takes() -> None:
    assert "loading 11m40s" in text(view([loading("a")]))
