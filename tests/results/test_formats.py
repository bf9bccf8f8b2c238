"""The first formats stay readable, newer ones are named, steps lead from each to the next."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from steelyard.components.issues import Outcome
from steelyard.results import journal, progress_file, records, run_folder, summary
from steelyard.results.formats import NEWEST, Standing, formats_of, standing_of, upgraded
from steelyard.results.reader import RunReader, RunState
from steelyard.results.summary import summarise

FIRST = Path(__file__).parent.parent / "fixtures/formats/first"
RUNS = ("ceiling/first", "chat/first")


def test_the_table_names_the_version_that_each_file_is_written_in() -> None:
    written = (
        run_folder.RUN_SCHEMA,
        records.ATTEMPT_SCHEMA,
        journal.EVENT_SCHEMA,
        progress_file.PROGRESS_SCHEMA,
        summary.METRICS_SCHEMA,
    )
    assert {standing_of(schema) for schema in written} == {Standing.CURRENT}
    assert {schema.partition("/")[0] for schema in written} <= set(NEWEST)


@pytest.mark.parametrize("name", RUNS)
def test_runs_of_the_first_formats_are_read_whole(name: str, tmp_path: Path) -> None:
    root = tmp_path / "run"
    shutil.copytree(FIRST / name, root)
    reader = RunReader(root)
    assert reader.state is RunState.FINISHED
    ledger = reader.ledger
    assert ledger.planned == sum(ledger.outcomes.values())
    assert reader.warnings == ()
    stored = json.loads((FIRST / name / "metrics.json").read_text())
    assert _by_any_rule(summarise(root)) == _by_any_rule(stored)


def _by_any_rule(metrics: dict[str, Any]) -> dict[str, Any]:
    """Leave out the intervals of numbers, whose rule for those that are all 0 or 1 has changed.

    So is what the run itself spent, which the first metrics did not say.
    """
    metrics.pop("spent", None)
    for score in metrics["scores"]:
        for estimate in (score["estimate"], *score["categories"].values()):
            if score["kind"] == "scalar":
                for name in ("interval", "interval_method", "note"):
                    del estimate[name]
    return metrics


def test_what_the_first_formats_say_is_understood() -> None:
    outcomes = RunReader(FIRST / "chat/first").ledger.outcomes
    assert (outcomes[Outcome.SCORED], outcomes[Outcome.FAILED_ERROR]) == (2, 1)
    assert RunReader(FIRST / "ceiling/first").ledger.outcomes[Outcome.SCORED] == 6


@pytest.mark.parametrize("name", RUNS)
def test_every_file_of_the_first_formats_is_current(name: str) -> None:
    found = formats_of(FIRST / name)
    assert len(found) == 5
    assert {file.standing for file in found} == {Standing.CURRENT}


@pytest.mark.parametrize(
    ("schema", "standing"),
    [
        ("run/1", Standing.CURRENT),
        ("run/2", Standing.NEWER),
        ("run/0", Standing.UNKNOWN),
        ("walk/1", Standing.UNKNOWN),
        ("run/one", Standing.UNKNOWN),
        ("run", Standing.UNKNOWN),
        (None, Standing.UNKNOWN),
    ],
)
def test_a_schema_stands_to_ours(schema: str | None, standing: Standing) -> None:
    assert standing_of(schema) is standing


def test_a_document_is_brought_forward_step_by_step() -> None:
    def second(document: dict[str, Any]) -> dict[str, Any]:
        return {**document, "b": document["a"] + 1}

    def third(document: dict[str, Any]) -> dict[str, Any]:
        return {"schema": document["schema"], "c": document["b"] * 10}

    steps = {("run", 1): second, ("run", 2): third}
    old = {"schema": "run/1", "a": 1}
    assert upgraded(old, {"run": 3}, steps) == {"schema": "run/3", "c": 20}
    assert old == {"schema": "run/1", "a": 1}
    assert standing_of("run/1", {"run": 3}, steps) is Standing.OLD
    assert standing_of("run/1", {"run": 3}, {("run", 2): third}) is Standing.UNKNOWN


def test_damaged_and_empty_files_are_told_apart(tmp_path: Path) -> None:
    shutil.copytree(FIRST / "chat/first", tmp_path / "run")
    (tmp_path / "run/attempts.jsonl").write_bytes(b"")
    (tmp_path / "run/events.jsonl").write_bytes(b"\x00garbage\n")
    found = {file.path.name: file.standing for file in formats_of(tmp_path / "run")}
    assert found["attempts.jsonl"] is Standing.CURRENT
    assert found["events.jsonl"] is Standing.UNKNOWN


@pytest.mark.parametrize("name", RUNS)
def test_what_todays_rules_make_of_the_first_formats_is_pinned_whole(
    name: str, tmp_path: Path
) -> None:
    """Intervals included: a changed rule must change this file on purpose."""
    root = tmp_path / "run"
    shutil.copytree(FIRST / name, root)
    pinned = FIRST.parent / f"first-{name.partition('/')[0]}-now.json"
    assert summarise(root) == json.loads(pinned.read_text())
