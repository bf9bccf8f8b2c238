"""HTML for notebooks: whatever stands in a run, it is shown as text."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

import steelyard as sy
from steelyard.results.summary_text import score_rows
from tests.sdk.parts import Say, Sums

HOSTILE = "<script>alert('x')</script><img src=x onerror=\"y()\">&\u202e\x1b[31m"
KNOWN_TAGS = {"div", "p", "b", "br", "code", "table", "thead", "tbody", "tr", "th", "td"}


class _Reader(HTMLParser):
    """Collects tags, attributes and text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[object] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


def _read(html: str) -> _Reader:
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return reader


@pytest.fixture
def hostile() -> sy.LaunchResult:
    benchmark = Sums(Sums.Params(tasks=7, prefix=HOSTILE))
    return sy.launch(sy.Request(benchmark, Say(Say.Params(text=HOSTILE)), name=f"r{HOSTILE}"))


def test_hostile_names_ids_and_answers_are_escaped(hostile: sy.LaunchResult) -> None:
    for html in (hostile._repr_html_(), hostile.runs[0]._repr_html_()):
        found = _read(html)
        assert found.tags <= KNOWN_TAGS
        assert found.attributes == []
        assert "<script>" not in html
        assert "\u202e" not in html
        assert "\x1b" not in html
        assert "r<script>alert('x')</script>" in found.text


def test_a_run_shows_its_scores_and_the_first_failures(hostile: sy.LaunchResult) -> None:
    found = _read(hostile.runs[0]._repr_html_())
    assert "right avg@1" in found.text
    assert "7 scored (of 7)" in found.text
    assert found.text.count("-0") >= 1
    assert "… and more: failures()" in found.text


def test_what_the_scorer_or_harness_said_is_escaped_and_cut() -> None:
    class Loud(Say):
        api = 1
        id = "loud"

        async def run(self, context: sy.HarnessContext) -> sy.HarnessResult:
            raise RuntimeError("<script>" + "x" * 5000)

    html = sy.run({"id": Sums, "tasks": 1}, Loud)._repr_html_()
    assert "&lt;script&gt;xxx" in html
    assert len(html) < 3000


def test_a_launch_shows_its_runs_side_by_side() -> None:
    result = sy.launch(
        sy.Orchestration([sy.Request(Sums, Say, name="a"), sy.Request(Sums, Say, name="b", k=2)])
    )
    found = _read(result._repr_html_())
    assert "completed in" in found.text
    for word in ("a", "b", "right avg@1", "right avg@2", "6/6"):
        assert word in found.text


def test_a_run_whose_folder_is_gone_is_still_shown() -> None:
    run = sy.run(Sums, Say)
    (run.run_dir / "run.json").unlink()
    assert "right avg@1" in run._repr_html_()


def test_intervals_and_reasons_are_those_of_the_tables() -> None:
    for tasks in (1, 2, 7):
        run = sy.run(Sums(Sums.Params(tasks=tasks)), Say(Say.Params(text="2")), k=2)
        assert run.metrics is not None
        for row in score_rows(run.metrics):
            assert row.interval in _read(run._repr_html_()).text
