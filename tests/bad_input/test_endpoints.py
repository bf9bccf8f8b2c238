"""Endpoints that refuse, hang, or answer nonsense: the outcome, its code, and no storm."""

from __future__ import annotations

import json
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from steelyard.components.issues import SEVERITY, IssueCode, Outcome
from steelyard.results.reader import RunReader
from steelyard.results.records import AttemptRecord
from steelyard.testing.endpoint import MockEndpoint
from tests.bad_input.command import Ran, steelyard

pytestmark = pytest.mark.integration

TASKS = 5


def launch(
    project: Path, url: str, *, at_once: int = 32, tasks: int = TASKS, **model: Any
) -> tuple[Ran, list[AttemptRecord]]:
    whole = {"id": "m", "base_url": url, "api_key": "EMPTY", "max_request_retries": 1, **model}
    one = {"name": "a", "benchmark": {"id": "./p"}, "harness": {"id": "chat"}, "model": whole}
    (project / "o.json").write_text(json.dumps({"requests": [one], "task_concurrency": at_once}))
    ran = steelyard(project, "launch", "o.json", "--json")
    only = ran.only
    assert sum(only["outcomes"].values()) == only["planned"] == tasks
    reader = RunReader(project / only["run_dir"])
    assert reader.ledger.as_json() == only["outcomes"]
    return ran, list(reader.records())


@pytest.mark.parametrize("protocol", ["openai-chat", "openai-responses", "anthropic"])
def test_a_wrong_key_stops_the_request_at_the_first_call(project: Path, protocol: str) -> None:
    with MockEndpoint("--text", "1", "--require-key", "sk-right-one-12345") as mock:
        ran, records = launch(project, mock.url, api_protocol=protocol, at_once=1)
        assert mock.stats()["calls"] == 1
    assert (ran.status, ran.only["outcome"]) == (1, "failed")
    assert "answered 401" in ran.only["reason"]
    assert "a: failed" in ran.err
    assert "answered 401" in ran.err
    assert ran.only["outcomes"][Outcome.NOT_STARTED] + len(records) == TASKS
    assert records[0].issues[0].code is IssueCode.MODEL_ENDPOINT_REJECTED


@pytest.mark.parametrize("status", [402, 403, 404, 302])
def test_other_rejections_stop_it_at_the_first_call_too(project: Path, status: int) -> None:
    with MockEndpoint("--text", "1", "--fault", str(status)) as mock:
        ran, _ = launch(project, mock.url, at_once=1)
        assert mock.stats()["calls"] == 1
    assert (ran.status, ran.only["outcome"]) == (1, "failed")
    assert f"answered {status}" in ran.only["reason"]


def test_a_slow_rejection_meets_each_slot_at_most_once(project: Path) -> None:
    """Those that were under way when it came are not tried again, and no other starts."""
    cases = "".join(f'{{"id": "n{n}", "q": "{n}", "a": "1"}}\n' for n in range(100))
    (project / "p" / "cases.jsonl").write_text(cases)
    with MockEndpoint("--text", "1", "--latency", "1", "--fault", "401") as mock:
        ran, _ = launch(project, mock.url, at_once=8, tasks=100)
        assert mock.stats()["calls"] <= 8
    assert (ran.status, ran.only["outcome"]) == (1, "failed")
    assert ran.only["outcomes"][Outcome.NOT_STARTED] >= 92


@dataclass(frozen=True)
class Expected:
    code: IssueCode
    calls: int
    outcome: Outcome = Outcome.FAILED_FATAL
    says: str = ""


FAULTS: dict[str, tuple[Sequence[str], Expected]] = {
    "garbage": (
        ["malformed_json"],
        Expected(IssueCode.MODEL_RESPONSE_INVALID, TASKS, says="not JSON"),
    ),
    "nothing": (
        ["empty_body"], Expected(IssueCode.MODEL_RESPONSE_INVALID, TASKS, says="not JSON"),
    ),
    "another shape": (
        ["wrong_shape"], Expected(IssueCode.MODEL_RESPONSE_INVALID, TASKS, says="cannot be read"),
    ),
    "silence": (
        ["hang"], Expected(IssueCode.MODEL_TIMED_OUT, TASKS, says="within 0.4 seconds"),
    ),
    "half an answer, then silence": (
        ["hang:at=body"], Expected(IssueCode.MODEL_TIMED_OUT, TASKS, says="within 0.4 seconds"),
    ),
    "a connection that is cut": (
        ["reset"], Expected(IssueCode.MODEL_UNAVAILABLE, 2 * TASKS, says="tried 2 times"),
    ),
    "refused requests": (
        ["400"],
        Expected(IssueCode.MODEL_REQUEST_REFUSED, TASKS, Outcome.FAILED_ERROR, "answered 400"),
    ),
    "50 MB": (
        ["huge_body:mb=50"],
        Expected(IssueCode.MODEL_OUTPUT_TOO_LARGE, TASKS, Outcome.FAILED_ERROR, "16777216 bytes"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", FAULTS)
def test_what_an_endpoint_does_becomes_an_outcome(project: Path, case: str) -> None:
    faults, expected = FAULTS[case]
    options = [word for fault in faults for word in ("--fault", fault)]
    limit_s = 0.4 if expected.code is IssueCode.MODEL_TIMED_OUT else 60
    with MockEndpoint("--text", "1", *options) as mock:
        ran, records = launch(project, mock.url, request_timeout_seconds=limit_s)
        assert mock.stats()["calls"] == expected.calls
    assert len(records) == TASKS
    for record in records:
        (issue,) = record.issues
        assert (record.outcome, issue.code) == (expected.outcome, expected.code)
        assert (issue.severity, issue.phase) == (SEVERITY[expected.code], "run")
        assert expected.says in issue.message
    is_fatal = expected.outcome is Outcome.FAILED_FATAL
    assert (ran.status, ran.only["outcome"]) == ((1, "failed") if is_fatal else (0, "completed"))
    if is_fatal:
        assert expected.code.value in ran.only["reason"]


def test_a_port_that_nobody_listens_on_is_unavailable(project: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: connections are refused
        ran, records = launch(project, f"http://127.0.0.1:{taken.getsockname()[1]}/v1")
    assert (ran.status, ran.only["outcome"]) == (1, "failed")
    assert {issue.code for r in records for issue in r.issues} == {IssueCode.MODEL_UNAVAILABLE}
    assert "model_unavailable" in ran.only["reason"]


def test_an_endpoint_that_answered_once_is_not_rejected_for_all(project: Path) -> None:
    """After a success a 401 is a FATAL issue like others."""
    with MockEndpoint("--text", "1", "--fault", "401:after=2") as mock:
        ran, records = launch(project, mock.url, max_connections=1)
        assert mock.stats()["calls"] == TASKS
    assert (ran.status, ran.only["outcome"]) == (1, "failed")
    assert ran.only["outcomes"][Outcome.FAILED_FATAL] == len(records) - 2 == 3


def test_fifty_megabytes_that_are_allowed_lie_beside_the_records(project: Path) -> None:
    """Where the limit is lifted, an answer of any size is scored and read again."""
    with MockEndpoint("--text", "1", "--fault", "huge_body:mb=50,first=1") as mock:
        ran, records = launch(
            project, mock.url, max_response_bytes=100 * 1024 * 1024, max_connections=1
        )
    assert ran.status == 0, ran.err
    assert {record.outcome for record in records} == {Outcome.SCORED}
    run_dir = project / ran.only["run_dir"]
    (large,) = [record for record in records if record.answer_file is not None]
    assert large.answer_file is not None
    assert (run_dir / large.answer_file).stat().st_size > 49_000_000
    assert (run_dir / "attempts.jsonl").stat().st_size < 100_000
    steelyard(project, "summary", str(run_dir), status=0)
    again = steelyard(project, "launch", "o.json", "--reuse", "--json", status=0)
    assert again.only["outcomes"][Outcome.SCORED] == TASKS
