"""The scanners' precision and recall on the labelled corpus, held to their bounds."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from steelyard.components.scanner import Scanner
from steelyard.scanners.reward_hacking import RewardHacking
from steelyard.scanners.sandbox_escape import SandboxEscape
from steelyard.scanners.tool_misuse import ToolMisuse
from tests.scanners.corpus_reading import (
    FOLDER,
    HELD_OUT,
    OPEN,
    Score,
    scored,
    snippets,
    split_of,
)

RULE_SCANNERS: tuple[type[Scanner], ...] = (RewardHacking, ToolMisuse, SandboxEscape)
PRECISION, RECALL = 0.95, 0.85
ROOT = FOLDER.parents[2]


def made(component: type[Scanner]) -> Scanner:
    return component(component.Params())


def table() -> list[str]:
    """The lines of the table in docs/scanners.md; a test holds the page to them."""
    lines = []
    for component in RULE_SCANNERS:
        for split in (OPEN, HELD_OUT):
            score = scored(made(component), split)
            lines.append(line_of(component.id, split, score))
    return lines


def line_of(scanner: str, split: str, score: Score) -> str:
    false = len(score.wrong)
    return (
        f"| `{scanner}` | {split} | {score.hits} of {score.positives} | {false} of "
        f"{score.negatives} | {score.precision:.3f} | {score.recall:.3f} |"
    )


@pytest.mark.parametrize("split", [OPEN, HELD_OUT])
@pytest.mark.parametrize("component", RULE_SCANNERS, ids=lambda one: one.id)
def test_precision_and_recall_are_held(
    component: type[Scanner], split: str, capsys: pytest.CaptureFixture[str]
) -> None:
    score = scored(made(component), split)
    with capsys.disabled():
        print("\n" + line_of(component.id, split, score))
    # Of what is held out only the figures are shown: nobody tunes on its errors by accident.
    shown = f"missed {score.missed}, wrong {score.wrong}" if split == OPEN else "held out"
    assert score.precision >= PRECISION, shown
    assert score.recall >= RECALL, shown


@pytest.mark.parametrize("component", RULE_SCANNERS, ids=lambda one: one.id)
def test_the_category_is_right_where_something_is_found(component: type[Scanner]) -> None:
    for split in (OPEN, HELD_OUT):
        score = scored(made(component), split)
        assert len(score.other_category) <= 0.1 * score.positives


@pytest.mark.parametrize("component", RULE_SCANNERS, ids=lambda one: one.id)
def test_the_corpus_is_large_enough_and_says_nothing_twice(component: type[Scanner]) -> None:
    corpus = snippets(component.id)
    labels = Counter(one.is_finding for one in corpus)
    assert labels[True] >= 60
    assert labels[False] >= 120
    contents = [json.dumps([step.as_json() for step in one.steps]) for one in corpus]
    assert len(set(contents)) == len(contents)
    assert len({one.id for one in corpus}) == len(corpus)


@pytest.mark.parametrize("component", RULE_SCANNERS, ids=lambda one: one.id)
def test_a_third_is_held_out_by_the_hash_of_its_id(component: type[Scanner]) -> None:
    corpus = snippets(component.id)
    assert all(one.split == split_of(one.id) for one in corpus)
    first = [one for one in corpus if "/later-" not in one.id]
    held_out = sum(one.split == HELD_OUT for one in first)
    assert 0.25 <= held_out / len(first) <= 0.45
    assert all(
        any(one.split == split and one.is_finding is wanted for one in corpus)
        for split in (OPEN, HELD_OUT)
        for wanted in (True, False)
    )


def test_what_real_agents_left_is_among_the_negatives() -> None:
    for component in RULE_SCANNERS:
        sources = {one.source for one in snippets(component.id) if not one.is_finding}
        for agent in ("claude_code", "codex", "mini_swe_agent"):
            assert any(f"cli_agent/logs/{agent}" in source for source in sources)
        assert any("examples/harbor" in source for source in sources)


def test_the_documentation_has_the_measured_figures() -> None:
    page = (ROOT / "docs/scanners.md").read_text("utf-8")
    shown = [
        line for line in page.splitlines() if f"| {OPEN} |" in line or f"| {HELD_OUT} |" in line
    ]
    assert shown == table()


def test_the_documentation_shows_the_example_as_it_is() -> None:
    page = (ROOT / "docs/scanners.md").read_text("utf-8")
    assert (ROOT / "examples/scanners/house-rules.yaml").read_text("utf-8") in page


def test_every_category_of_the_corpus_is_documented() -> None:
    page = (ROOT / "docs/scanners.md").read_text("utf-8")
    for component in RULE_SCANNERS:
        for one in snippets(component.id):
            assert one.category is None or f"`{one.category}`" in page


def test_the_corpus_has_no_other_files() -> None:
    assert {file.stem for file in FOLDER.glob("*.jsonl")} == {one.id for one in RULE_SCANNERS}
