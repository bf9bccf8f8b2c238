"""The figures of `failures` in words: a summary of a few sentences, and a page. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from steelyard.analyzers.failures.classes import FailureClass
from steelyard.analyzers.failures.tally import NONE, OTHERS
from steelyard.config import printable

_NAMES: Final[Mapping[str, str]] = {one.value: one.value.replace("_", " ") for one in FailureClass}
_CATEGORIES_SHOWN: Final = 15


def summary(data: Mapping[str, Any]) -> str:
    """Say what went wrong most, and what cannot be known."""
    attempts, classes = data["attempts"], data["classes"]
    ran, failed = attempts["ran"], attempts["failed"]
    if not ran:
        return "No attempt has run, so there is nothing to analyze."
    if not failed:
        if not data["judges_scores"]:
            return (
                f"Of {ran} attempts none failed. Lower values of {data['metric']} are better, so "
                "no score says by itself that an attempt got nothing."
            )
        return f"All {ran} attempts got a point; none failed."
    first = classes[0]
    sentences = [f"{failed} of {ran} attempts {_got(data)}."]
    share = f"{first['share']:.0%}"
    lead = f"Most often: {_NAMES[first['class']]} ({first['count']} of {failed}, {share})"
    if len(classes) == 1:
        lead = f"All of them: {_NAMES[first['class']]}" if failed > 1 else _alone(first)
    elif classes[1]["count"] == first["count"]:
        lead = f"No class stands out: {_NAMES[first['class']]} ({first['count']} of {failed})"
    sentences.append(f"{lead} - {first['meaning']}{_in_category(first)}.")
    rest = [f"{_NAMES[one['class']]} {one['count']}" for one in classes[1:4]]
    if rest:
        more = len(classes) - 4
        sentences.append(
            f"Then {', '.join(rest)}{f' and {more} more classes' if more > 0 else ''}."
        )
    sentences += [
        f"{count} of the {_NAMES[one['class']]} also show {_NAMES[sign]}."
        for one in classes[:2]
        for sign, count in list(one["signs"].items())[:1]
    ]
    return " ".join([*sentences, *_caveats(data)])


def page(data: Mapping[str, Any], run_id: str) -> str:
    """Write the page for people, Markdown."""
    lines = [f"# Failures of {cell(run_id)}", "", cell(data["summary"]), ""]
    if data["classes"]:
        rows = [
            (
                _NAMES[one["class"]],
                one["count"],
                f"{one['share']:.0%}",
                _basis(one),
                one["meaning"],
            )
            for one in data["classes"]
        ]
        lines += [*table(("class", "attempts", "share", "known from", "meaning"), rows), ""]
    if len(data["by_category"]) > 1:
        shown = list(data["by_category"].items())[:_CATEGORIES_SHOWN]
        lines += ["## By category", ""]
        columns = ("category", "without a point", "ran", "most often")
        lines += table(
            columns,
            [
                (name, counts["failed"], counts["ran"], _worst(data["classes"], name))
                for name, counts in shown
            ],
        )
        lines += [""]
        if len(data["by_category"]) > len(shown):
            lines += [f"and {len(data['by_category']) - len(shown)} more, in `analysis.json`.", ""]
    for one in data["classes"]:
        lines += _section(one)
    lines += ["---", "", f"Rules {data['rules']}. {_HOW_SURE}", ""]
    return "\n".join(lines)


_HOW_SURE: Final = (
    "*Recorded* classes are what the run itself noted. *Inferred* ones are read out of texts by "
    "fixed rules and may be wrong; `wrong answer` means only that no rule saw another cause."
)


def cell(text: object) -> str:
    """Copy a text for Markdown: one line, no markup, no table, no HTML of others."""
    plain = printable.one_line(str(text))
    for char in "\\|<>`*_[]":
        plain = plain.replace(char, f"\\{char}" if char not in "<>" else f"&{_HTML[char]};")
    return plain


_HTML: Final = {"<": "lt", ">": "gt"}


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """Lay out a Markdown table."""
    lines = [f"| {' | '.join(columns)} |", f"|{' --- |' * len(columns)}"]
    return lines + [f"| {' | '.join(cell(value) for value in row)} |" for row in rows]


def _section(one: Mapping[str, Any]) -> list[str]:
    if not one["examples"]:
        return []
    lines = [f"## {_NAMES[one['class']]}: {one['count']}", ""]
    for example in one["examples"]:
        name = f"{cell(example['task_id'])}, attempt {example['attempt']}"
        said = f": {cell(example['quote'])}" if example["quote"] else ""
        lines.append(f"- **{name}** - {cell(example['where'])}{said}")
        lines += [
            f"    - also {_NAMES[sign['class']]} - {cell(sign['where'])}: {cell(sign['quote'])}"
            for sign in example["signs"]
        ]
    return [*lines, ""]


def _basis(one: Mapping[str, Any]) -> str:
    if not one["inferred"]:
        return "recorded"
    return "inferred" if one["inferred"] == one["count"] else f"inferred for {one['inferred']}"


def _got(data: Mapping[str, Any]) -> str:
    return "got no point or failed" if data["judges_scores"] else "failed"


def _alone(first: Mapping[str, Any]) -> str:
    return f"It is {_NAMES[first['class']]}"


def _in_category(one: Mapping[str, Any]) -> str:
    """Name the category that has most of a class, where there is more than one."""
    counts = {name: n for name, n in one["by_category"].items() if name not in (NONE, OTHERS)}
    if len(one["by_category"]) < 2 or not counts:
        return ""
    name, count = next(iter(counts.items()))
    return f"; most in category {printable.one_line(name)} ({count} of {one['count']})"


def _worst(classes: Sequence[Mapping[str, Any]], category: str) -> str:
    counted = [(one["by_category"].get(category, 0), _NAMES[one["class"]]) for one in classes]
    count, name = max(counted, key=lambda pair: pair[0])
    return f"{name} ({count})"


def _caveats(data: Mapping[str, Any]) -> list[str]:
    said = []
    damaged = data["unreadable_trajectories"]["count"]
    if damaged:
        said.append(f"The trajectories of {damaged} cannot be read: they are judged without.")
    bare = data["without_trajectory"]
    if bare:
        said.append(f"{bare} left no trajectory, so loops and tools cannot be seen in them.")
    if not data["judges_scores"]:
        said.append(
            f"Lower values of {data['metric']} are better, so scored attempts are not judged."
        )
    return said
