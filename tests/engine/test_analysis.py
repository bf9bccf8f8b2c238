"""Analyzers run once a request has ended; what they do changes nothing else."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from steelyard.config.errors import BadInput
from steelyard.engine import analysis as engine_analysis
from steelyard.engine.events import LaunchResult, RequestResult, RunOutcome, Unobserved
from steelyard.engine.launch import launch, prepare
from steelyard.results.files import WritePoint
from steelyard.results.reader import RunReader
from steelyard.testing.faults import FailAt
from tests.engine.launching import request, resolved, run_all

HERE = Path(__file__).with_name("analyzing.py")
LOG = logging.getLogger("steelyard")


@pytest.fixture(autouse=True)
def every_level_is_on() -> Iterator[None]:
    before = LOG.level
    LOG.setLevel(logging.DEBUG)
    yield
    LOG.setLevel(before)


def analyzing(name: str) -> str:
    return f"{HERE}:{name}"


def failing(analysis: Any, **rest: Any) -> dict[str, Any]:
    harness = {"right": {"t0": [1]}, "steps": True, **rest.pop("harness", {})}
    return request(harness=harness, execution={"analysis": analysis}, **rest)


def document(result: LaunchResult, index: int = 0) -> dict[str, Any]:
    path = result.requests[index].run_dir / "analysis.json"
    found: dict[str, Any] = json.loads(path.read_bytes())
    return found


def test_a_run_is_analyzed_where_its_request_says_so(tmp_path: Path) -> None:
    result = run_all(tmp_path, failing(True), request("plain"))
    found = document(result)
    assert (found["schema"], found["outcome"], found["is_complete"]) == (
        "analysis/1", "completed", True,
    )  # fmt: skip
    (one,) = found["analyses"]
    assert one["id"] == "failures"
    assert one["data"]["attempts"]["failed"] == 4
    page = (result.requests[0].run_dir / "analysis.md").read_text()
    assert one["data"]["summary"].split(". ")[0] in page
    assert not (result.requests[1].run_dir / "analysis.json").exists()


def test_the_summary_stands_in_the_log(tmp_path: Path) -> None:
    result = run_all(tmp_path, failing(True))
    log = (result.requests[0].run_dir / "run.log").read_text()
    assert "4 of 5 attempts got no point or failed." in log


def test_analyzers_are_named_by_id_module_or_file_with_parameters(tmp_path: Path) -> None:
    chosen = [
        {"id": "failures", "examples": 1},
        analyzing("Counting"),
    ]
    found = document(run_all(tmp_path, failing(chosen)))
    assert [one["id"] for one in found["analyses"]] == ["failures", "counting"]
    assert len(found["analyses"][0]["data"]["classes"][0]["examples"]) == 1
    assert found["analyses"][1]["data"]["steps"] > 0
    as_module = "steelyard.analyzers.failures:Failures"
    other = tmp_path / "other"
    other.mkdir()
    assert document(run_all(other, failing([as_module])))["analyses"][0]["id"] == "failures"


MISBEHAVING = {
    "Raising": "AnalyzerFault: no luck",
    "Exiting": "SystemExit: 3",
    "NotFinite": "not JSON with finite numbers",
    "NoAnalysis": "gave dict, not an Analysis",
    "Huge": "too large",
}


@pytest.mark.parametrize("name", MISBEHAVING)
def test_an_analyzer_that_fails_is_a_warning_and_changes_nothing(name: str, tmp_path: Path) -> None:
    plain, chosen = tmp_path / "plain", tmp_path / "chosen"
    plain.mkdir()
    chosen.mkdir()
    before = run_all(plain, failing(False)).requests[0]
    result = run_all(chosen, failing([analyzing(name), analyzing("Counting")]))
    after = result.requests[0]
    assert (after.outcome, after.counts, result.exit_status) == (before.outcome, before.counts, 0)
    assert after.metrics is not None
    assert before.metrics is not None
    assert after.metrics["scores"] == before.metrics["scores"]
    found = document(result)
    (fault,) = found["faults"]
    assert MISBEHAVING[name] in fault["message"]
    assert [one["id"] for one in found["analyses"]] == ["counting"]
    log = (after.run_dir / "run.log").read_text()
    assert (
        f"WARNING steelyard.engine.analysis run={after.run_dir.name} request=r: r: the analyzer"
        in log
    )


@pytest.mark.parametrize(
    "point",
    [WritePoint.ANALYSIS_WRITTEN, WritePoint.ANALYSIS_RENAMED, WritePoint.ANALYSIS_TEXT_WRITTEN],
)
def test_a_disk_that_takes_no_analysis_is_a_warning(point: WritePoint, tmp_path: Path) -> None:
    result = run_all(tmp_path, failing(True), faults=FailAt(point))
    (run,) = result.requests
    assert run.outcome is RunOutcome.COMPLETED
    assert run.metrics is not None
    assert "r has no analysis" in (run.run_dir / "run.log").read_text()


def test_a_secret_of_an_analyzer_is_in_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    canary = "canary-analyzer-5c1f77"
    result = run_all(tmp_path, failing([{"id": analyzing("Keyed"), "api_key": canary}]))
    (fault,) = document(result)["faults"]
    assert "[redacted]" in fault["message"]
    for path in result.requests[0].run_dir.rglob("*"):
        assert not path.is_file() or b"canary-a" not in path.read_bytes(), path


WRONG: dict[str, tuple[Any, str]] = {
    "unknown parameter": ([{"id": "failures", "exmples": 1}], "exmples"),
    "wrong type": ([{"id": "failures", "examples": "many"}], "examples"),
    "twice": (["failures", "steelyard.analyzers.failures:Failures"], "named twice"),
    "no such class": ([f"{HERE}:Nobody"], "Nobody"),
    "another kind": ([f"{HERE.with_name('components.py')}:Scripted"], "analyzer"),
    "lacks something": ([f"{HERE}:Lacking"], "it needs a moon"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_with_an_analyzer_is_known_before_anything_runs(
    name: str, tmp_path: Path
) -> None:
    chosen, said = WRONG[name]
    with pytest.raises(BadInput) as caught:
        prepare(resolved(tmp_path, failing(chosen)))
    (problem,) = caught.value.problems
    assert said in str(problem)
    assert "execution.analysis" in str(problem.where)
    assert not (tmp_path / "results").exists()


def test_a_slow_analysis_holds_up_no_other_request(tmp_path: Path) -> None:
    ended: dict[str, float] = {}

    class Watching(Unobserved):
        def request_ended(self, result: RequestResult) -> None:
            ended[result.name] = time.monotonic()

    # The second has one slot with the first: it can only run while the first is analyzed.
    began = time.monotonic()
    cut = asyncio.run(_cancelled_when(tmp_path, Watching(), ended))
    assert ended["second"] - began < 6
    assert cut.requests[1].outcome is RunOutcome.COMPLETED
    # The launch was told to stop while the first was still being analyzed: it does at once.
    assert time.monotonic() - began < 7
    assert not (cut.requests[0].run_dir / "analysis.json").exists()
    assert "is not analyzed: the launch ends" in (cut.requests[0].run_dir / "run.log").read_text()


async def _cancelled_when(
    folder: Path, observer: Unobserved, ended: dict[str, float]
) -> LaunchResult:
    from steelyard.engine.control import Controls

    first = failing([analyzing("Slow")])
    prepared = prepare(resolved(folder, first, request("second"), task_concurrency=1))
    controls = Controls()

    async def stop_later() -> None:
        while "second" not in ended:
            await asyncio.sleep(0.02)
        controls.cancel(by="enough")

    async with asyncio.TaskGroup() as group:
        group.create_task(stop_later())
        return await launch(prepared, observer=observer, controls=controls)


def test_an_analysis_that_never_ends_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_analysis, "MAX_S", 0.3)
    result = run_all(tmp_path, failing([analyzing("Slow")]))
    assert result.exit_status == 0
    log = (result.requests[0].run_dir / "run.log").read_text()
    assert "is not analyzed: it took longer than 0.3 s" in log


def test_a_damaged_trajectory_is_named_and_not_used(tmp_path: Path) -> None:
    result = run_all(tmp_path, failing(False))
    root = result.requests[0].run_dir
    paths = sorted(root.rglob("trajectory.json"))
    assert len(paths) == 5
    failed = [path for path in paths if "t0" not in str(path)]
    failed[0].write_bytes(failed[0].read_bytes()[:-30])
    failed[1].unlink()
    (data,) = analyzed(root)
    assert data["unreadable_trajectories"]["count"] == 2
    assert "The trajectories of 2 cannot be read: they are judged without." in data["summary"]


def analyzed(root: Path) -> list[Any]:
    from steelyard.analyzers.failures import Failures

    made = Failures(Failures.Params())
    return [dict(one.data) for one in engine_analysis.analyze(root, [made]).analyses]


def test_a_run_that_died_is_analyzed_as_it_stands(tmp_path: Path) -> None:
    result = run_all(tmp_path, failing(False))
    root = result.requests[0].run_dir
    events = root / "events.jsonl"
    lines = events.read_bytes().split(b"\n")
    events.write_bytes(b"\n".join(lines[:-2]) + b"\n")  # without `finished`
    attempts = root / "attempts.jsonl"
    attempts.write_bytes(attempts.read_bytes()[:-20])  # torn
    from steelyard.analyzers.failures import Failures

    found = engine_analysis.analyze(root, [Failures(Failures.Params())])
    assert found.document["is_complete"] is False
    assert found.document["warnings"]
    assert found.text.startswith("> The run has not ended, or died")
    assert (
        found.analyses[0].data["attempts"]["recorded"] == len(list(RunReader(root).records())) == 4
    )
