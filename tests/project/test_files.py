"""What no tracked file may hold, and how long a file may be."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.project.checkout import ROOT, tracked_texts

MAX_LINES = 450
"""A second subject usually lives in a file of more than about 400; this is where it fails."""

# Written so that no pattern matches its own text.
FORBIDDEN = {
    "the host of a package registry": r"py[p]i\.org|pythonhoste[d]\.org|npmj[s]\.(?:org|com)"
    r"|(?:deb|security)\.[d]ebian\.org",
    "an absolute path of somebody's machine": (
        r"(?<![\w.~-])/(?:wor[k]|roo[t]|far[m]|hom[e]/\w+)/\w"
    ),
    "a conflict mark": r"^(?:<{7} |>{7} )",
}
UNFINISHED = (
    r"pytest\.mark\.(?:ski[p]|skipi[f]|xfai[l])\b|pytest\.ski[p]\(|NotImplemente[d]Error"
    r"|\bTOD[O]\b|\bFIXM[E]\b"
)


def _hits(pattern: str, texts: dict[Path, str]) -> list[str]:
    compiled = re.compile(pattern, re.MULTILINE)
    return [
        f"{path.relative_to(ROOT)}: {found.group()}"
        for path, text in texts.items()
        for found in [compiled.search(text)]
        if found
    ]


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_tracked_file_names(what: str) -> None:
    assert _hits(FORBIDDEN[what], tracked_texts()) == []


def test_nothing_is_skipped_expected_to_fail_or_left_unfinished() -> None:
    python = {p: t for p, t in tracked_texts().items() if p.suffix == ".py"}
    assert _hits(UNFINISHED, python) == []


def test_no_python_file_has_grown_a_second_subject() -> None:
    too_long = {
        str(path.relative_to(ROOT)): lines
        for path, text in tracked_texts().items()
        if path.suffix == ".py" and (lines := text.count("\n")) > MAX_LINES
    }
    assert too_long == {}


def test_every_module_of_ours_says_in_its_first_line_what_it_is() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for path, text in tracked_texts().items()
        if path.suffix == ".py"
        and path.is_relative_to(ROOT / "src")
        and not re.match(r'(?:#![^\n]*\n)?r?"""\S', text)
    ]
    assert silent == []


def test_modules_are_named_for_their_subject() -> None:
    vague = {"utils.py", "util.py", "helpers.py", "helper.py", "common.py", "misc.py"}
    assert [str(p.relative_to(ROOT)) for p in tracked_texts() if p.name in vague] == []
