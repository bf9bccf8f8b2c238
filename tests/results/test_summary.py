"""What is derived: the same bytes each time, nothing of a stranger's text becomes markup."""

from __future__ import annotations

import re
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner

from steelyard.cli.summary import summary
from steelyard.components.issues import IssueCode, Outcome
from steelyard.components.values import Usage
from steelyard.config.errors import SteelyardError
from steelyard.results.layout import RunFiles
from steelyard.results.records import Timing
from steelyard.results.summary import rebuild, summarise, write_summary
from steelyard.results.summary_text import chief_rows, score_rows, summary_text
from tests.results.workload import DOCUMENT, FixedClock, a_record, an_issue
from tests.results.written import write_run

GOLDEN = Path(__file__).parent / "golden"


def a_mixed_run(tmp_path: Path) -> Path:
    origin = {"run_id": "20260801_000000", "path": "elsewhere", "cost_usd": 0.001}
    records = [
        a_record("a", 1, category="math"),
        a_record("a", 2, category="math"),
        a_record("b", 1, category="<b>|code", reused_from=origin),
        a_record("b", 2, category="<b>|code", outcome=Outcome.FAILED_ERROR, metrics={},
                 issues=(an_issue(IssueCode.TURN_LIMIT),)),
        a_record("c", 1, outcome=Outcome.FAILED_FATAL, metrics={},
                 issues=(an_issue(IssueCode.SCORER_CRASHED),), usage=Usage(1, 1, cost_usd=None)),
    ]  # fmt: skip
    folder = write_run(
        tmp_path, records, run_id="golden", tasks=4, started=[("a", 1), ("c", 2)], outcome=None
    )
    return folder.root


@pytest.mark.parametrize("name", ["metrics.json", "summary.md"])
def test_a_run_gives_the_golden_file(name: str, tmp_path: Path) -> None:
    root = a_mixed_run(tmp_path)
    write_summary(root)
    assert (root / name).read_text() == (GOLDEN / name).read_text()


def test_a_cost_of_which_nothing_is_known_is_unknown(tmp_path: Path) -> None:
    unknown = [a_record("a", n, usage=Usage(1, 1, requests=1, cost_usd=None)) for n in (1, 2)]
    text = summary_text(summarise(write_run(tmp_path, unknown).root))
    assert "; cost unknown.\n" in text


def test_sums_of_money_have_no_noise(tmp_path: Path) -> None:
    records = [a_record("a", n, usage=Usage(cost_usd=0.1)) for n in (1, 2, 3)]
    usage = summarise(write_run(tmp_path, records, k=3).root)["usage"]
    assert (usage["cost_usd"], usage["known_cost_usd"]) == (0.3, 0.3)


def test_rebuilding_gives_the_same_bytes_wherever_the_run_lies(tmp_path: Path) -> None:
    root = a_mixed_run(tmp_path)
    write_summary(root)
    files = RunFiles(root)
    first = files.metrics.read_bytes(), files.summary.read_bytes()
    files.metrics.unlink()
    files.summary.unlink()
    moved = root.rename(tmp_path / "moved")
    rebuild(moved)
    files = RunFiles(moved)
    assert (files.metrics.read_bytes(), files.summary.read_bytes()) == first


def test_the_owner_and_a_later_reader_write_the_same(tmp_path: Path) -> None:
    folder = write_run(tmp_path, [a_record("a")], keep_alive=True)
    write_summary(folder.root)
    mine = folder.files.metrics.read_bytes()
    folder.lock.release()
    rebuild(folder.root)
    assert folder.files.metrics.read_bytes() == mine


def test_outcomes_add_up_and_what_is_in_flight_is_named(tmp_path: Path) -> None:
    metrics = summarise(a_mixed_run(tmp_path))
    assert sum(metrics["attempts"]["outcomes"].values()) == metrics["attempts"]["planned"] == 8
    assert [flight["token"] for flight in metrics["in_flight"]] == ["token-c-2"]
    assert [flight["usage"] for flight in metrics["in_flight"]] == [None]
    assert metrics["attempts"]["outcomes"]["cancelled"] == 1
    assert metrics["outcome"] is None


def test_cost_is_unknown_where_one_attempt_has_no_price(tmp_path: Path) -> None:
    metrics = summarise(a_mixed_run(tmp_path))
    assert metrics["usage"]["cost_usd"] is None
    assert metrics["usage"]["attempts_without_price"] == 1
    assert metrics["usage"]["known_cost_usd"] == pytest.approx(0.004)
    assert metrics["reused"]["usage"]["cost_usd"] == pytest.approx(0.001)


def test_a_strangers_text_is_no_markup(tmp_path: Path) -> None:
    root = a_mixed_run(tmp_path)
    write_summary(root)
    text = (root / "summary.md").read_text()
    assert "<b>" not in re.sub(r"\\.", "", text)


def test_no_value_stands_without_its_interval_or_a_reason(tmp_path: Path) -> None:
    rows = score_rows(summarise(a_mixed_run(tmp_path)))
    assert rows
    for row in rows:
        assert re.fullmatch(r"\[\d.*\]|too few tasks|all the same|nothing scored", row.interval)


def test_a_table_shows_the_interval_that_programs_read(tmp_path: Path) -> None:
    records = [a_record(task, attempt) for task in ("a", "b") for attempt in (1, 2)]
    records[1] = a_record("a", 2, metrics={"accuracy": True})
    metrics = summarise(write_run(tmp_path, records).root)
    assert metrics["scores"][0]["estimate"]["interval"] == [0.0, 1.0]
    assert score_rows(metrics)[0].interval == "[0.000, 1.000]"


def test_one_cluster_is_too_few(tmp_path: Path) -> None:
    names = ["a", "b", "c", "d", "e", "f"]
    for clusters, said in (
        (["x"] * 6, "too few clusters"),
        (["x", "x", "x", "y", "y", "y"], "[0.000, 1.000]"),
    ):
        records = [
            a_record(task, 1, metrics={"accuracy": task < "d"}, cluster=cluster)
            for task, cluster in zip(names, clusters, strict=True)
        ]
        metrics = summarise(write_run(tmp_path / str(len({*clusters})), records, k=1).root)
        assert score_rows(metrics)[0].interval == said


def test_what_was_scored_again_is_told_from_what_was_taken_whole(tmp_path: Path) -> None:
    origin = {"run_id": "20260801_000000", "path": "elsewhere", "cost_usd": 0.0}
    records = [
        a_record("a", 1, reused_from=origin, timing=Timing(started_at="2026-08-01T00:00:00.000Z")),
        a_record("a", 2, reused_from=origin, timing=Timing(started_at="2026-08-07T00:00:00.000Z")),
        a_record("b", 1, reused_from=origin, timing=Timing()),
    ]
    metrics = write_summary(write_run(tmp_path, records).root)
    assert (metrics["reused"]["attempts"], metrics["reused"]["rescored"]) == (3, 1)
    text = next(tmp_path.rglob("summary.md")).read_text()
    assert "reused attempts: 3 (3 of 20260801\\_000000), 1 of them scored again" in text


def test_what_scoring_again_cost_was_not_paid_before(tmp_path: Path) -> None:
    origin = {"run_id": "20260801_000000", "path": "elsewhere", "cost_usd": 0.25}
    records = [
        a_record("a", 1, reused_from=origin, usage=Usage(requests=3, cost_usd=0.75)),
        a_record("a", 2, reused_from={**origin, "cost_usd": None}, usage=Usage(cost_usd=None)),
    ]
    whole = summarise(write_run(tmp_path / "both", records).root)
    assert whole["reused"]["usage"]["cost_usd"] is None
    priced = summarise(write_run(tmp_path / "one", records[:1]).root)
    assert priced["usage"]["cost_usd"] == 0.75
    assert priced["reused"]["usage"]["cost_usd"] == 0.25


def test_a_mean_that_skipped_attempts_forbid_says_so(tmp_path: Path) -> None:
    info = DOCUMENT["benchmark_info"]
    extra = {**info["metrics"][0], "name": "score", "kind": "scalar"}
    document = {
        **DOCUMENT,
        "benchmark_info": {**info, "metrics": [*info["metrics"], extra]},
        "plan": {"k": 2, "strategy": "pass"},
    }
    records = [
        a_record("a", 1, metrics={"accuracy": True, "score": 1.0}),
        a_record("a", 2, outcome=Outcome.SKIPPED_PASSED, metrics={}),
        a_record("b", 1, metrics={"accuracy": False, "score": 0.25}),
        a_record("b", 2, metrics={"accuracy": False, "score": 0.25}),
    ]
    metrics = write_summary(write_run(tmp_path, records, document=document).root)
    assert metrics["is_official"]
    assert [(row.value, row.interval, row.coverage) for row in score_rows(metrics)] == [
        ("0.500", "[0.000, 1.000]", "4/4 (100%)"),
        ("–", "attempts skipped", "3/4 (75%)"),
    ]
    text = next(tmp_path.rglob("summary.md")).read_text()
    assert "No value where attempts were skipped after a success" in text


def test_the_chief_rows_are_those_of_the_primary_metric_and_one_of_each_other() -> None:
    names = ["main", "main", "main", "other", "other"]
    estimators = ["avg@2", "pass@2", "pass^2", "avg@2", "pass@2"]
    assert _chief(names, estimators, k=2) == [
        ("main", "avg@2"), ("main", "pass@2"), ("main", "pass^2"), ("other", "avg@2")
    ]  # fmt: skip


def test_with_one_attempt_all_estimators_are_one_figure() -> None:
    assert _chief(["main", "main"], ["avg@1", "pass@1"], k=1) == [("main", "avg@1")]
    assert _chief(["main", "main"], ["pass@1", "avg@1"], k=1) == [("main", "pass@1")]


def _chief(names: list[str], estimators: list[str], k: int) -> list[tuple[str, str]]:
    estimate = {"value": 0.5, "interval": None, "note": None, "tasks": 3, "clusters": 3}
    scores = [
        {
            "metric": name, "estimator": estimator, "is_primary": name == "main",
            "is_headline": number == 0, "official": 0.5, "bounds": None, "estimate": estimate,
            "coverage": {"counted": 3, "planned": 3},
        }
        for number, (name, estimator) in enumerate(zip(names, estimators, strict=True))
    ]  # fmt: skip
    return [(row.metric, row.estimator) for row in chief_rows({"plan": {"k": k}, "scores": scores})]


def test_a_torn_journal_is_summed_up_with_a_warning(tmp_path: Path) -> None:
    folder = write_run(tmp_path, [a_record("a"), a_record("b")])
    data = folder.files.attempts.read_bytes()
    folder.files.attempts.write_bytes(data[:-3])
    metrics = rebuild(folder.root)
    assert metrics["attempts"]["outcomes"]["scored"] == 1
    assert "torn" in metrics["warnings"][0]
    assert "torn" in folder.files.summary.read_text()


def test_a_document_that_says_nothing_is_still_summed_up(tmp_path: Path) -> None:
    folder = write_run(tmp_path, [a_record("a")], document={"plan": 3, "benchmark_info": []})
    metrics = rebuild(folder.root)
    assert metrics["scores"] == []
    assert metrics["attempts"]["outcomes"]["scored"] == 1


@pytest.mark.parametrize("plan", [{}, {"k": "two"}, {"k": 0}, {"k": 1}])
def test_a_document_that_lost_its_plan_is_still_summed_up(
    plan: dict[str, object], tmp_path: Path
) -> None:
    document = {**DOCUMENT, "plan": plan}
    folder = write_run(tmp_path, [a_record("a", 1), a_record("a", 2)], document=document)
    assert summarise(folder.root)["scores"][0]["estimator"] == "avg@2"


# -- the command -------------------------------------------------------------------------------


def test_the_command_rebuilds_and_shows(tmp_path: Path) -> None:
    root = a_mixed_run(tmp_path)
    shown = CliRunner().invoke(summary, [str(root)])
    assert shown.exit_code == 0
    assert shown.output == (root / "summary.md").read_text()
    as_json = CliRunner().invoke(summary, [str(root), "--json"])
    assert orjson.loads(as_json.output) == orjson.loads((root / "metrics.json").read_bytes())


def test_the_command_takes_the_newest_run_of_a_folder(tmp_path: Path) -> None:
    clock = FixedClock()
    for run_id in ("z", "a"):
        newest = write_run(tmp_path, [a_record("a")], run_id=run_id, clock=clock).root
    shown = CliRunner().invoke(summary, [str(newest.parent), "--json"])
    assert orjson.loads(shown.stdout)["run_id"] == "a"
    assert "the newest of 2 runs" in shown.stderr


def test_the_command_leaves_the_files_of_a_living_run_to_its_owner(tmp_path: Path) -> None:
    folder = write_run(tmp_path, [a_record("a")], outcome=None, keep_alive=True)
    shown = CliRunner().invoke(summary, [str(folder.root)])
    assert shown.exit_code == 0
    assert not folder.files.metrics.exists()
    folder.lock.release()


@pytest.mark.parametrize("content", [None, b"", b"{}", b'{"schema": "run/9"}'])
def test_what_is_no_run_is_said_in_one_block(content: bytes | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "run.json").write_bytes(content)
    result = CliRunner().invoke(summary, [str(tmp_path)])
    assert isinstance(result.exception, SteelyardError)
    assert result.exception.exit_status == 2
    assert result.exception.problems[0].remedy
