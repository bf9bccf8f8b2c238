"""The published sets resolve as the launch file names them, and say how their data comes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from steelyard.benchmarks.harbor import TerminalBench2, TerminalBench2Verified, TerminalBench21
from steelyard.benchmarks.harbor.published import Published
from steelyard.components.registry import Kind, find
from steelyard.config.errors import BadInput
from tests.benchmarks.harbor.task_folders import write_task

SETS: list[type[Published]] = [TerminalBench2, TerminalBench21, TerminalBench2Verified]


def made(kind: type[Published], data_dir: Path, **params: str) -> Published:
    benchmark = kind(kind.Params.model_validate({"images": "none", **params}))
    benchmark.data_dir = data_dir
    return benchmark


@pytest.mark.parametrize("kind", SETS, ids=lambda kind: kind.id)
def test_each_is_found_by_its_id_and_needs_no_parameter(kind: type[Published]) -> None:
    assert find(Kind.BENCHMARK, kind.id).component is kind
    info = kind(kind.Params()).info()
    assert (info.id, info.primary) == (kind.id, "passed")
    assert info.metrics[0].kind == "binary"  # strategy `pass` needs it


@pytest.mark.parametrize("kind", SETS, ids=lambda kind: kind.id)
def test_what_is_not_there_is_said_with_the_whole_command(
    kind: type[Published], tmp_path: Path
) -> None:
    benchmark = made(kind, tmp_path)
    lacks = benchmark.lacking()
    assert lacks is not None
    assert f"steelyard run {kind.id} oracle none" in lacks
    assert f"--data-dir {tmp_path} -P benchmark.source=" in lacks
    with pytest.raises(BadInput, match="are not in"):
        benchmark.load_tasks()
    assert list(tmp_path.iterdir()) == []


def test_its_tasks_are_known_without_loading_once_they_are_there(tmp_path: Path) -> None:
    write_task(tmp_path / "tasks", "one")
    assert made(TerminalBench2, tmp_path / "data").task_ids() is None
    source = made(TerminalBench2, tmp_path / "data", source=str(tmp_path / "tasks"))
    assert source.task_ids() is None  # nothing is brought in by a plan
    assert not (tmp_path / "data").exists()
    source.load_tasks()
    assert made(TerminalBench2, tmp_path / "data").task_ids() == ["one"]


def test_once_brought_in_it_lacks_nothing(tmp_path: Path) -> None:
    write_task(tmp_path / "tasks", "one")
    source = made(TerminalBench2, tmp_path / "data", source=str(tmp_path / "tasks"))
    assert source.lacking() is None
    assert [task.id for task in source.load_tasks()] == ["one"]
    later = made(TerminalBench2, tmp_path / "data")
    assert later.lacking() is None
    assert [task.id for task in later.load_tasks()] == ["one"]
    assert made(TerminalBench21, tmp_path / "data").lacking() is not None


@pytest.mark.integration
def test_a_request_for_it_resolves_and_a_dry_run_warns_of_the_data(tmp_path: Path) -> None:
    file = tmp_path / "launch.yaml"
    file.write_text(
        "requests:\n"
        + "".join(
            f"  - name: {name}\n"
            f"    benchmark: {{id: {name}}}\n"
            "    harness: {id: nop}\n"
            "    model: {id: none}\n"
            "    environment: {id: sandbox}\n"
            f"    execution: {{attempts: {{k: 5, strategy: {strategy}}}}}\n"
            for name, strategy in (
                ("terminal_bench_2_verified", "avg"),
                ("terminal_bench_2_1", "pass"),
            )
        )
    )
    done = subprocess.run(
        [sys.executable, "-m", "steelyard", "launch", str(file), "--dry-run", "--json"],
        cwd=tmp_path,
        env={**os.environ, "XDG_DATA_HOME": str(tmp_path / "data")},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    said = json.dumps(json.loads(done.stdout))
    assert "the tasks of terminal_bench_2_verified are not in" in said
    assert "the tasks of terminal_bench_2_1 are not in" in said
