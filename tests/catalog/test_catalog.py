"""What holds for every pack of the catalog: its card, its cases, what agents are shown."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from steelyard.benchmarks.pack.paths import entries
from steelyard.components.catalog import CATALOG, catalog_folder, catalog_pack
from steelyard.components.registry import Kind, find, list_components
from tests.catalog.playing import (
    MIN_CASES,
    PACKS,
    cases,
    pack,
    played,
    scores_of_reference,
    with_wrong_answers,
)

HIDDEN_FIELDS = {"wrong", "why", "how", "worked", "accept", "lines", "defect"}
"""Fields that only scoring and reviewers read."""
TEMPLATE_WORDS = {"form"}
"""What a pack says alike for many cases: no part of what makes two of them different."""
CARD = (
    "Purpose",
    "How it was made",
    "Scoring",
    "Limits and weak spots",
    "Contamination",
    "Licence",
)
CANARY = re.compile(r"canary [0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
DIFFICULTIES = {"easy", "medium", "hard"}
MAX_LIKENESS = 0.8

each_pack = pytest.mark.parametrize("name", PACKS)


def test_the_table_of_ids_is_the_folder() -> None:
    folders = {path.parent.name for path in catalog_folder().glob("*/pack.yaml")}
    assert folders == set(CATALOG)
    assert catalog_pack("code-review") == catalog_folder() / "code-review"
    assert catalog_pack("humaneval") is None


@each_pack
def test_a_pack_is_found_by_its_slug_and_listed_with_its_description(name: str) -> None:
    file = pack(name).pack.file
    assert file.slug == name
    assert file.description == CATALOG[name]
    assert find(Kind.BENCHMARK, name).id == name
    assert name in {listing.id for listing in list_components(Kind.BENCHMARK)}


@each_pack
def test_a_pack_has_a_card_that_says_what_one_must_know(name: str) -> None:
    card = (catalog_folder() / name / "README.md").read_text("utf-8")
    assert tuple(re.findall(r"^## (.*)$", card, re.M)) == CARD
    assert f"steelyard run {name}" in card
    assert CANARY.search(card)
    assert str(len(cases(name))) in card, "the card says how many cases there are"


@each_pack
def test_every_file_of_cases_carries_the_canary(name: str) -> None:
    folder = catalog_folder() / name
    [canary] = set(CANARY.findall((folder / "README.md").read_text("utf-8")))
    files = pack(name).pack.file.cases
    for file in [files] if isinstance(files, str) else files:
        assert canary in (folder / str(file)).read_text("utf-8"), file


@each_pack
def test_a_pack_has_enough_cases_of_every_difficulty(name: str) -> None:
    fields = [dict(task.data) for task in cases(name).values()]
    assert len(fields) >= MIN_CASES
    assert {one["difficulty"] for one in fields} == DIFFICULTIES
    assert all(one["wrong"] for one in fields)


@each_pack
def test_prompts_read_nothing_that_only_scoring_may_know(name: str) -> None:
    assert not HIDDEN_FIELDS & set(pack(name).pack.shown_fields)
    for task in cases(name).values():
        shown = "\n".join(
            m.content for m in pack(name).task_input(task, attempt=1, seed=0).messages
        )
        for field in HIDDEN_FIELDS & task.data.keys():
            for text in _sentences(task.data[field]):
                assert text not in shown, (task.id, field)


def _sentences(value: Any) -> list[str]:
    """Texts in a value that are long enough to be nobody's chance."""
    if isinstance(value, dict):
        return [text for inner in value.values() for text in _sentences(inner)]
    return [value] if isinstance(value, str) and len(value) > 20 else []


@each_pack
def test_no_file_that_agents_see_is_a_reference_or_a_hidden_one(name: str) -> None:
    root = catalog_folder() / name
    for task in cases(name).values():
        shown = pack(name).task_input(task, attempt=1, seed=0).workspace
        assert {folder.parent for folder in shown} <= {root / "cases"}
        seen = {one.path.read_bytes() for folder in shown for one in entries(folder)} - {b""}
        names = {
            part for folder in shown for one in entries(folder) for part in one.relative.split("/")
        }
        assert not names & {"_check", ".solve.sh", "check.py"}
        for kind in ("hidden", "solutions"):
            folder = root / kind / task.id
            kept = [one.path for one in entries(folder)] if folder.is_dir() else []
            assert not [path for path in kept if path.read_bytes() in seen], task.id


@each_pack
def test_no_two_cases_differ_only_in_names_or_numbers(name: str) -> None:
    tokens = {task.id: _tokens(name, task.id) for task in cases(name).values()}
    alike = [
        (one, other, round(likeness, 2))
        for (one, first), (other, second) in combinations(tokens.items(), 2)
        if (likeness := len(first & second) / len(first | second)) >= MAX_LIKENESS
    ]
    assert alike == []


def _tokens(name: str, case: str) -> set[str]:
    """The words of a case, without numbers and without names."""
    task = cases(name)[case]
    shown = set(pack(name).pack.shown_fields) - TEMPLATE_WORDS
    texts = [str(task.data[field]) for field in shown]
    for folder in pack(name).task_input(task, attempt=1, seed=0).workspace:
        texts += [one.path.read_text("utf-8", "replace") for one in entries(folder)]
    return set(re.findall(r"(?<![A-Za-z])[a-z]+(?![A-Za-z])", "\n".join(texts)))


def test_a_case_with_other_names_and_numbers_would_be_noticed() -> None:
    def words(text: str) -> set[str]:
        return set(re.findall(r"(?<![A-Za-z])[a-z]+(?![A-Za-z])", text))

    text = "{} owes {} {} for the tent that was bought in {}, less a discount of {} percent."
    one = words(text.format("Ida", "Tom", 40, "May", 5))
    other = words(text.format("Rob", "Pia", 71, "June", 9))
    assert len(one & other) / len(one | other) >= MAX_LIKENESS


@pytest.mark.integration
@each_pack
def test_the_reference_passes_every_case_and_doing_nothing_passes_none(name: str) -> None:
    report = played(pack(name))
    assert {case.id: case.findings for case in report.cases if case.findings} == {}
    assert {case.nop.score for case in report.cases} == {0.0}


@pytest.mark.integration
@each_pack
def test_every_wrong_answer_is_scored_and_fails(name: str, tmp_path: Path) -> None:
    scores = scores_of_reference(with_wrong_answers(name, tmp_path))
    assert set(scores) == set(cases(name))
    assert {case: score for case, score in scores.items() if score is None or score >= 1} == {}
