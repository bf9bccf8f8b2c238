"""Read a judge's reply: one JSON object of exactly the form that was asked for. Pure.

A reply is as hostile as the text it judges: nothing in it is guessed at, mended or searched for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steelyard.benchmarks.pack.judging.form import Form, Said
from steelyard.components.judging.replies import MAX_REPLY_CHARS as MAX_REPLY_CHARS
from steelyard.components.judging.replies import NotAVerdict as NotAVerdict
from steelyard.components.judging.replies import json_object


def read_verdict(reply: str, form: Form, code: str) -> Said:
    """Read a reply; a fence of three backquotes around the whole is passed over.

    Args:
        reply: the judge's words.
        form: what was asked for.
        code: what stood in the judge's instructions alone, and must come back.

    Raises:
        NotAVerdict: it is anything but the form.
    """
    data = json_object(reply)
    grade_field = form.grade_field
    wanted = ("code", "reason", grade_field)
    missing = [name for name in wanted if name not in data]
    if missing:
        raise NotAVerdict(f"the field {missing[0]!r} is missing")
    unknown = sorted(set(data) - set(wanted))
    if unknown:
        raise NotAVerdict(f"the field {unknown[0][:40]!r} was not asked for")
    if data["code"] != code:
        raise NotAVerdict("the code is not the one of the instructions")
    reason = data["reason"]
    if not isinstance(reason, str) or not reason.strip():
        raise NotAVerdict("the reason is empty, or not a text")
    # A lone surrogate, as `"\\ud800"` makes one, can be written into no record.
    reason = reason.strip().encode("utf-8", "replace").decode("utf-8")
    grades = data[grade_field]
    if not form.criteria:
        position = _position(grades, form, grade_field)
        return Said(grades, reason, form.scale.value(grades), position)
    return _by_criteria(grades, form, reason)


def _by_criteria(grades: Any, form: Form, reason: str) -> Said:
    if not isinstance(grades, Mapping) or set(grades) != set(form.criteria):
        names = ", ".join(form.criteria)
        raise NotAVerdict(f"the scores are not a mapping with exactly these keys: {names}")
    total = sum(form.criteria.values())
    value = position = 0.0
    for name, weight in form.criteria.items():
        position += weight * _position(grades[name], form, name)
        value += weight * form.scale.value(grades[name])
    return Said(dict(grades), reason, min(1.0, value / total), position / total)


def _position(grade: Any, form: Form, name: str) -> float:
    position = form.scale.position(grade)
    if position is None:
        raise NotAVerdict(f"{name!r} is not {form.scale.words}")
    return position
