"""The performance suite measures what it says. Nothing here is timed."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from benchmarks.floor import encoded, parsed, spread
from benchmarks.measures import Figure, shown, table
from benchmarks.processes import CommandFailed, run
from benchmarks.work import RunFiles, expect_attempts, write_orchestration, write_pack
from scripts.readme_figures import with_figures
from tests.project.checkout import ROOT


@pytest.mark.parametrize("lines", [1, 3, 10, 21])
def test_the_floor_writes_every_line_once_and_as_the_journal_holds_it(lines: int) -> None:
    data = [{"number": number} for number in range(lines)]
    handed_out = spread(data, 10)
    assert len(handed_out) == 10
    assert [one for lot in handed_out for one in lot] == data
    assert parsed(encoded(data).split(b"\n")[:-1]) == data


def test_a_bound_is_met_on_the_right_side_only() -> None:
    assert Figure("a", 1.0, "s", 2.0).is_met
    assert not Figure("a", 3.0, "s", 2.0).is_met
    assert Figure("a", 0.95, "×", 0.9, sense="at least").is_met
    assert not Figure("a", 0.8, "×", 0.9, sense="at least").is_met


def test_a_missed_bound_stands_out_in_the_table() -> None:
    drawn = table([Figure("slow", 3.0, "s", 2.0, floor=0.1).as_json()])
    assert "MISSED" in drawn
    assert "≤ 2.00 s" in drawn
    assert "0.100 s" in drawn


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.0603, "0.0603"),
        (0.5, "0.500"),
        (3.14159, "3.14"),
        (12.34, "12.34"),
        (512, "512"),
    ],
)
def test_figures_are_written_with_three_digits(value: float, text: str) -> None:
    assert shown(value) == text


def test_a_run_that_did_not_do_its_work_gives_no_figures(tmp_path: Path) -> None:
    (tmp_path / "attempts.jsonl").write_bytes(b'{"outcome":"failed_fatal"}\t00000000\n')
    with pytest.raises(CommandFailed, match="1 attempts planned, 1 recorded, 0 scored"):
        expect_attempts(RunFiles(tmp_path), 1)


@pytest.mark.integration
def test_a_failing_command_gives_no_figures() -> None:
    with pytest.raises(CommandFailed, match="exited with 3"):
        run([sys.executable, "-c", "raise SystemExit(3)"])


@pytest.mark.integration
def test_cpu_and_memory_are_those_of_the_child() -> None:
    used = run([sys.executable, "-c", "b = bytearray(64 << 20); sum(range(3_000_000))"])
    assert used.cpu_s > 0.01
    assert used.max_rss_mib > 64


@pytest.mark.integration
def test_the_instruments_see_a_launch_and_leave_it_as_it_is(tmp_path: Path) -> None:
    file = write_orchestration(
        tmp_path / "nop.yaml",
        pack=write_pack(tmp_path / "pack", 5),
        harness="nop",
        concurrency=4,
        results=tmp_path / "results",
    )
    report = tmp_path / "report"
    extra = {"BENCH_REPORT": str(report), "BENCH_LOOP_LAG": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "benchmarks.instrumented", "launch", str(file)]
    run(command, cwd=tmp_path, env=dict(os.environ) | extra)
    [records] = (tmp_path / "results").rglob("attempts.jsonl")
    expect_attempts(RunFiles(records.parent), 5)
    seen = json.loads(report.read_text())
    assert seen["fsyncs"] >= 1
    assert seen["lags_s"]


def test_figures_replace_what_stands_between_the_marks() -> None:
    text = "before\n<!-- BENCHMARKS -->\nold\n<!-- /BENCHMARKS -->\nafter\n"
    filled = with_figures(text, "new")
    assert filled == "before\n<!-- BENCHMARKS -->\nnew\n<!-- /BENCHMARKS -->\nafter\n"
    assert with_figures(filled, "new") == filled
