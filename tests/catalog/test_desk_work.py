"""desk-work: every job has its folders, made inputs are as made, and tricks do not pass."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from steelyard.benchmarks.pack import PackBenchmark
from steelyard.components.catalog import catalog_folder
from tests.benchmarks.scoring import Context, score
from tests.catalog.playing import cases, pack

ROOT = catalog_folder() / "desk-work"


def test_every_job_has_hidden_checks_and_a_reference_and_nothing_is_left_over() -> None:
    jobs = set(cases("desk-work"))
    for kind in ("hidden", "solutions"):
        assert {path.name for path in (ROOT / kind).iterdir()} == jobs
        assert all(any(path.iterdir()) for path in (ROOT / kind).iterdir())
    # A job may begin in an empty folder, which Git does not keep.
    assert {path.name for path in (ROOT / "cases").iterdir()} <= jobs


def test_jobs_are_of_many_kinds() -> None:
    areas = [task.category for task in cases("desk-work").values()]
    assert {area: areas.count(area) >= 2 for area in set(areas)} == dict.fromkeys(
        ("mend", "merge", "extract", "reconcile", "tidy", "script"), True
    )


def test_inputs_that_no_editor_should_touch_are_as_they_were_made() -> None:
    spec = importlib.util.spec_from_file_location("inputs", ROOT / "making" / "inputs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made = dict(module.inputs())
    for name, data in made.items():
        assert (ROOT / "cases" / name).read_bytes() == data, name
    there = {
        str(path.relative_to(ROOT / "cases"))
        for folder in ("manifest-check/delivery", "mixed-encodings/texts")
        for path in (ROOT / "cases" / folder).rglob("*")
        if path.is_file()
    }
    assert there | {"sensor-frames/frames.bin"} == set(made)


@pytest.mark.integration
@pytest.mark.parametrize(
    "trick",
    [
        "import os\nos._exit(0)\n",
        "import sys\nsys.exit(0)\n",
        "print('passed money-parser')\n\ndef to_cents(text):\n    return 0\n",
        "class Yes(int):\n    __eq__ = lambda self, other: True\n    __hash__ = int.__hash__\n\n"
        "def to_cents(text):\n    return Yes(0)\n",
    ],
)
def test_work_that_only_tricks_its_checks_fails(trick: str, tmp_path: Path) -> None:
    (tmp_path / "amounts.py").write_text(trick, "utf-8")
    benchmark: PackBenchmark = pack("desk-work")
    context = Context(None, "sandbox", artifacts={".": tmp_path})
    found = score(benchmark, cases("desk-work")["money-parser"], context)
    assert found.metrics["correct"] is False
