"""Every example runs: what people copy works."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from steelyard.components.environment import OpenRequest
from steelyard.components.registry import Kind, find
from steelyard.config.source import plain, read_file
from steelyard.results.reader import RunReader
from steelyard.testing.endpoint import MockEndpoint

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"


def steelyard(*arguments: str, cwd: Path = ROOT, **variables: str) -> tuple[int, Any]:
    """Run the product with `--json`; give its exit status and what it printed."""
    ended = subprocess.run(
        [sys.executable, "-m", "steelyard", *arguments, "--json"],
        cwd=cwd,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.stdout, ended.stderr
    return ended.returncode, json.loads(ended.stdout)


PACKS = sorted(path.parent for path in EXAMPLES.glob("packs/*/pack.yaml"))


@pytest.mark.integration
@pytest.mark.parametrize("pack", PACKS, ids=lambda path: path.name)
def test_every_example_pack_passes_its_check(pack: Path) -> None:
    status, report = steelyard("pack", "check", str(pack))
    assert (status, report["passed"]) == (0, True), report
    assert all(case["oracle"] == 1 and case["nop"] == 0 for case in report["cases"])
    assert len(report["cases"]) == report["case_count"] > 0


def test_the_triage_pack_has_cases_of_every_answer() -> None:
    cases = plain(read_file(EXAMPLES / "packs/refund-triage/cases.yaml"))
    assert len(cases) >= 12
    assert len({case["message"] for case in cases}) == len(cases)
    assert {case["answer"] for case in cases} == set(cases[0]["options"])


def test_the_code_pack_ships_no_solution_to_the_agent() -> None:
    for name in ("moving-average", "slugs", "intervals"):
        (broken,) = (EXAMPLES / f"packs/code-fix/cases/{name}").iterdir()
        (mended,) = (EXAMPLES / f"packs/code-fix/solutions/{name}").iterdir()
        assert broken.name == mended.name
        assert broken.read_text() != mended.read_text()


def test_the_orchestration_is_two_requests_over_one_pool() -> None:
    status, plan = steelyard(
        "launch",
        "examples/orchestrations/humaneval.yaml",
        "--dry-run",
        STEADY_MODEL_URL="http://127.0.0.1:1/v1",
        FLAKY_MODEL_URL="http://127.0.0.1:2/v1",
    )
    assert status == 0
    text = json.dumps(plan)
    for word in ("humaneval", "sandbox", "steady", "flaky", "127.0.0.1:1", "127.0.0.1:2"):
        assert word in text
    document = plain(read_file(EXAMPLES / "orchestrations/humaneval.yaml"))
    attempts = [request["execution"]["attempts"] for request in document["requests"]]
    assert attempts == [{"k": 3, "strategy": "avg"}, {"k": 5, "strategy": "pass"}]


@pytest.mark.integration
def test_the_example_benchmark_is_solved_by_oracle_and_not_by_nop(tmp_path: Path) -> None:
    for harness, value in (("oracle", 1.0), ("nop", 0.0)):
        status, result = steelyard(
            *("run", "./examples/components/arithmetic.py:Arithmetic", harness, "none"),
            *("-P", "benchmark.tasks=5", "--results-dir", str(tmp_path / harness)),
        )
        assert status == 0, result
        (request,) = result["requests"]
        assert request["outcomes"]["scored"] == request["planned"] == 5
        (record_file,) = (tmp_path / harness).rglob("attempts.jsonl")
        lines = record_file.read_text().split("\n")[:-1]
        records = [json.loads(line.split("\t")[0]) for line in lines]
        assert {float(record["metrics"]["correct"]) for record in records} == {value}


@pytest.mark.integration
def test_the_example_agent_works_in_a_sandbox_with_its_model_alone(tmp_path: Path) -> None:
    with MockEndpoint("--answers", str(EXAMPLES / "agents/stand-in.jsonl")) as endpoint:
        status, result = steelyard(
            *("launch", "examples/agents/tool-agent.yaml", "--results-dir", str(tmp_path)),
            AGENT_MODEL_URL=endpoint.url,
        )
    assert status == 0, result
    (request,) = result["requests"]
    assert request["outcomes"]["scored"] == 3
    reader = RunReader(Path(request["run_dir"]))
    passed = {record.task_id: record.metrics["correct"] for record in reader.records()}
    assert passed == {"moving-average": True, "slugs": True, "intervals": False}
    record = reader.record("slugs", 1)
    assert record is not None
    assert record.trajectory is not None
    trajectory = json.loads((reader.root / str(record.trajectory["path"])).read_bytes())
    tools = [
        call["function_name"] for step in trajectory["steps"] for call in step.get("tool_calls", ())
    ]
    assert tools == ["read_file", "write_file", "run"]
    assert record.usage.requests == 3
    assert record.usage.cost_usd == 0
    assert not list(tmp_path.rglob("trajectory.jsonl"))


@pytest.mark.integration
def test_the_example_environment_runs_a_pack_at_a_lower_priority(tmp_path: Path) -> None:
    status, result = steelyard(
        *("run", "./examples/packs/code-fix", "oracle", "none"),
        *("--env", "./examples/components/niced.py:Niced", "--results-dir", str(tmp_path)),
    )
    assert status == 0, result
    assert result["requests"][0]["outcomes"]["scored"] == 3

    async def niceness() -> bytes:
        component = find(Kind.ENVIRONMENT, f"{EXAMPLES}/components/niced.py:Niced").component
        environment = component(component.Params(niceness=7))
        session = await environment.open(OpenRequest("niced-example"))
        try:
            return bytes((await session.exec(["nice"])).stdout)
        finally:
            await session.close()

    assert asyncio.run(niceness()).strip() == b"7"


def test_the_example_harness_asks_again_with_its_own_answer_before_it() -> None:
    from steelyard.components.values import Message
    from tests.harnesses.test_harnesses import Context, OneAnswer

    found = find(Kind.HARNESS, f"{EXAMPLES}/components/second_thought.py:SecondThought").component
    model = OneAnswer("42")
    context = Context((Message("user", "6 x 7?"),), model=model)
    result = asyncio.run(found(found.Params(rounds=2, question="Sure?")).run(context))
    assert result.answer == "42"
    assert [message.content for message in model.asked[-1].messages] == [
        "6 x 7?", "42", "Sure?", "42", "Sure?"
    ]  # fmt: skip
    assert len(context.steps) == 3


@pytest.mark.parametrize(
    ("kind", "target", "unknown"),
    [
        (Kind.BENCHMARK, "arithmetic.py:Arithmetic", {"digit": 3}),
        (Kind.HARNESS, "second_thought.py:SecondThought", {"round": 3}),
        (Kind.ENVIRONMENT, "niced.py:Niced", {"nice": 3}),
    ],
)
def test_the_example_components_refuse_unknown_parameters(
    kind: Kind, target: str, unknown: dict[str, int]
) -> None:
    component = find(kind, f"{EXAMPLES}/components/{target}").component
    with pytest.raises(ValueError, match="Extra inputs"):
        component.Params(**unknown)
