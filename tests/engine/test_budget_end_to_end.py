"""Budgets by the real command: spent to the end, then more is granted and the rest is made up.

Every call of the agent costs a dollar, and each verdict of the judge whatever its words cost.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from steelyard.results.reader import RunReader
from steelyard.results.records import AttemptRecord
from steelyard.testing.endpoint import MockEndpoint
from tests.bad_input.command import Ran, make_project, steelyard

pytestmark = pytest.mark.integration

HERE = Path(__file__).parent
JUDGE = f"{HERE / 'judge_functions.py'}:judge"
FLAKY = """\
from pathlib import Path

from steelyard import Harness, HarnessResult
from steelyard.components.harness import HarnessTraits
from steelyard.components.issues import AttemptFault, IssueCode
from steelyard.components.model import ModelRequest
from steelyard.components.values import Message


class Flaky(Harness):
    \"\"\"Pays for a call, then crashes the first time at each of the tasks of its list.\"\"\"

    api = 1
    id = "flaky"
    traits = HarnessTraits(calls_model=True)

    async def run(self, context):
        await context.model.generate(ModelRequest((Message("user", context.task_id),)))
        ran = Path("ran-" + context.task_id)
        if context.task_id in Path("fails").read_text().split() and not ran.exists():
            ran.touch()
            raise AttemptFault(IssueCode.HARNESS_CRASHED, "as scripted")
        return HarnessResult("right")
"""
TASKS = 6
PACK = """\
schema: pack/v1
slug: paid
version: 1
prompt: "{{ q }}"
cases: cases.jsonl
reference: right
scoring:
  validators: [VALIDATOR]
"""
EXACT = "{type: exact, expected: right}"
ASSERTION = "{type: judge, assertion: It holds the word., show: []}"
A_DOLLAR = 500_000
"""A million tokens' price at which the agent's answer, of two tokens, costs a dollar."""
FREE = {"input_per_mtok": 0, "output_per_mtok": 0}
PRICES = {"agent": {**FREE, "output_per_mtok": A_DOLLAR}, "j": {**FREE, "output_per_mtok": 50_000}}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project")


@pytest.fixture
def endpoint() -> Iterator[MockEndpoint]:
    with MockEndpoint("--function", JUDGE) as made:
        yield made


def pack(project: Path, name: str = "paid", validator: str = EXACT) -> str:
    folder = project / name
    folder.mkdir()
    (folder / "pack.yaml").write_text(PACK.replace("VALIDATOR", validator))
    lines = [json.dumps({"id": f"c{n}", "q": f"what is {n}?"}) + "\n" for n in range(TASKS)]
    (folder / "cases.jsonl").write_text("".join(lines))
    return f"./{name}"


def one(benchmark: dict[str, Any], endpoint: MockEndpoint, **rest: Any) -> dict[str, Any]:
    return {
        "name": "r",
        "benchmark": benchmark,
        "harness": {"id": "chat"},
        "model": {"id": "agent", "base_url": endpoint.url},
        "environment": {"id": "host_process"},
    } | rest


def flaky(project: Path, endpoint: MockEndpoint, fails: str, retries: int) -> dict[str, Any]:
    (project / "flaky.py").write_text(FLAKY)
    (project / "fails").write_text(fails)
    return one(
        {"id": pack(project)},
        endpoint,
        harness={"id": "./flaky.py:Flaky"},
        execution={"max_retries": retries, "limit": 3},
    )


def launched(
    project: Path, *requests: dict[str, Any], status: int, reuse: bool = False, **top: Any
) -> Ran:
    document = {
        "requests": list(requests),
        "task_concurrency": 1,
        "prices": PRICES,
        "runtime": {"results_dir": str(project / "results")},
        **top,
    }
    (project / "o.json").write_text(json.dumps(document))
    options = ("--reuse",) if reuse else ()
    return steelyard(project, "launch", "o.json", "--json", *options, status=status)


def records(ran: Ran, index: int = 0) -> list[AttemptRecord]:
    return list(RunReader(Path(ran.json["requests"][index]["run_dir"])).records())


def ended(ran: Ran, index: int = 0) -> dict[str, int]:
    counts = Counter(record.outcome.value for record in records(ran, index))
    assert {k: v for k, v in ran.json["requests"][index]["outcomes"].items() if v} == counts
    return dict(counts)


def paid(ran: Ran, index: int = 0) -> float:
    """What the records say was spent in this run."""
    new = [record for record in records(ran, index) if record.reused_from is None]
    return sum(record.usage.cost_usd or 0 for record in new)


def agent_calls(endpoint: MockEndpoint) -> int:
    found = endpoint.stats()["by_model"].get("agent", 0)
    return int(found)


def test_a_dollar_budget_that_is_spent_is_continued_with_a_larger_one(
    project: Path, endpoint: MockEndpoint
) -> None:
    request = one({"id": pack(project)}, endpoint)
    first = launched(project, request, status=4, budget={"usd": 4, "reserve_usd": 1})
    assert first.only["outcome"] == "budget_exceeded"
    assert "2 of 6 attempts unstarted" in first.only["reason"]
    assert ended(first) == {"scored": 4, "skipped_budget": 2}
    assert (paid(first), first.json["budget"]["spent_usd"], agent_calls(endpoint)) == (4, 4, 4)
    # Partial results are kept, and say what they cover.
    metrics = json.loads((Path(first.only["run_dir"]) / "metrics.json").read_bytes())
    assert metrics["usage"]["cost_usd"] == 4

    second = launched(project, request, status=0, reuse=True, budget={"usd": 2, "reserve_usd": 1})
    assert ended(second) == {"scored": TASKS}
    assert (paid(second), second.json["budget"]["spent_usd"]) == (2, 2)
    assert agent_calls(endpoint) == TASKS
    assert sum(record.reused_from is not None for record in records(second)) == 4


def test_a_token_budget_that_is_spent_is_continued_with_a_larger_one(
    project: Path, endpoint: MockEndpoint
) -> None:
    request = one({"id": pack(project)}, endpoint)
    whole = launched(project, {**request, "name": "whole"}, status=0)
    (each,) = {one.usage.input_tokens + one.usage.output_tokens for one in records(whole)}
    endpoint.reset()
    first = launched(project, request, status=4, budget={"tokens": 3 * each + 1})
    assert ended(first) == {"scored": 3, "skipped_budget": 3}
    assert first.json["budget"]["spent_tokens"] == 3 * each
    second = launched(project, request, status=0, reuse=True, budget={"tokens": 3 * each})
    assert ended(second) == {"scored": TASKS}
    assert second.json["budget"]["spent_tokens"] == 3 * each
    assert agent_calls(endpoint) == TASKS


def test_a_requests_budget_ends_that_request_alone(project: Path, endpoint: MockEndpoint) -> None:
    limited = one({"id": pack(project)}, endpoint, budget={"usd": 2, "reserve_usd": 1})
    other = one({"id": pack(project, "other")}, endpoint, name="other")
    first = launched(project, limited, other, status=4)
    assert [each["outcome"] for each in first.json["requests"]] == ["budget_exceeded", "completed"]
    assert ended(first) == {"scored": 2, "skipped_budget": 4}
    assert ended(first, 1) == {"scored": TASKS}
    assert first.json["requests"][0]["budget"]["spent_usd"] == 2
    limited["budget"] = {"usd": 4, "reserve_usd": 1}
    second = launched(project, limited, other, status=0, reuse=True)
    assert ended(second) == {"scored": TASKS}
    assert (paid(second), paid(second, 1), agent_calls(endpoint)) == (4, 0, 2 * TASKS)


def test_what_a_judge_costs_is_spent_too_and_not_twice(
    project: Path, endpoint: MockEndpoint
) -> None:
    judge = {"model": {"id": "j", "base_url": endpoint.url}}
    request = one({"id": pack(project, validator=ASSERTION), "judge": judge}, endpoint)
    whole = launched(project, {**request, "name": "whole"}, status=0)
    each = max(record.usage.cost_usd or 0 for record in records(whole))
    assert each > 1, "the judge has its price"
    endpoint.reset()
    # Enough for four agents and for three agents with their judges.
    limit = 3 * each + 0.01
    first = launched(project, request, status=4, budget={"usd": limit, "reserve_usd": each})
    assert ended(first) == {"scored": 3, "skipped_budget": 3}
    assert paid(first) <= limit
    second = launched(project, request, status=0, reuse=True, budget={"usd": limit})
    assert ended(second) == {"scored": TASKS}
    assert endpoint.stats()["by_model"] == {"agent": TASKS, "j": TASKS}


def test_a_judge_is_held_by_the_budget_where_no_agent_calls_a_model(
    project: Path, endpoint: MockEndpoint
) -> None:
    judge = {"model": {"id": "j", "base_url": endpoint.url}}
    request = one(
        {"id": pack(project, validator=ASSERTION), "judge": judge},
        endpoint,
        harness={"id": "oracle"},
        model={"id": "none"},
    )
    whole = launched(project, {**request, "name": "whole"}, status=0)
    each = max(record.usage.cost_usd or 0 for record in records(whole))
    first = launched(project, request, status=4, budget={"usd": 2 * each, "reserve_usd": each})
    assert ended(first) == {"scored": 2, "skipped_budget": 4}


def test_a_retry_that_was_not_paid_is_made_up_for_and_nothing_else(
    project: Path, endpoint: MockEndpoint
) -> None:
    request = flaky(project, endpoint, "c0", retries=2)
    first = launched(project, request, status=4, budget={"usd": 3, "reserve_usd": 1})
    assert ended(first) == {"scored": 2, "failed_fatal": 1}
    assert "1 retries unmade" in first.only["reason"]
    assert paid(first) == 3
    second = launched(project, request, status=0, reuse=True, budget={"usd": 1, "reserve_usd": 1})
    assert ended(second) == {"scored": 3}
    assert (paid(second), agent_calls(endpoint)) == (1, 4)


def test_retries_that_are_paid_count_in_the_budget(project: Path, endpoint: MockEndpoint) -> None:
    request = flaky(project, endpoint, "c0 c1", retries=1)
    ran = launched(project, request, status=0, budget={"usd": 5, "reserve_usd": 1})
    assert ended(ran) == {"scored": 3}
    assert (paid(ran), ran.json["budget"]["spent_usd"], agent_calls(endpoint)) == (5, 5, 5)


def test_an_attempts_bound_holds_its_judge(project: Path, endpoint: MockEndpoint) -> None:
    judge = {"model": {"id": "j", "base_url": endpoint.url}, "samples": 5}
    request = one(
        {"id": pack(project, validator=ASSERTION), "judge": judge},
        endpoint,
        execution={"limit": 1},
    )
    whole = launched(project, {**request, "name": "whole"}, status=0)
    (record,) = records(whole)
    each = ((record.usage.cost_usd or 0) - 1) / 5
    endpoint.reset()
    ran = launched(project, request, status=0, budget={"attempt_usd": 1 + 1.5 * each})
    (record,) = records(ran)
    assert record.outcome.value == "failed_error"
    assert [(issue.code.value, issue.phase.value) for issue in record.issues] == [
        ("attempt_budget", "evaluate")
    ]
    assert "nothing is left for the judge j: attempt_usd" in record.issues[0].message
    # What was asked for side by side went one by one near the end: one call passes the bound.
    assert endpoint.stats()["by_model"] == {"agent": 1, "j": 2}
    assert record.usage.cost_usd == pytest.approx(1 + 2 * each)

    again = launched(project, request, status=0, reuse=True, budget={"attempt_usd": 20})
    (record,) = records(again)
    assert record.outcome.value == "scored"
    assert endpoint.stats()["by_model"] == {"agent": 1, "j": 7}, "the agent is not paid again"
