"""paper-trail: sums come out, answers have their form, and spellings that say the same pass."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable

import pytest

from tests.benchmarks.scoring import Context, score
from tests.catalog.playing import cases, pack

OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def computed(text: str) -> float:
    """The value of a sum of numbers."""

    def value(node: ast.expr) -> float:
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            return node.value
        assert isinstance(node, ast.BinOp), text
        return OPERATORS[type(node.op)](value(node.left), value(node.right))

    return value(ast.parse(text, mode="eval").body)


def verdict(case: str, answer: str) -> bool:
    task = cases("paper-trail")[case]
    return bool(score(pack("paper-trail"), task, Context(answer)).metrics["correct"])


def test_the_sum_behind_an_answer_gives_that_answer() -> None:
    worked = {task.id: task.data for task in cases("paper-trail").values() if "worked" in task.data}
    assert len(worked) >= 14
    for case, fields in worked.items():
        found = computed(str(fields["worked"]))
        assert abs(found - float(str(fields["accept"][0]))) < 1e-9, (case, found)


def test_what_is_accepted_differs_in_spelling_alone_and_the_wrong_answer_in_more() -> None:
    for task in cases("paper-trail").values():
        accepted = {_bare(str(text)) for text in task.data["accept"]}
        first = _bare(str(task.data["accept"][0]))
        assert all(first in text or text in first for text in accepted), task.id
        assert _bare(str(task.data["wrong"])) not in accepted, task.id


def _bare(text: str) -> str:
    """A spelling without punctuation, articles, and zeros behind the point."""
    if re.fullmatch(r"[\d,]+(\.\d+)?", text):
        return f"{float(text.replace(',', '')):g}"
    return re.sub(r"[^a-z0-9]|\band\b|\bthe\b", "", text.lower())


def test_papers_are_long_plain_ascii_and_do_not_give_the_answer_s_reason_away() -> None:
    for task in cases("paper-trail").values():
        document = str(task.data["document"])
        assert document.isascii(), task.id
        assert len(document.split()) >= 380, (task.id, len(document.split()))
        assert str(task.data["how"]) not in document


@pytest.mark.parametrize(
    "form",
    [
        "ANSWER: {}",
        "First 2,320, then the index.\n\nANSWER: {}\n",
        "**ANSWER: {}**",
        "**ANSWER:** {}",
        "ANSWER: 1\nNo, the deduction is missing.\nANSWER: {}",
        "ANSWER:\n{}",
    ],
)
def test_the_answer_is_what_stands_behind_the_last_mark(form: str) -> None:
    assert verdict("shop-lease", form.format("2417.20"))
    assert not verdict("shop-lease", form.format("2459.20"))


def test_without_the_mark_there_is_no_answer() -> None:
    assert not verdict("shop-lease", "The rent is 2417.20.")


def test_other_spellings_of_a_right_answer_pass() -> None:
    assert verdict("library-grant", "ANSWER: 71,500")
    assert verdict("jury-meeting", "ANSWER: 2024-10-17 15:30, the reading room")
    assert verdict("signing-powers", "ANSWER: ferrow and tiller")
