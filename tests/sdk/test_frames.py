"""Runs as pandas and polars frames: flat, documented columns of fixed types."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pandas as pd
import polars as pl
import pytest

import steelyard as sy
from steelyard.sdk.frames import COLUMNS
from tests.sdk.parts import Say, Sums

DOCUMENT = Path(__file__).parents[2] / "docs" / "sdk.md"


@pytest.fixture
def launched() -> sy.LaunchResult:
    return sy.launch(
        sy.Orchestration(
            [
                sy.Request(Sums, Say(Say.Params(text="2")), name="a", k=2),
                sy.Request(Sums, Say(Say.Params(text="crash")), name="b"),
            ]
        )
    )


def test_a_row_for_each_attempt_of_every_run(launched: sy.LaunchResult) -> None:
    frame = launched.to_pandas()
    assert len(frame) == 9
    assert list(frame["request"].unique()) == ["a", "b"]
    assert frame[frame["request"] == "a"]["metrics.right"].mean() == pytest.approx(1 / 3)
    broken = frame[frame["request"] == "b"]
    assert broken["metrics.right"].isna().all()
    assert set(broken["issue_code"]) == {"harness_crashed"}
    assert set(broken["issue_severity"]) == {"FATAL"}
    assert len(launched["b"].to_pandas()) == 3


def test_pandas_types_do_not_depend_on_what_is_missing(launched: sy.LaunchResult) -> None:
    for frame in (launched.to_pandas(), launched["b"].to_pandas()):
        types = {name: str(dtype) for name, dtype in frame.dtypes.items()}
        assert types["task_id"] == types["category"] == types["answer"] == "string"
        assert types["attempt"] == types["model_calls"] == "Int64"
        assert types["metrics.right"] == "boolean"
        assert types["metrics.chars"] == types["cost_usd"] == types["agent_s"] == "float64"
        assert types["started_at"] == "datetime64[us, UTC]"


def test_polars_has_the_same_values(launched: sy.LaunchResult) -> None:
    table, frame = launched.to_polars(), launched.to_pandas()
    assert table.columns == list(frame.columns)
    assert table.schema["task_id"] == pl.String
    assert table.schema["attempt"] == pl.Int64
    assert table.schema["metrics.right"] == pl.Boolean
    assert table.schema["started_at"] == pl.Datetime("us", "UTC")
    for name in table.columns:
        theirs = [None if pd.isna(value) else value for value in frame[name]]
        assert table[name].to_list() == theirs, name


def test_an_empty_run_has_every_column(launched: sy.LaunchResult) -> None:
    run = launched["a"]
    (run.run_dir / "attempts.jsonl").write_bytes(b"")
    assert len(run.to_pandas()) == len(run.to_polars()) == 0
    assert str(run.to_pandas().dtypes["metrics.right"]) == "boolean"


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_without_the_package_the_error_is_the_command(
    package: str, launched: sy.LaunchResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)  # what makes an import fail
    convert = getattr(launched, f"to_{package}")
    with pytest.raises(sy.PackageMissing, match=rf"python -m pip install {package}$") as caught:
        convert()
    assert isinstance(caught.value, ImportError)
    assert isinstance(caught.value, sy.SteelyardError)


def test_every_column_is_documented(launched: sy.LaunchResult) -> None:
    documented = set(re.findall(r"`([a-z_]+)`", DOCUMENT.read_text()))
    assert {column.name for column in COLUMNS} | {"request", "run_id"} <= documented
