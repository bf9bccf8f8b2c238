"""Nothing that others wrote becomes markup, a link or a mention in a comment."""

from __future__ import annotations

import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from steelyard.results.comparison import compare_runs
from steelyard.results.comparison_text import markdown_text, sections
from steelyard.results.gates import Gate, judge_run
from steelyard.results.launch_markdown import RunLine, launch_markdown
from steelyard.results.markdown import MAX_CODE_CHARS, code
from steelyard.results.summary import summarise
from tests.results.comparing import FATAL, NO, YES, a_document, a_side

HOSTILE = "<img src=x onerror=alert(1)> | @everyone `#1` [a](javascript:b)\n\n# head\\|"


def bare(text: str) -> str:
    """What of a document is not quoted as code, without estimators."""
    return re.sub(r"`[^`\n]*`|\b(avg|pass)@\d", "", text)


def assert_harmless(text: str) -> None:
    outside = bare(text)
    for word in ("<", "@", "javascript", "# head", "everyone"):
        assert word not in outside
    for line in text.split("\n"):
        if line.startswith("|"):
            cells = len(re.findall(r"(?<!\\)\|", line))
            assert cells in (4, 5, 6, 8), line


def test_a_launch_with_hostile_names_is_harmless(tmp_path: Path) -> None:
    metric = {**a_document()["benchmark_info"]["metrics"][0], "name": HOSTILE}
    root = a_side(tmp_path, "a", {HOSTILE: [YES], "x": [FATAL]}, metric=HOSTILE,
                  document=a_document(metrics=[metric]))  # fmt: skip
    metrics = summarise(root)
    gate = judge_run(Gate(f"--fail-under {HOSTILE}", HOSTILE, HOSTILE, 2.0), metrics)
    text = launch_markdown(
        [RunLine(HOSTILE, "failed", HOSTILE, metrics), RunLine("b", "failed", None, None)], [gate]
    )
    assert_harmless(text)
    assert "not official" in text
    assert "**not met**" in text


def test_a_comparison_with_hostile_names_is_harmless(tmp_path: Path) -> None:
    categories = {HOSTILE: HOSTILE, "x": "y"}
    roots = [
        a_side(tmp_path, name, {HOSTILE: [value], "x": [YES]}, categories=categories)
        for name, value in (("a", YES), ("b", NO))
    ]
    text = markdown_text(sections(compare_runs(roots), []), [HOSTILE])
    assert_harmless(text)
    assert "-0.500" in text


@given(st.text())
def test_a_code_span_is_one_span_in_one_cell(text: str) -> None:
    quoted = code(text)
    assert quoted.count("`") == 2
    assert len(quoted) <= 2 * MAX_CODE_CHARS + 2
    assert re.search(r"(?<!\\)\|", quoted) is None
    assert "\\\\|" not in quoted
    assert "\n" not in quoted
