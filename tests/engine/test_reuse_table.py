"""The contract's table of reuse, row by row, by launches; with and without files to score.

`ran` is what the agent has done, over all runs of a test: a line for each time it ran.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import steelyard as sy
from steelyard.components.issues import IssueCode, Outcome
from steelyard.engine.events import LaunchResult
from steelyard.results.reader import RunReader
from steelyard.results.records import AttemptRecord
from tests.engine.launching import COMPONENTS, records, request, run_all

FILES = pytest.mark.parametrize("with_files", [False, True], ids=["answer", "files"])
"""What scoring takes: the answer alone, or files, which a checkpoint holds."""
RESUME = pytest.mark.parametrize("resumes", [True, False], ids=["resume", "no resume"])


@dataclass
class Rows:
    """One request that is launched again and again."""

    folder: Path
    with_files: bool = False

    @property
    def ran(self) -> list[str]:
        try:
            return (self.folder / "ran").read_text().split("\n")[:-1]
        except FileNotFoundError:
            return []

    def launch(
        self,
        *,
        benchmark: dict[str, Any] | None = None,
        harness: dict[str, Any] | None = None,
        resumes: bool | None = None,
        execution: dict[str, Any] | None = None,
    ) -> LaunchResult:
        """Launch it; with `resumes`, over what was done before."""
        files = {"collects": True} if self.with_files else {}
        runtime = {} if resumes is None else {"reuse": True, "checkpoint_resume": resumes}
        return run_all(
            self.folder,
            request(
                benchmark={"tasks": 2, **files, **(benchmark or {})},
                harness={
                    "ledger": str(self.folder / "ran"),
                    **({"execs": "touch out"} if self.with_files else {}),
                    **(harness or {}),
                },
                runtime=runtime,
                execution=execution or {},
            ),
        )


def by_task(result: LaunchResult) -> dict[str, AttemptRecord]:
    return {record.task_id: record for record in records(result)}


def forget_scores(result: LaunchResult) -> None:
    """Leave the run as one that died between its agents' work and their scores."""
    (result.requests[0].run_dir / "attempts.jsonl").write_bytes(b"")


def warnings_of(result: LaunchResult) -> list[str]:
    events = RunReader(result.requests[0].run_dir).events()
    return [str(event["message"]) for event in events if event["kind"] == "warning"]


@FILES
@RESUME
def test_what_ended_and_has_not_changed_is_taken_score_and_all(
    tmp_path: Path, with_files: bool, resumes: bool
) -> None:
    rows = Rows(tmp_path, with_files)
    first = rows.launch()
    again = rows.launch(resumes=resumes)
    assert len(rows.ran) == 2
    old, new = by_task(first), by_task(again)
    for task_id, record in new.items():
        assert (record.metrics, record.answer) == (old[task_id].metrics, old[task_id].answer)
        assert record.timing == old[task_id].timing
        assert record.reused_from is not None


@FILES
@RESUME
def test_what_ended_fatal_in_its_agent_is_executed_with_the_present_retries(
    tmp_path: Path, with_files: bool, resumes: bool
) -> None:
    rows = Rows(tmp_path, with_files)
    rows.launch(harness={"fatal": ["t0"]})
    ran = len(rows.ran)
    again = rows.launch(harness={"fatal": ["t0"]}, resumes=resumes, execution={"max_retries": 1})
    assert rows.ran[ran:] == ["t0 1", "t0 1"]
    found = by_task(again)
    assert (found["t0"].executions, found["t0"].reused_from) == (2, None)
    assert found["t1"].reused_from is not None


@FILES
@pytest.mark.parametrize("patterns", [None, ["as scripted"], ["something else"]], ids=str)
def test_an_error_is_executed_where_a_present_pattern_matches_it(
    tmp_path: Path, with_files: bool, patterns: list[str] | None
) -> None:
    rows = Rows(tmp_path, with_files)
    rows.launch(harness={"errors": ["t0"]})
    ran = len(rows.ran)
    again = rows.launch(
        harness={"errors": ["t0"]}, resumes=True, execution={"retry_pattern_list": patterns}
    )
    assert rows.ran[ran:] == (["t0 1"] if patterns == ["as scripted"] else [])
    assert by_task(again)["t0"].outcome is Outcome.FAILED_ERROR


@FILES
@RESUME
def test_where_only_scoring_was_fatal_it_alone_is_repeated(
    tmp_path: Path, with_files: bool, resumes: bool
) -> None:
    rows = Rows(tmp_path, with_files)
    rows.launch(benchmark={"scorer_crashes": True})
    again = rows.launch(resumes=resumes)
    assert len(rows.ran) == (2 if resumes else 4)
    assert all(record.outcome is Outcome.SCORED for record in records(again))
    assert all((record.reused_from is not None) is resumes for record in records(again))


@pytest.mark.parametrize("version", ["1", "2"], ids=["same evaluation", "changed evaluation"])
@RESUME
def test_an_agent_that_was_done_and_not_scored_does_not_run_again(
    tmp_path: Path, version: str, resumes: bool
) -> None:
    rows = Rows(tmp_path, with_files=True)
    forget_scores(rows.launch())
    again = rows.launch(benchmark={"version": version}, resumes=resumes)
    assert len(rows.ran) == (2 if resumes else 4)
    assert all(record.outcome is Outcome.SCORED for record in records(again))


@FILES
@RESUME
def test_what_is_scored_by_other_rules_is_scored_again_and_its_agent_does_not_run(
    tmp_path: Path, with_files: bool, resumes: bool
) -> None:
    """It had ended: `checkpoint_resume` is of attempts whose scoring is pending."""
    rows = Rows(tmp_path, with_files)
    first = by_task(rows.launch())
    again = by_task(rows.launch(benchmark={"version": "2"}, resumes=resumes))
    assert len(rows.ran) == 2
    for task_id, record in again.items():
        assert record.evaluation != first[task_id].evaluation
        assert record.reused_from is not None


@FILES
@RESUME
@pytest.mark.parametrize("is_pending", [False, True], ids=["scored", "pending"])
def test_another_generation_is_executed_and_the_summary_says_what_changed(
    tmp_path: Path, with_files: bool, resumes: bool, is_pending: bool
) -> None:
    rows = Rows(tmp_path, with_files)
    first = rows.launch()
    if is_pending and with_files:
        forget_scores(first)
    again = rows.launch(harness={"sleep_s": 0.001}, resumes=resumes)
    assert len(rows.ran) == 4
    assert all(record.reused_from is None for record in records(again))
    note = again.requests[0].reuse or ""
    if not (is_pending and with_files and not resumes):
        assert "harness.params.sleep_s was 0, is 0.001" in note


def _removed(run_dir: Path) -> None:
    (run_dir / "attempts.jsonl").write_bytes(b"")


def _torn(run_dir: Path) -> None:
    path = run_dir / "attempts.jsonl"
    path.write_bytes(path.read_bytes()[:-20])


def _flipped(run_dir: Path) -> None:
    path = run_dir / "attempts.jsonl"
    first, last, end = path.read_bytes().split(b"\n")
    last = last.replace(b'"answer":"right"', b'"answer":"wrong"')
    path.write_bytes(b"\n".join((first, last, end)))


@RESUME
@pytest.mark.parametrize("damage", [_torn, _flipped])
def test_a_record_that_is_torn_or_fails_its_checksum_is_executed_with_a_warning(
    tmp_path: Path, damage: Callable[[Path], None], resumes: bool
) -> None:
    rows = Rows(tmp_path)
    first = rows.launch()
    damage(first.requests[0].run_dir)
    again = rows.launch(resumes=resumes)
    assert warnings_of(again)
    executed = [record for record in records(again) if record.reused_from is None]
    assert len(rows.ran) == 2 + len(executed) > 2
    assert {issue.code for record in executed for issue in record.issues} <= {
        IssueCode.REUSE_REFUSED
    }


@pytest.mark.parametrize("version", ["1", "2"], ids=["same evaluation", "changed evaluation"])
@pytest.mark.parametrize("name", ["checkpoint.json", "inputs-1/0"])
@pytest.mark.parametrize("is_pending", [False, True], ids=["scored", "pending"])
def test_a_checkpoint_or_an_input_that_is_damaged_is_never_scored(
    tmp_path: Path, version: str, name: str, is_pending: bool
) -> None:
    rows = Rows(tmp_path, with_files=True)
    first = rows.launch()
    if is_pending:
        forget_scores(first)
    path = first.requests[0].run_dir / "tasks/t0/attempt-1" / name
    data = path.read_bytes()
    path.write_bytes(data.replace(b"right", b"wrong") if data else b"put there later")
    again = rows.launch(benchmark={"version": version}, resumes=True)
    found = by_task(again)
    needs_it = is_pending or version == "2"
    assert rows.ran[2:] == (["t0 1"] if needs_it else [])
    assert (found["t0"].reused_from is None) is needs_it
    assert found["t1"].reused_from is not None
    if needs_it:
        (issue,) = found["t0"].issues
        assert issue.code is IssueCode.REUSE_REFUSED
        assert any(issue.message in warning for warning in warnings_of(again))


PLACES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "nowhere": ({}, {"reuse": True}),
    "defaults.runtime": ({"runtime": {"reuse": True, "checkpoint_resume": False}}, {}),
    "requests[].runtime": ({}, {"reuse": True, "checkpoint_resume": False}),
    "the request over the defaults": (
        {"runtime": {"reuse": True, "checkpoint_resume": False}},
        {"checkpoint_resume": True},
    ),
}
"""Where `checkpoint_resume` is written: under `defaults`, and in the request."""


@pytest.mark.parametrize("place", PLACES)
def test_checkpoint_resume_may_be_written_in_each_of_its_places(tmp_path: Path, place: str) -> None:
    rows = Rows(tmp_path, with_files=True)
    forget_scores(rows.launch())
    defaults, runtime = PLACES[place]
    one = request(
        benchmark={"tasks": 2, "collects": True},
        harness={"ledger": str(tmp_path / "ran"), "execs": "touch out"},
        runtime=runtime,
    )
    again = run_all(tmp_path, one, defaults=defaults)
    resumes = place in ("nowhere", "the request over the defaults")
    assert len(rows.ran) == (2 if resumes else 4)
    assert len(records(again)) == 2


@pytest.mark.parametrize("resumes", [None, True, False])
def test_checkpoint_resume_may_be_given_in_python(tmp_path: Path, resumes: bool | None) -> None:
    rows = Rows(tmp_path, with_files=True)
    forget_scores(rows.launch())
    one = sy.Request(
        {"id": f"{COMPONENTS}:Counted", "tasks": 2, "collects": True},
        {"id": f"{COMPONENTS}:Scripted", "ledger": str(tmp_path / "ran"), "execs": "touch out"},
        environment="host_process",
        name="r",
    )
    again = sy.launch(
        one,
        reuse=True,
        checkpoint_resume=resumes,
        results_dir=tmp_path / "results",
        use_config_files=False,
    )
    assert len(rows.ran) == (4 if resumes is False else 2)
    assert again.outcome is sy.RunOutcome.COMPLETED
