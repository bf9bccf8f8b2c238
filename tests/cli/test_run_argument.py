"""RUN means the same for every command: a path, an id, a request's name, or the latest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.results.workload import FixedClock, a_record
from tests.results.written import write_run

Run = Callable[..., Any]


@pytest.fixture
def runs(project: Path) -> dict[str, Path]:
    """Two runs of one request and, later, one of a group of runs; ids by number."""
    clock = FixedClock()
    made = {}
    for place, run_id in (("results", "z1"), ("results", "a2"), ("results/night", "m3")):
        made[run_id] = write_run(project / place, [a_record("t")], run_id=run_id, clock=clock).root
    return made


@pytest.mark.parametrize("command", ["show", "summary"])
@pytest.mark.parametrize(
    ("word", "run_id"),
    [
        ("latest", "m3"),
        ("results", "m3"),
        ("results/toy", "a2"),
        ("z1", "z1"),
        ("toy/z1", "z1"),
        ("night", "m3"),
        ("night/toy", "m3"),
        ("toy", "m3"),
    ],
)
def test_each_form_leads_to_its_newest_run(
    steelyard: Run, runs: dict[str, Path], command: str, word: str, run_id: str
) -> None:
    ran = steelyard(command, word, "--json")
    assert ran.status == 0, ran.err
    assert str(ran.json.get("run", ran.json.get("run_id"))).endswith(run_id)
    assert f"{runs[run_id].relative_to(Path.cwd())}" in ran.err


def test_ctl_takes_the_same_words(steelyard: Run, runs: dict[str, Path]) -> None:
    for word in ("latest", "results", "night", "toy", "m3"):
        assert "has ended" in steelyard("ctl", word).err, word


@pytest.mark.parametrize("command", ["show", "summary", "analysis", "ctl"])
def test_a_name_that_is_nearly_one_is_offered(
    steelyard: Run, runs: dict[str, Path], command: str
) -> None:
    ran = steelyard(command, "nigth")
    assert ran.status == 2
    assert "did you mean 'night'?" in ran.err


def test_a_word_that_leads_nowhere_gets_the_forms(steelyard: Run, project: Path) -> None:
    for word in ("latest", "nowhere"):
        ran = steelyard("show", word)
        assert (ran.status, "a run's id, a request's name, or `latest`" in ran.err) == (2, True)
