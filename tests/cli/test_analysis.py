"""`steelyard analysis RUN` as people call it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steelyard.results.lock import RunLock

Run = Callable[..., Any]
FIRST = Path(__file__).parent.parent / "fixtures/formats/first"
ANALYZERS = Path(__file__).parent.parent / "engine/analyzing.py"


@pytest.fixture
def root(project: Path) -> Path:
    shutil.copytree(FIRST, project / "results")
    return project / "results/chat/first"


def test_it_prints_the_page_and_writes_both_files(steelyard: Run, root: Path) -> None:
    shown = steelyard("analysis", str(root))
    assert shown.status == 0
    assert shown.out.startswith("# Failures of first")
    assert (root / "analysis.md").read_text() == shown.out
    document = steelyard("analysis", str(root.parent), "--json").json
    assert document == json.loads((root / "analysis.json").read_bytes())
    assert document["schema"] == "analysis/1"
    assert document["is_complete"] is True


def test_its_files_are_the_same_bytes_each_time(steelyard: Run, root: Path) -> None:
    steelyard("analysis", str(root))
    first = [(root / name).read_bytes() for name in ("analysis.json", "analysis.md")]
    steelyard("analysis", str(root))
    assert first == [(root / name).read_bytes() for name in ("analysis.json", "analysis.md")]


def test_analyzers_may_be_named(steelyard: Run, root: Path) -> None:
    names = ("--analyzer", f"{ANALYZERS}:Counting", "--analyzer", "failures")
    document = steelyard("analysis", str(root), "--json", *names).json
    assert [one["id"] for one in document["analyses"]] == ["counting", "failures"]


def test_an_unknown_one_is_refused_with_a_near_name(steelyard: Run, root: Path) -> None:
    shown = steelyard("analysis", str(root), "--analyzer", "failure")
    assert shown.status == 2
    assert "unknown analyzer 'failure'" in shown.err
    assert "did you mean failures?" in shown.err
    assert not (root / "analysis.json").exists()


def test_one_that_fails_is_said_and_the_others_are_kept(steelyard: Run, root: Path) -> None:
    names = ("--analyzer", f"{ANALYZERS}:Raising", "--analyzer", "failures")
    shown = steelyard("analysis", str(root), *names)
    assert shown.status == 1
    assert "the analyzer raising failed: AnalyzerFault: no luck" in shown.err
    assert "# Failures of first" in shown.out


def test_a_run_that_goes_on_is_shown_and_its_files_left_alone(steelyard: Run, root: Path) -> None:
    lock = RunLock.acquire(root / "lock")
    try:
        shown = steelyard("analysis", str(root))
    finally:
        lock.release()
    assert shown.status == 0
    assert "# Failures of first" in shown.out
    assert not (root / "analysis.md").exists()


def test_parameters_with_secrets_are_not_in_a_run(steelyard: Run, root: Path) -> None:
    path = root / "run.json"
    document = json.loads(path.read_bytes())
    chosen = [{"id": f"{ANALYZERS}:Keyed", "api_key": {"$secret": "env:KEY"}}]
    document["request"]["execution"]["analysis"] = chosen
    path.write_text(json.dumps(document))
    shown = steelyard("analysis", str(root))
    assert shown.status == 2
    assert "hold secrets, which a run never keeps" in shown.err


def test_what_is_no_run_is_refused(steelyard: Run, project: Path) -> None:
    shown = steelyard("analysis", str(project))
    assert shown.status == 2
    assert "Traceback" not in shown.err


def test_list_shows_the_analyzers(steelyard: Run) -> None:
    listed = steelyard("list", "analyzers", "--json").json
    assert [one["id"] for one in listed["components"]][:1] == ["failures"]
