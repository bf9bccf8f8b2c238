"""`du`, `prune` and `upgrade` as people call them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
FIRST = Path(__file__).parent.parent / "fixtures/formats/first"


@pytest.fixture
def results(project: Path) -> Path:
    shutil.copytree(FIRST, project / "results")
    return project / "results"


def test_du_lists_runs_of_the_settings_folder_the_largest_first(
    steelyard: Run, results: Path
) -> None:
    shown = steelyard("du")
    assert shown.status == 0
    lines = shown.out.splitlines()
    assert [line.split()[0] for line in lines[1:3]] == ["ceiling/first", "chat/first"]
    assert lines[-1].startswith("2 runs, ")
    document = steelyard("du", "--json", str(results / "chat")).json
    (run,) = document["runs"]
    assert run["bytes"] == document["bytes"] == sum(run["parts"].values())


def test_prune_lists_without_yes_and_removes_with_it(steelyard: Run, results: Path) -> None:
    listed = steelyard("prune", "--keep-last", "0")
    assert listed.status == 0
    assert "would be removed" in listed.out
    assert (results / "chat/first/run.json").exists()
    removed = steelyard("prune", "--keep-last", "0", "--yes", "--json").json
    assert removed["removed"]
    assert {run["goes"] for run in removed["runs"]} == {True}
    assert not any(results.iterdir())
    assert "there is no run" in steelyard("du").out


def test_prune_keeps_what_is_young(steelyard: Run, results: Path) -> None:
    assert "0 runs" in steelyard("prune", "--older-than", "9999w", "--yes").out
    assert (results / "chat/first/run.json").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "no bound is given"),
        (("--older-than", "soon"), "not an age"),
        (("--older-than", "3y"), "not an age"),
        (("--older-than", "9999999d"), "not an age"),
        (("--max-size", "big"), "not a size"),
        (("--max-size", "-1G"), "not a size"),
        (("--keep-last", "-1"), "keep-last"),
        (("nowhere", "--keep-last", "1"), "no folder"),
    ],
)
def test_prune_refuses_what_it_does_not_understand(
    steelyard: Run, results: Path, arguments: tuple[str, ...], said: str
) -> None:
    shown = steelyard("prune", *arguments)
    assert shown.status == 2
    assert said in shown.err
    assert (results / "chat/first/run.json").exists()


@pytest.mark.parametrize("text", ["0", "10k", "10KiB", "5M", "1g", "2TB"])
def test_sizes_are_understood(steelyard: Run, results: Path, text: str) -> None:
    assert steelyard("prune", "--max-size", text).status == 0


def test_upgrade_says_that_nothing_needs_to_be_done(steelyard: Run, results: Path) -> None:
    shown = steelyard("upgrade", "results")
    assert shown.status == 0
    assert "2 runs" in shown.out
    document = steelyard("upgrade", "results", "--json").json
    assert (document["runs"], document["upgraded"]) == (2, 0)
    assert {file["standing"] for file in document["files"]} == {"current"}


def test_upgrade_names_what_a_newer_version_wrote(steelyard: Run, results: Path) -> None:
    file = results / "chat/first/run.json"
    file.write_text(file.read_text().replace('"run/1"', '"run/7"'))
    shown = steelyard("upgrade", "results")
    assert shown.status == 2
    assert "run/7 was written by a newer version" in shown.err
    assert "chat/first/run.json" in shown.err


def test_upgrade_of_nothing_is_bad_input(steelyard: Run, project: Path) -> None:
    assert steelyard("upgrade", "nowhere").status == 2
