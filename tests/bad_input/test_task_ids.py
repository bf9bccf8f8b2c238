"""Task ids with slashes, emoji or 500 characters: on the disk, in the summary, in reuse."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from steelyard.components.issues import Outcome
from steelyard.results.reader import RunReader
from tests.bad_input.command import PACK, steelyard, steelyard_here, write_pack

pytestmark = pytest.mark.integration

IDS = (
    "a/b/../c", "../../../etc/passwd", "/etc/passwd", "..", ".", "😀🎉", "x" * 500,
    "é" * 500, "CON", "A", "a", "new\nline", "a\u2028b", "\u202egpj", "-rf", "a\x1b[31mb", "%2e%2e",
)  # fmt: skip


def test_any_id_has_a_folder_of_its_own_inside_the_run(project: Path) -> None:
    large = "z" * 20_000  # so that each answer lies in a file
    write_pack(
        project / "ids", PACK.replace("tiny", "ids"), [{"id": i, "q": "?", "a": large} for i in IDS]
    )
    before = set(project.rglob("*"))
    arguments = ("run", "./ids", "oracle", "none", "--json")
    ran = steelyard(project, *arguments, "--run-id", "one", status=0)
    assert ran.only["outcomes"][Outcome.SCORED] == len(IDS)
    run_dir = project / ran.only["run_dir"]
    made = set(project.rglob("*")) - before
    assert all((project / "results") in (path, *path.parents) for path in made)
    reader = RunReader(run_dir)
    files = {record.task_id: record.answer_file for record in reader.records()}
    assert sorted(files) == sorted(IDS)
    assert len({str(file).casefold() for file in files.values()}) == len(IDS)
    assert all((run_dir / str(file)).read_text() == large for file in files.values())
    assert reader.record("x" * 500, 1) is not None

    summary = steelyard(project, "summary", str(run_dir), status=0)
    assert f"| scored | {len(IDS)} |" in summary.out
    again = steelyard(project, *arguments, "--run-id", "two", "--reuse", "one", status=0)
    taken = list(RunReader(project / again.only["run_dir"]).records())
    assert {record.task_id for record in taken if record.reused_from} == set(IDS)


@pytest.mark.parametrize("task_id", ["a/b/../c", "😀🎉", "x" * 500, "a\x1b[31mb"])
def test_any_id_can_be_chosen_and_is_shown_without_touching_the_terminal(
    project: Path, task_id: str
) -> None:
    write_pack(project / "ids", PACK, [{"id": task_id, "q": "?", "a": "1"}, {"id": "b", "q": "?"}])
    ran = steelyard_here(project, "run", "./ids", "oracle", "none")
    assert "no field 'a'" in ran.out
    cases = [{"id": name, "q": "?", "a": "1"} for name in (task_id, "b")]
    (project / "ids" / "cases.jsonl").write_text("".join(json.dumps(case) + "\n" for case in cases))
    chosen = ("--sample-ids", json.dumps([task_id]))
    ran = steelyard_here(project, "run", "./ids", "oracle", "none", *chosen, "--json")
    (record,) = RunReader(project / ran.only["run_dir"]).records()
    assert (record.task_id, record.outcome) == (task_id, Outcome.SCORED)
    other = steelyard(
        project, "run", "./ids", "oracle", "none", "--sample-ids", json.dumps([task_id + "?"]),
        status=2,
    )  # fmt: skip
    assert "there is no task" in other.err
    assert "\x1b" not in other.out + other.err


def test_an_empty_id_is_refused_with_its_line(project: Path) -> None:
    write_pack(project / "ids", PACK, [{"id": "", "q": "?", "a": "1"}])
    ran = steelyard(project, "run", "./ids", "oracle", "none", status=1)
    assert "ids/cases.jsonl:1" in ran.out
