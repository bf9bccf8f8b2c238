"""The contract's table of exit statuses, by the real command; signals are in `tests/engine`."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.testing.endpoint import MockEndpoint
from tests.bad_input.command import steelyard, write_pack

pytestmark = pytest.mark.integration

GOOD = "  - {name: good, benchmark: {id: ./p}, harness: {id: oracle}, model: {id: none}}\n"
BAD = "  - {name: bad, benchmark: {id: ./bad}, harness: {id: oracle}, model: {id: none}}\n"
CHAT = (
    "  - {name: chat, benchmark: {id: ./p}, harness: {id: chat}, model: {id: m, base_url: URL}}\n"
)
BUDGET = "budget: {tokens: 3}\n"
SLOW = "runtime: {timeout_seconds: 0.3, cleanup_grace_seconds: 1}\n"

TABLE = {
    "completed": (GOOD, 0, ["completed"]),
    "partial failure": (GOOD + BAD, 1, ["completed", "failed"]),
    "failed": (BAD, 1, ["failed"]),
    "budget": (CHAT + BUDGET, 4, ["budget_exceeded"]),
    "budget before failure": (BAD + CHAT + BUDGET, 4, ["failed", "budget_exceeded"]),
    "timeout": (CHAT + SLOW, 5, ["timed_out"]),
    "timeout before failure and completion": (
        GOOD + BAD + CHAT + SLOW, 5, ["completed", "failed", "timed_out"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", TABLE)
def test_the_exit_status_is_that_of_the_strongest_outcome(project: Path, case: str) -> None:
    requests, status, outcomes = TABLE[case]
    write_pack(project / "bad", cases=b"")
    latency = "30" if "timeout" in case else "0"
    with MockEndpoint("--text", "1", "--latency", latency) as mock:
        (project / "o.yaml").write_text("requests:\n" + requests.replace("URL", mock.url))
        ran = steelyard(project, "launch", "o.yaml", "--json", status=status)
    assert ran.json["exit_status"] == status
    assert [request["outcome"] for request in ran.json["requests"]] == outcomes
    for request in ran.json["requests"]:
        assert sum(request["outcomes"].values()) == request["planned"]
        if request["outcome"] != "completed":
            assert f"{request['name']}: {request['outcome']}" in ran.err
            assert request["reason"].partition("\n")[0] in ran.err
