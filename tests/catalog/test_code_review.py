"""code-review: the margin's numbers, the closed list, and the form that an answer has."""

from __future__ import annotations

import json
import re

import pytest

from steelyard.components.benchmark import Task
from tests.benchmarks.scoring import Context, score
from tests.catalog.playing import cases, pack

CATEGORIES = re.findall(r"^- (\w+): ", str(pack("code-review").pack.file.system), re.M)
NOTHING = {"line": 0, "category": "none", "explanation": "There is no defect in this change."}


def verdict(task: Task, answer: str) -> bool:
    return bool(score(pack("code-review"), task, Context(answer)).metrics["correct"])


def right(task: Task) -> dict[str, object]:
    reference = pack("code-review").reference(task)
    assert reference is not None
    return dict(json.loads(str(reference.answer)))


def test_the_margin_numbers_every_line_and_the_defect_is_on_one_of_them() -> None:
    for task in cases("code-review").values():
        code = str(task.data["code"]).rstrip("\n").split("\n")
        numbers = [int(line[:2]) for line in code]
        assert numbers == list(range(1, len(code) + 1)), task.id
        assert all(re.match(r" ?\d+\|( |$)", line) for line in code), task.id
        is_clean = task.data["defect"] == ["none"]
        assert set(task.data["lines"]) <= ({0} if is_clean else set(numbers)), task.id
        for line in [] if is_clean else task.data["lines"]:
            assert len(code[line - 1]) > 4, (task.id, line, "an empty line has no defect")


def test_every_category_is_somebody_s_and_no_case_has_another() -> None:
    used = {name for task in cases("code-review").values() for name in task.data["defect"]}
    assert used == set(CATEGORIES)


def test_some_changes_are_clean_and_of_more_than_one_language() -> None:
    clean = [t for t in cases("code-review").values() if t.data["defect"] == ["none"]]
    assert len(clean) >= 5
    assert len({task.data["language"] for task in clean}) >= 4
    assert len({task.data["language"] for task in cases("code-review").values()}) >= 8


def test_a_reviewer_who_never_finds_anything_passes_only_clean_changes() -> None:
    for task in cases("code-review").values():
        assert verdict(task, json.dumps(NOTHING)) is (task.data["defect"] == ["none"]), task.id


def test_the_line_without_the_category_is_not_enough_nor_the_other_way_round() -> None:
    for task in cases("code-review").values():
        answer = right(task)
        other = next(name for name in CATEGORIES if name not in task.data["defect"])
        assert not verdict(task, json.dumps({**answer, "category": other})), task.id
        assert not verdict(task, json.dumps({**answer, "line": 99})), task.id


@pytest.mark.parametrize(
    "form", ["{}", "```json\n{}\n```", "Let me think.\n\n{}\n", '{{"a": 1}}\n{}']
)
def test_the_last_object_of_an_answer_counts(form: str) -> None:
    task = cases("code-review")["read-command"]
    assert verdict(task, form.format(json.dumps(right(task))))


@pytest.mark.parametrize(
    "change",
    [
        {"line": "15"},
        {"line": -1},
        {"category": "Boundary"},
        {"category": "off-by-one"},
        {"explanation": "boundary"},
        {"explanation": None},
        {"severity": "high"},
    ],
)
def test_an_answer_of_another_form_fails(change: dict[str, object]) -> None:
    task = cases("code-review")["read-command"]
    assert not verdict(task, json.dumps({**right(task), **change}))


def test_naming_the_answer_in_the_explanation_does_not_count() -> None:
    task = cases("code-review")["read-command"]
    said = {**NOTHING, "explanation": json.dumps(right(task))}
    assert not verdict(task, json.dumps(said))
    assert not verdict(task, json.dumps(right(task)) + "\nOr rather: " + json.dumps(NOTHING))
