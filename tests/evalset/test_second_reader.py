"""A large set is read by two processes: what is reported does not depend on that."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from steelyard.components.issues import Issue, IssueCode, Outcome, Phase
from steelyard.evalset.report import reading, second_reader
from steelyard.evalset.report.cell_json import cells_from_json, cells_json
from steelyard.evalset.report.cell_tally import CellTally, PackCases
from steelyard.evalset.report.reading import PacksOfCells, read_each
from steelyard.evalset.report.report import read_set
from steelyard.evalset.report.second_reader import COMMAND, SecondReader, is_large
from steelyard.evalset.report.second_reading import told_cells
from steelyard.evalset.set_document import SetCell
from steelyard.evalset.set_reader import OpenedSet
from steelyard.results.layout import RunFiles
from steelyard.results.lines import encode
from steelyard.results.records import AttemptRecord
from steelyard.results.records_io import record_to_json
from tests.evalset.sets import (
    GRADE,
    LATENCY,
    PASSED,
    a_record,
    failed,
    fatal,
    write_cell_run,
    write_set,
)

METRICS = {"refunds": (PASSED,), "letters": (GRADE, PASSED), "delays": (LATENCY,)}


def records(cell: SetCell) -> list[AttemptRecord] | None:
    """Differ from cell to cell: in their cases, their order, and what is missing."""
    index = cell.index
    if index == 7:
        return None
    metric = str(METRICS[cell.pack.slug][0]["name"])
    named = [f"case-{n}" for n in range(9 + index % 4)]
    mended = (replace(Issue.of(IssueCode.MODEL_TIMED_OUT, Phase.RUN, "mended"), execution=1),)
    found = [
        a_record(
            case,
            n % 2 == 0 if metric == "passed" else 1 / (n + index + 3),
            metric=metric,
            cost_usd=None if (n, index) == (2, 5) else 0.1 / (n + 3),
            agent_s=n / 7,
            cluster=f"cluster-{n % 3}" if cell.pack.slug == "letters" else None,
            executions=2 if n == 4 else 1,
            issues=mended if n == 4 else (),
        )
        for n, case in enumerate(named)
    ]
    found[1], found[3] = failed(named[1]), fatal(named[3])
    found[6] = a_record(named[6], None, outcome=Outcome.CANCELLED, executions=0)
    return found[::-1] if index % 2 else found


def a_set(root: Path) -> OpenedSet:
    """Make a set of eighteen cells; of the last, some are damaged, and one has two runs."""
    opened = OpenedSet(
        write_set(root, records, packs=list(METRICS), agents=("a", "b", "c"), repeats=2,
                  metrics=METRICS, cases=12)
    )  # fmt: skip
    runs = [opened.run_dir(cell) for cell in opened.cells]
    spoilt, torn, twice = runs[12], runs[13], runs[14]
    assert spoilt is not None
    assert torn is not None
    assert twice is not None
    (spoilt / "run.json").write_text("{")
    lines = RunFiles(torn).attempts.read_bytes()
    RunFiles(torn).attempts.write_bytes(lines[:-9])
    again = encode(record_to_json(a_record("case-2", 0.5, metric="latency")))
    RunFiles(twice).attempts.write_bytes(RunFiles(twice).attempts.read_bytes() + again)
    cell = opened.cells[16]
    write_cell_run(
        opened.files.cell(cell.folder) / "20261202-080001", records(cell) or [], cell=cell,
        metrics=METRICS[cell.pack.slug], k=1, cases=None, plan={}, model="m-1",
        created_at="2026-12-02T08:00:00.000Z",
    )  # fmt: skip
    return opened


def document(opened: OpenedSet, metric: str | None = None) -> str:
    return json.dumps(read_set(opened, metric=metric).report.as_json())


class Watched(SecondReader):
    """Keeps whether its answer was used."""

    was_used: bool | None = None

    def cells(self, cases: Sequence[PackCases]) -> list[CellTally] | None:
        found = super().cells(cases)
        self.was_used = found is not None
        return found

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None


def read_by_two(
    opened: OpenedSet, patched: pytest.MonkeyPatch, first: int, **given: Any
) -> tuple[str, Watched]:
    metric = given.pop("metric", None)
    made = []

    def started(opened: OpenedSet, metric: str | None) -> SecondReader:
        made.append(Watched(opened, first, metric, **given))
        return made[0]

    with patched.context() as inside:
        inside.setattr(reading, "second_reader", started)
        return document(opened, metric), made[0]


@pytest.mark.integration
@pytest.mark.parametrize("first", [0, 1, 8, 13, 17])
def test_two_processes_report_what_one_does(
    first: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = a_set(tmp_path)
    found, reader = read_by_two(opened, monkeypatch, first)
    assert reader.was_used
    assert found == document(opened)
    assert reader.has_ended


@pytest.mark.integration
def test_two_processes_report_the_metric_that_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = a_set(tmp_path)
    found, reader = read_by_two(opened, monkeypatch, 4, metric="passed")
    assert reader.was_used
    assert found == document(opened, "passed") != document(opened)


@pytest.mark.integration
@pytest.mark.parametrize(
    "program",
    [
        "raise SystemExit(1)",
        "import os; os.kill(os.getpid(), 9)",
        "print('{}')",
        "print('no JSON')",
        "print('[' * 100000)",
        "import sys; sys.argv[2] = '3'; from steelyard.evalset.report import second_reading as s; "
        "s.main()",
        "import time; time.sleep(600)",
        "import os; os.close(1); import time; time.sleep(600)",
    ],
    ids=["fails", "is killed", "empty", "no JSON", "deep", "other cells", "hangs", "silent"],
)
def test_what_a_second_process_does_not_read_is_read_here(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = a_set(tmp_path)
    found, reader = read_by_two(
        opened, monkeypatch, 9, command=(sys.executable, "-c", program),
        least_wait_s=0.5 if "sleep" in program else 60.0,
    )  # fmt: skip
    assert reader.was_used is False
    assert found == document(opened)
    assert reader.has_ended


def test_a_command_that_is_not_there_leaves_all_to_this_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = a_set(tmp_path)
    wanted = document(opened)
    monkeypatch.setattr(second_reader, "is_large", lambda opened: True)
    monkeypatch.setattr(second_reader, "_cores", lambda: 2)
    monkeypatch.setattr(subprocess, "Popen", _refused)
    assert document(opened) == wanted


def _refused(*_: Any, **__: Any) -> None:
    raise BlockingIOError("no more processes")


@pytest.mark.integration
def test_a_second_process_ends_with_a_report_that_fails(tmp_path: Path) -> None:
    opened = a_set(tmp_path)
    asleep = (sys.executable, "-c", "import time; time.sleep(600)")
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt), Watched(opened, 9, None, command=asleep) as reader:
        raise KeyboardInterrupt
    assert reader.has_ended
    assert time.monotonic() - began < 300


def test_sums_that_json_cannot_hold_are_refused(tmp_path: Path) -> None:
    dear = [a_record(f"case-{n % 2}", True, attempt=n + 1, cost_usd=1.7e308) for n in range(4)]
    opened = OpenedSet(write_set(tmp_path, lambda cell: dear, k=4))
    packs = PacksOfCells()
    told = told_cells(opened.root, 0, None)
    cases = [packs.cases(cell) for cell in opened.cells]
    with pytest.raises(ValueError, match="no finite number"):
        cells_from_json(told, opened.root, opened.cells, cases)
    assert cases[0].numbers == {}


def test_a_value_for_failures_that_json_cannot_hold_is_refused(tmp_path: Path) -> None:
    endless = {**LATENCY, "on_failure": "inf"}
    opened = OpenedSet(write_set(tmp_path, lambda cell: [failed("c")], metrics=(endless,)))
    read = read_each(opened, opened.cells, PacksOfCells(), None)
    assert read[0].specs[0].on_failure == float("inf")
    with pytest.raises(ValueError, match="finite"):
        cells_json(opened.root, read)


def test_a_set_is_large_by_the_bytes_of_its_records(tmp_path: Path) -> None:
    opened = a_set(tmp_path)
    size = sum(path.stat().st_size for path in opened.root.glob("cells/*/*/attempts.jsonl"))
    assert is_large(opened, least_bytes=size // 2)
    assert not is_large(opened, least_bytes=size * 2)
    assert not is_large(opened)


def test_the_second_process_does_not_import_from_the_working_folder() -> None:
    assert "-P" in COMMAND
