"""The example packs that use these validators give plausible wrong work less than right work."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from steelyard.components.benchmark import Evaluation
from tests.benchmarks.scoring import Context, opened, score
from tests.project.checkout import ROOT

PACKS = ROOT / "examples/packs"
pytestmark = pytest.mark.integration


def evaluated(pack: str, case: str, answer: str | None, work: Path | None = None) -> Evaluation:
    benchmark = opened(PACKS / pack)
    (task,) = (task for task in benchmark.load_tasks() if task.id == case)
    return score(benchmark, task, Context(answer, artifacts={".": work} if work else {}))


RIGHT = (
    '{"number": "R-5a", "date": "2024-11-02", "total_eur": 389.70, "lines": ['
    '{"article": "table", "count": 1, "price_eur": 210.00},'
    ' {"article": "chair", "count": 3, "price_eur": 59.90}]}'
)


@pytest.mark.parametrize(
    ("change", "failed"),
    [
        (("", ""), set()),
        (('"count": 3', '"count": 4'), {"facts", "adds_up"}),
        (("389.70", '"389.70"'), {"form", "facts"}),
        (("2024-11-02", "2.11.2024"), {"form", "facts"}),
        (('"number": "R-5a", ', ""), {"form", "facts"}),
        (("389.70", "NaN"), {"form", "facts", "line_count", "adds_up"}),
        (("]}", ', {"article": "chair", "count": 1, "price_eur": 0}]}'), {"facts", "line_count"}),
    ],
)
def test_an_invoice_read_wrong_fails_where_it_is_wrong(
    change: tuple[str, str], failed: set[str]
) -> None:
    answer = f"Here it is:\n```json\n{RIGHT.replace(*change)}\n```"
    found = evaluated("invoice-data", "correction", answer)
    assert found.metrics["correct"] == (not failed)
    assert {
        name.removeprefix("validator.")
        for name, value in found.metrics.items()
        if name.startswith("validator.") and value < 1
    } == failed


@pytest.mark.parametrize(
    ("answer", "low", "high"),
    [
        ("Autumn 1861.", 1, 1),
        ("The lighthouse was first lit in the autumn of 1861.", 0.3, 0.7),
        ("In autumn 1961", 0.3, 0.8),
        ("Since 1974", 0, 0.1),
    ],
)
def test_a_short_answer_is_worth_what_it_shares(answer: str, low: float, high: float) -> None:
    score = evaluated("short-answers", "lighthouse-when", answer).metrics["score"]
    assert low <= score <= high


def test_a_folder_half_tidied_is_wrong(tmp_path: Path) -> None:
    work = tmp_path / "work"
    shutil.copytree(PACKS / "tidy-folder/workspace", work)
    letters = work / "letters"
    letters.mkdir()
    for name in ("ines.txt", "lamp.txt"):
        (work / "inbox" / name).rename(letters / name)
    (work / "report.json").write_text('{"kind": "letter", "moved": 2}')
    found = evaluated("tidy-folder", "letters", None, work)
    assert (found.metrics["correct"], found.metrics["validator.sorted"]) == (False, True)
    (work / "inbox/notes.tmp").unlink()
    assert evaluated("tidy-folder", "letters", None, work).metrics["correct"] is True
    (letters / "lamp.txt").write_text("")
    assert evaluated("tidy-folder", "letters", None, work).metrics["correct"] is False
