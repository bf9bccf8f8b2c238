"""Gates, reports and calibrations of `run`, `launch` and `summary`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from steelyard.cli.asked import Asked, concluded
from steelyard.components.issues import Outcome
from steelyard.config.calibration import Calibration
from steelyard.engine.events import LaunchResult, RequestResult, RunOutcome
from steelyard.engine.outcomes import launch_result
from steelyard.harnesses.oracle import Oracle
from steelyard.results.calibration import NO_REFERENCE, calibrated
from steelyard.results.gates import Gate
from steelyard.results.summary import rebuild
from tests.cli.doubtful import BARE, DOUBTFUL, write_benchmark
from tests.results.comparing import NO, YES, a_side

Run = Callable[..., Any]

ORCHESTRATION = f"""
requests:
  - {{name: ceiling, benchmark: {{id: "{DOUBTFUL}"}}, harness: {{id: oracle}}, model: {{id: none}}}}
  - {{name: floor, benchmark: {{id: "{DOUBTFUL}"}}, harness: {{id: nop}}, model: {{id: none}},
      execution: {{attempts: {{k: 2}}}}}}
"""


@pytest.fixture(autouse=True)
def benchmark_file(project: Path) -> None:
    write_benchmark(project)
    (project / "o.yaml").write_text(ORCHESTRATION)


# -- gates -------------------------------------------------------------------------------------


def test_a_met_gate_is_exit_0_and_a_missed_one_exit_3(steelyard: Run) -> None:
    met = steelyard("run", DOUBTFUL, "oracle", "none", "--fail-under", "passed=0.75")
    assert met.status == 0
    assert "--fail-under passed=0.75" in met.out
    assert "NOT MET" not in met.out
    missed = steelyard("run", DOUBTFUL, "oracle", "none", "--fail-under", "passed=0.8")
    assert missed.status == 3
    assert "NOT MET" in missed.out
    assert "passed avg@1 is 0.75, 0.05 below 0.8" in missed.out


@pytest.mark.parametrize("form", ["text", "json"])
def test_without_a_table_a_missed_gate_is_said_all_the_same(form: str, steelyard: Run) -> None:
    ran = steelyard(
        "run", DOUBTFUL, "oracle", "none", "--fail-under", "passed=0.8", "--progress", "none",
        "--log-format", form,
    )  # fmt: skip
    assert (ran.status, ran.out) == (3, "")
    assert "NOT MET, passed avg@1 is 0.75, 0.05 below 0.8" in ran.err
    if form == "json":
        assert all(isinstance(json.loads(line), dict) for line in ran.err.splitlines())


def test_a_confident_gate_needs_more(steelyard: Run) -> None:
    ran = steelyard(
        "run", DOUBTFUL, "oracle", "none", "--fail-under", "passed=0.5", "--confident", "--json"
    )
    (gate,) = ran.json["gates"]
    assert (ran.status, ran.json["exit_status"], gate["is_met"]) == (3, 3, False)
    assert gate["found"] == pytest.approx(0.3006, abs=1e-3)


def test_a_launch_has_gates_for_all_and_for_one(steelyard: Run) -> None:
    both = steelyard("launch", "o.yaml", "--fail-under", "passed=0.5", "--json")
    assert [(g["request"], g["is_met"]) for g in both.json["gates"]] == [
        ("ceiling", True), ("floor", False)
    ]  # fmt: skip
    assert both.status == 3
    one = steelyard("launch", "o.yaml", "--fail-under", "ceiling:passed=0.5", "--require-official")
    assert one.status == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--fail-under", "pased=1"], "did you mean 'passed'?"),
        (["--fail-under", "passed"], "write --fail-under METRIC=VALUE"),
        (["--fail-under", "other:passed=1"], "unknown metric"),
        (["--confident"], "there is no --fail-under METRIC=VALUE to go with it"),
        (["--calibrated-score"], "there is no --calibrate to go with it"),
        (["--junit", "nowhere/j.xml"], "its folder is not there"),
    ],
)
@pytest.mark.parametrize("how", [["--dry-run"], []], ids=["dry", "real"])
def test_what_a_dry_run_can_see_is_exit_2_and_creates_nothing(
    options: list[str], said: str, how: list[str], steelyard: Run, project: Path
) -> None:
    ran = steelyard("run", DOUBTFUL, "oracle", "none", *options, *how)
    assert ran.status == 2
    assert said in ran.err
    assert not (project / "results").exists()


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        (RunOutcome.COMPLETED, 3), (RunOutcome.FAILED, 1), (RunOutcome.BUDGET_EXCEEDED, 4),
        (RunOutcome.TIMED_OUT, 5), (RunOutcome.CANCELLED, 143),
    ],
)  # fmt: skip
def test_what_ended_a_launch_goes_before_its_gates(
    outcome: RunOutcome, status: int, tmp_path: Path
) -> None:
    statuses = {RunOutcome.COMPLETED: 0, RunOutcome.CANCELLED: 143}
    own = RequestResult("a", outcome, None, tmp_path, 1, dict.fromkeys(Outcome, 0), None)
    result = LaunchResult(outcome, statuses.get(outcome, status), (own,), 1.0)
    ending = concluded(result, Asked(), [Gate("--fail-under x=1", "a", "x", 1.0)])
    assert ending.result.exit_status == status
    assert [each.is_met for each in ending.gates] == [False]


@pytest.mark.parametrize(
    ("own", "other", "status"),
    [
        ("completed", "completed", 0), ("completed", "failed", 0),
        ("completed", "budget_exceeded", 0), ("completed", "timed_out", 0),
        ("failed", "completed", 1), ("budget_exceeded", "budget_exceeded", 4),
        ("timed_out", "timed_out", 5), ("completed", "cancelled", 130),
    ],
)  # fmt: skip
def test_what_calibrates_does_not_decide_how_a_launch_ended(
    own: str, other: str, status: int, tmp_path: Path
) -> None:
    figures: dict[str, Any] = {"x": [YES]}
    requests = [
        RequestResult(name, RunOutcome(outcome), None, a_side(tmp_path, name, figures), 1,
                      dict.fromkeys(Outcome, 0), None)
        for name, outcome in (("a", own), ("a-oracle", other), ("a-nop", other))
    ]  # fmt: skip
    result = launch_result(tuple(requests), None, elapsed_s=1.0, loop_lag_p99_ms=None)
    asked = Asked(calibrate=True, calibrations=(Calibration("a-oracle", "a-nop", ("a",)),))
    ending = concluded(result, asked, [])
    assert ending.result.exit_status == status
    assert [request.name for request in ending.result.requests] == ["a"]
    assert bool(ending.notes) == (other not in ("completed", "failed"))


# -- reports -----------------------------------------------------------------------------------


def test_reports_are_written_by_run_launch_and_summary(steelyard: Run, project: Path) -> None:
    reports = ["--junit", "j.xml", "--markdown", "m.md"]
    ran = steelyard("launch", "o.yaml", *reports, "--fail-under", "floor:passed=0.5")
    assert ran.status == 3
    suites = ElementTree.parse(project / "j.xml").getroot()
    assert [(s.get("name"), s.get("tests"), s.get("failures")) for s in suites] == [
        ("ceiling", "4", "1"), ("floor", "4", "3"), ("gates", "1", "1")
    ]  # fmt: skip
    text = (project / "m.md").read_text()
    assert "| `ceiling` | **`passed`** avg@1 | 0.750 |" in text
    assert "**not met**" in text
    again = steelyard("summary", "results/ceiling", "--junit", "s.xml", "--markdown", "s.md")
    assert again.status == 0
    assert len(ElementTree.parse(project / "s.xml").getroot()) == 1
    assert (project / "s.md").read_text().startswith("| request | metric |")


def test_a_report_that_cannot_be_written_does_not_hide_the_result(steelyard: Run) -> None:
    ran = steelyard("run", DOUBTFUL, "oracle", "none", "--markdown", "/dev/full", "--json")
    assert (ran.status, ran.json["outcome"]) == (1, "completed")
    assert "No space left" in ran.err
    (request,) = ran.json["requests"]
    again = steelyard("summary", request["run_dir"], "--junit", "/dev/full", "--json")
    assert (again.status, again.json["outcome"]) == (1, "completed")


# -- calibration -------------------------------------------------------------------------------


def test_a_calibration_names_the_doubtful_tasks(steelyard: Run, project: Path) -> None:
    ran = steelyard("run", DOUBTFUL, "nop", "none", "--calibrate", "--run-name", "g")
    assert ran.status == 0, ran.err
    assert "tasks that their own reference fails: 1: wrong (passed 0)" in ran.out
    assert "tasks that doing nothing passes: 1: free (passed 1)" in ran.out
    assert "they count in the scores; --calibrated-score leaves them out" in ran.out
    assert len(list((project / "results/g").iterdir())) == 3
    metrics = _metrics(project, "g/*_nop")
    assert metrics["calibration"]["left_out"] == []
    assert metrics["scores"][0]["estimate"]["tasks"] == 4
    assert metrics["usage"]["cost_usd"] == 0


def test_a_calibrated_score_is_without_them_and_says_so(steelyard: Run, project: Path) -> None:
    ran = steelyard(
        "run", DOUBTFUL, "oracle", "none", "--calibrate", "--calibrated-score", "--json",
        "--fail-under", "passed=1", "--require-official",
    )  # fmt: skip
    assert ran.status == 0, ran.out
    (found,) = ran.json["calibrations"]
    assert found["left_out"] == ["wrong", "free"]
    assert [each["task_id"] for each in found["nop_passed"]] == ["free"]
    (request,) = ran.json["requests"]
    score = request["metrics"]["scores"][0]
    assert (score["estimate"]["value"], score["estimate"]["tasks"]) == (1.0, 2)
    assert score["coverage"]["planned"] == 2
    root = Path(request["run_dir"])
    before = (root / "metrics.json").read_bytes(), (root / "summary.md").read_bytes()
    rebuild(root)
    assert ((root / "metrics.json").read_bytes(), (root / "summary.md").read_bytes()) == before
    assert "left out of the scores: 2 tasks" in before[1].decode()
    assert [each["name"] for each in ran.json["calibrating"]] == [
        f"{request['name']}-oracle", f"{request['name']}-nop"
    ]  # fmt: skip


def test_requests_of_one_benchmark_share_their_calibration(steelyard: Run, project: Path) -> None:
    ran = steelyard("launch", "o.yaml", "--calibrate", "--json")
    assert [each["requests"] for each in ran.json["calibrations"]] == [["ceiling", "floor"]]
    assert len(ran.json["calibrating"]) == 2
    for name in ("ceiling", "floor"):
        assert _metrics(project, name)["calibration"]["tasks"] == 4


def test_a_benchmark_without_references_fails_nothing_by_it(steelyard: Run) -> None:
    ran = steelyard("run", BARE, "nop", "none", "--calibrate", "--json")
    assert ran.status == 0  # the oracle's attempts all ended FATAL
    assert ran.json["outcome"] == "completed"
    (found,) = ran.json["calibrations"]
    assert sorted(found["no_reference"]) == ["also-sound", "free", "sound", "wrong"]
    assert (found["oracle_failed"], len(found["nop_passed"])) == ([], 1)


def test_a_dry_run_shows_what_a_calibration_adds(steelyard: Run) -> None:
    ran = steelyard("launch", "o.yaml", "--calibrate", "--dry-run", "--json")
    names = [request["name"] for request in ran.json["orchestration"]["requests"]]
    assert names == ["ceiling", "floor", "ceiling-oracle", "ceiling-nop"]


def test_calibrations_meet_no_gate(steelyard: Run) -> None:
    ran = steelyard(
        "run", DOUBTFUL, "oracle", "none", "--calibrate", "--fail-under", "passed=0.5", "--json"
    )
    assert (ran.status, len(ran.json["gates"])) == (0, 1)


def test_the_words_for_a_task_without_a_reference_are_the_oracles() -> None:
    import inspect

    assert NO_REFERENCE in inspect.getsource(Oracle)


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"{}", b'{"schema": "calibration/1", "left_out": [1]}', b"\xff", b'{"schema": 1}'],
)
def test_a_damaged_calibration_is_not_used_and_said(content: bytes, tmp_path: Path) -> None:
    root = a_side(tmp_path, "a", {"x": [YES], "y": [NO]})
    (root / "calibration.json").write_bytes(content)
    metrics = rebuild(root)
    assert "calibration" not in metrics
    assert any("calibration.json" in warning for warning in metrics["warnings"])
    assert metrics["scores"][0]["estimate"]["tasks"] == 2


def test_what_says_nothing_of_a_task_is_named_apart(tmp_path: Path) -> None:
    oracle = a_side(tmp_path, "o", {"x": ["fatal"], "y": [YES], "z": ["error"]})
    nop = a_side(tmp_path, "n", {"x": [NO], "y": ["cancelled"], "z": [NO]})
    found = calibrated(oracle, nop)
    assert [each.task_id for each in found.oracle_failed] == ["z"]
    assert [each.task_id for each in found.not_calibrated] == ["x"]
    assert found.doubtful == ("z",)


def _metrics(project: Path, name: str) -> dict[str, Any]:
    (path,) = (project / "results").glob(f"{name}/*/metrics.json")
    found: dict[str, Any] = json.loads(path.read_text())
    return found
