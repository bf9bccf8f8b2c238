"""Judged packs through the engine: what a judge costs, what its failure stops, what is rescored."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from steelyard.components.benchmark import Task
from steelyard.components.issues import IssueCode, Outcome, Phase
from steelyard.config.errors import BadInput
from steelyard.config.resolve import resolve_orchestration
from steelyard.engine.events import LaunchResult, RunOutcome
from steelyard.engine.explain import explain
from steelyard.engine.launch import launch, prepare
from steelyard.engine.spec import ComponentSpec, ExecutionSpec, RequestSpec
from steelyard.engine.spec_json import spec_to_bytes
from steelyard.testing.endpoint import MockEndpoint
from tests.engine.launching import records, request, resolved, run_all
from tests.engine.test_executor_seam import in_fresh_interpreter

FUNCTIONS = Path(__file__).with_name("judge_functions.py")
JUDGE = f"{FUNCTIONS}:judge"
KEY = "sk-judge-0123456789abcdef"
PACK = """\
schema: pack/v1
slug: judged
version: 1
prompt: "{{ q }}"
cases: [{id: a, q: "one?"}, {id: b, q: "two?"}, {id: c, q: "three?"}, {id: d, q: "four?"}]
reference: {answer: "right", tool_calls: [{name: look, arguments: {q: "{{ q }}"}}]}
JUDGE
scoring:
  validators:
    - VALIDATOR
  threshold: 1.0
"""
ASSERTION = "{type: judge, assertion: It holds the word., show: []}"

pytestmark = pytest.mark.integration


def pack(tmp_path: Path, validator: str = ASSERTION, judge: str = "") -> Path:
    folder = tmp_path / "pack"
    folder.mkdir(exist_ok=True)
    text = PACK.replace("JUDGE\n", f"{judge}\n" if judge else "").replace("VALIDATOR", validator)
    (folder / "pack.yaml").write_text(text)
    return folder


def judged(
    folder: Path, agent: MockEndpoint, judge: Mapping[str, Any], **rest: Any
) -> dict[str, Any]:
    return (
        request(
            benchmark={"id": str(folder), "judge": judge},
            harness={"id": "chat"},
            model={"id": "agent", "base_url": agent.url},
        )
        | rest
    )


def calls(endpoint: MockEndpoint) -> int:
    found: int = endpoint.stats()["calls"]
    return found


def all_written(result: LaunchResult) -> bytes:
    run_dir = result.requests[0].run_dir
    return b"".join(path.read_bytes() for path in run_dir.rglob("*") if path.is_file())


def test_a_judged_run_is_scored_and_its_judge_is_paid(tmp_path: Path) -> None:
    with MockEndpoint("--function", JUDGE) as endpoint:
        judge = {"model": {"id": "j", "base_url": endpoint.url}, "samples": 3}
        one = judged(pack(tmp_path), endpoint, judge)
        price = {"input_per_mtok": 0, "output_per_mtok": 1_000_000}
        prices = {"agent": {**price, "output_per_mtok": 0}, "j": price}
        result = run_all(tmp_path, one, prices=prices, budget={"usd": 1_000_000})
    assert result.requests[0].counts[Outcome.SCORED] == 4
    for record in records(result):
        assert record.metrics["correct"] is True
        assert record.usage.requests == 4
        words = record.details["validators"]["judge"]
        assert [said["verdict"] for said in words["samples"]] == [True] * 3
        assert "It holds the word." in words["samples"][0]["reason"]
        assert words["usage"]["requests"] == 3
        assert record.usage.cost_usd == words["usage"]["output_tokens"] > 0
        # The trajectory is the agent's: what its judge took is no part of it.
        path = result.requests[0].run_dir / str((record.trajectory or {})["path"])
        totals = json.loads(path.read_bytes())["final_metrics"]
        assert totals["total_cost_usd"] == 0
        agents = record.usage.output_tokens - words["usage"]["output_tokens"]
        assert totals["total_completion_tokens"] == agents > 0


def test_the_judges_of_an_attempt_are_asked_side_by_side_and_stand_in_the_packs_order(
    tmp_path: Path,
) -> None:
    names = ("first", "second", "third")
    validators = "\n    - ".join(
        f"{{type: judge, name: {name}, assertion: It holds the word., show: []}}" for name in names
    )
    with (
        MockEndpoint("--function", JUDGE) as agent,
        MockEndpoint("--function", JUDGE, "--latency", "1") as judges,
    ):
        one = judged(
            pack(tmp_path, validators), agent, {"model": {"id": "j", "base_url": judges.url}}
        )
        one["execution"] = {"limit": 1}
        result = run_all(tmp_path, one)
        assert calls(judges) == 3
    (record,) = records(result)
    assert [name for name in record.metrics if name.startswith("validator.")] == [
        f"validator.{name}" for name in names
    ]
    assert 1 <= record.timing.evaluate_s < 2.5


def test_what_a_judge_costs_counts_in_the_budget(tmp_path: Path) -> None:
    with MockEndpoint("--function", JUDGE) as endpoint:
        judge = {"model": {"id": "j", "base_url": endpoint.url}}
        one = judged(pack(tmp_path), endpoint, judge)
        free = {"input_per_mtok": 0, "output_per_mtok": 0}
        prices = {"agent": free, "j": {**free, "output_per_mtok": 1_000_000}}
        budget = {"usd": 1, "reserve_usd": 1}
        result = run_all(tmp_path, one, prices=prices, budget=budget)
    counts = result.requests[0].counts
    assert (counts[Outcome.SCORED], counts[Outcome.SKIPPED_BUDGET]) == (1, 3)


@pytest.mark.parametrize("protocol", ["openai-chat", "openai-responses", "anthropic"])
def test_a_judge_speaks_any_protocol(tmp_path: Path, protocol: str) -> None:
    with MockEndpoint("--function", JUDGE) as endpoint:
        url = endpoint.origin + "/v1"
        model = {"id": "j", "base_url": url, "api_protocol": protocol, "api_key": KEY}
        result = run_all(tmp_path, judged(pack(tmp_path), endpoint, {"model": model}))
    assert all(record.metrics["correct"] is True for record in records(result))


def test_the_judges_key_may_be_a_variable(tmp_path: Path) -> None:
    with MockEndpoint("--function", JUDGE, "--require-key", KEY) as endpoint:
        model = {"id": "j", "base_url": endpoint.url, "api_key": "${JUDGE_KEY}"}
        one = judged(pack(tmp_path), endpoint, {"model": model})
        one["model"] = {**one["model"], "api_key": "${JUDGE_KEY}"}
        document = {"requests": [one], "runtime": {"results_dir": str(tmp_path / "results")}}
        path = tmp_path / "orchestration.json"
        path.write_text(json.dumps(document))
        resolution = resolve_orchestration(path, environ={"JUDGE_KEY": KEY}, cwd=tmp_path)
        result = asyncio.run(launch(prepare(resolution)))
    assert result.requests[0].counts[Outcome.SCORED] == 4
    assert KEY.encode() not in all_written(result)


def test_the_judges_key_is_written_nowhere(tmp_path: Path) -> None:
    with MockEndpoint("--function", JUDGE, "--require-key", KEY) as endpoint:
        headers = {"x-team": "team-secret-42424242"}
        model = {"id": "j", "base_url": endpoint.url, "api_key": KEY, "extra_headers": headers}
        one = judged(pack(tmp_path), endpoint, {"model": model})
        one["model"] = {**one["model"], "api_key": KEY}
        result = run_all(tmp_path, one)
    assert result.requests[0].counts[Outcome.SCORED] == 4
    written = all_written(result)
    assert KEY.encode() not in written
    assert b"team-secret-42424242" not in written
    assert b"[redacted]" in written  # the judge repeats its key in its reason


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_judge_that_refuses_the_key_stops_the_request_at_once(
    tmp_path: Path, concurrency: int
) -> None:
    with (
        MockEndpoint("--function", JUDGE) as agent,
        MockEndpoint("--function", JUDGE, "--require-key", "another-key") as other,
    ):
        judge = {"model": {"id": "j", "base_url": other.url, "api_key": KEY}, "samples": 3}
        one = judged(pack(tmp_path), agent, judge)
        result = run_all(tmp_path, one, task_concurrency=concurrency)
        assert calls(agent) == concurrency
        assert calls(other) == 1
    (run,) = result.requests
    assert run.outcome is RunOutcome.FAILED
    assert "the judge j could not be asked" in str(run.reason)
    assert "401" in str(run.reason)
    fatal = [record for record in records(result) if record.issues]
    assert fatal[0].outcome is Outcome.FAILED_FATAL
    assert fatal[0].issues[0].code is IssueCode.SCORER_CRASHED
    assert fatal[0].issues[0].phase is Phase.EVALUATE
    assert fatal[0].metrics == {}


def test_a_judge_without_verdicts_fails_the_scoring_and_its_cost_counts(tmp_path: Path) -> None:
    with MockEndpoint("--function", f"{FUNCTIONS}:nonsense") as endpoint:
        judge = {"model": {"id": "j", "base_url": endpoint.url}}
        result = run_all(tmp_path, judged(pack(tmp_path), endpoint, judge))
    assert result.requests[0].counts[Outcome.FAILED_FATAL] == 4
    for record in records(result):
        assert "0 of 1 replies of the judge j were verdicts" in record.issues[0].message
        assert record.usage.requests == 3  # the agent's, the judge's, and once more


def test_another_judge_scores_again_and_runs_no_agent(tmp_path: Path) -> None:
    with MockEndpoint("--function", JUDGE) as agent, MockEndpoint("--function", JUDGE) as other:

        def run(**judge: Any) -> tuple[int, int, LaunchResult]:
            before = calls(agent), calls(other)
            one = judged(pack(tmp_path), agent, judge, runtime={"reuse": True})
            result = run_all(tmp_path, one)
            return calls(agent) - before[0], calls(other) - before[1], result

        model = {"id": "j", "base_url": other.url}
        assert run(model=model)[:2] == (4, 4)
        assert run(model=model)[:2] == (0, 0)
        # Where and with which key is not what was judged.
        moved = {**model, "base_url": agent.url, "api_key": KEY, "max_connections": 3}
        assert run(model=moved)[:2] == (0, 0)
        assert run(model={**model, "id": "j2"})[:2] == (0, 4)
        assert run(model={**model, "id": "j2", "params": {"temperature": 0}})[:2] == (0, 4)
        agents, judges, last = run(model={**model, "id": "j2"}, samples=3)
        assert (agents, judges) == (0, 12)
    assert all(record.reused_from is not None for record in records(last))


def test_explain_reuse_names_the_judge_that_has_changed(tmp_path: Path) -> None:
    folder = pack(tmp_path)
    model = {"id": "j", "base_url": "http://127.0.0.1:9/v1", "api_key": KEY}
    first = run_all(tmp_path, unjudged(folder, model=model))
    assert KEY.encode() not in all_written(first)
    changed = resolved(tmp_path, unjudged(folder, model={**model, "id": "k"}, samples=3))
    found = explain(first.requests[0].run_dir, changed, None)
    assert [change["field"] for change in found["differences"]["evaluation"]] == [
        "benchmark.params.judge.model.id",
        "benchmark.params.judge.samples",
    ]


def test_only_the_scoring_is_made_up_for_where_the_judge_was_out_of_reach(tmp_path: Path) -> None:
    with MockEndpoint("--function", JUDGE) as agent:
        model = {"id": "j", "max_request_retries": 0}
        with MockEndpoint("--fault", "503") as other:
            first = {"model": {**model, "base_url": other.url}}
            failed = run_all(tmp_path, judged(pack(tmp_path), agent, first))
        assert failed.requests[0].counts[Outcome.FAILED_FATAL] == 4
        assert calls(agent) == 4
        second = {"model": {**model, "base_url": agent.url}}
        one = judged(pack(tmp_path), agent, second, runtime={"reuse": True})
        assert run_all(tmp_path, one).requests[0].counts[Outcome.SCORED] == 4
        assert calls(agent) == 8


def test_what_is_scored_by_its_trajectory_is_scored_again_from_it(tmp_path: Path) -> None:
    with MockEndpoint("--function", JUDGE) as agent:
        validator = "{type: contains, on: trajectory, expected: WORD}"
        for word, correct, made in (("right", True, 4), ("wrong", False, 4)):
            folder = pack(tmp_path, validator.replace("WORD", word))
            one = request(
                benchmark={"id": str(folder)},
                harness={"id": "chat"},
                model={"id": "agent", "base_url": agent.url},
                runtime={"reuse": True},
            )
            result = run_all(tmp_path, one)
            assert calls(agent) == made
            assert {record.metrics["correct"] for record in records(result)} == {correct}


def test_oracle_plays_tool_calls_and_nop_makes_none(tmp_path: Path) -> None:
    validator = "{type: tool_calls, calls: [{name: look, arguments: {q: '{{ q }}'}}]}"
    folder = pack(tmp_path, validator)
    for harness, correct in (("oracle", True), ("nop", False)):
        one = request(benchmark={"id": str(folder)}, harness={"id": harness})
        found = records(run_all(tmp_path, one))
        assert {record.metrics["correct"] for record in found} == {correct}


@pytest.mark.parametrize("asked", [{"name": "look", "arguments": {"q": "one?"}}, None])
def test_tools_that_a_model_asks_for_are_seen_in_a_direct_call(
    tmp_path: Path, asked: dict[str, Any] | None
) -> None:
    answers = tmp_path / "answers.jsonl"
    answers.write_text(
        json.dumps({"match": "one?", **({"tool_calls": [asked]} if asked else {"answer": "no"})})
    )
    folder = pack(tmp_path, "{type: tool_calls, calls: [{name: look, arguments: {q: '{{ q }}'}}]}")
    with MockEndpoint("--answers", str(answers)) as endpoint:
        one = request(
            benchmark={"id": str(folder)},
            harness={"id": "chat"},
            model={"id": "agent", "base_url": endpoint.url},
            execution={"limit": 1},
        )
        (record,) = records(run_all(tmp_path, one))
    assert record.metrics["correct"] is (asked is not None)


def test_a_worker_looks_the_judges_key_up_itself(tmp_path: Path) -> None:
    with MockEndpoint("--function", JUDGE, "--require-key", KEY) as endpoint:
        key = {"$secret": "env:JUDGE_KEY"}
        judge = {"model": {"id": "j", "base_url": endpoint.url, "api_key": key}, "samples": 3}
        benchmark = ComponentSpec(str(pack(tmp_path)), {"judge": judge})
        one = RequestSpec(
            "r", benchmark, ComponentSpec("oracle"), ComponentSpec("host_process"), None
        )
        task = Task("a", {"id": "a", "q": "one?"})
        spec = ExecutionSpec(one, task, 1, 1, "test-0123456789abcdef", 1)
        assert KEY.encode() not in spec_to_bytes(spec)
        result = in_fresh_interpreter(spec, JUDGE_KEY=KEY)
    assert result.outcome is Outcome.SCORED, result.issues
    assert result.metrics["correct"] is True
    assert result.usage.requests == 3


# -- what a dry run finds ----------------------------------------------------------------------


def refused(tmp_path: Path, one: dict[str, Any], **top: Any) -> str:
    with pytest.raises(BadInput) as caught:
        run_all(tmp_path, one, **top)
    return str(caught.value)


def unjudged(folder: Path, **judge: Any) -> dict[str, Any]:
    benchmark: dict[str, Any] = {"id": str(folder)}
    return request(benchmark=benchmark | ({"judge": judge} if judge else {}), harness={"id": "nop"})


def test_a_judge_nobody_named_is_found_before_anything_runs(tmp_path: Path) -> None:
    said = refused(tmp_path, unjudged(pack(tmp_path)))
    assert "no model is named to judge" in said
    assert "nobody says where the judge is reached" in said
    assert "judge: {model: {id: …}}" in said
    assert not (tmp_path / "results").exists()


def test_a_packs_own_address_is_confirmed_or_not_called(tmp_path: Path) -> None:
    judge = "judge: {model: {id: j, base_url: 'https://judge.example/v1'}}"
    folder = pack(tmp_path, judge=judge)
    assert "which no request confirms" in refused(tmp_path, unjudged(folder))
    key = refused(tmp_path, unjudged(folder, model={"api_key": KEY}))
    assert "key would go to https://judge.example/v1" in key
    assert KEY not in key
    confirmed = unjudged(folder, model={"base_url": "https://judge.example/v1"})
    assert run_all(tmp_path, confirmed).requests[0].counts[Outcome.SCORED] == 4  # nop asks nobody


def test_a_judge_without_a_price_is_no_match_for_a_budget(tmp_path: Path) -> None:
    folder = pack(tmp_path)
    one = unjudged(folder, model={"id": "unheard-of", "base_url": "http://127.0.0.1:9/v1"})
    assert "the price of the judge 'unheard-of' is not known" in refused(
        tmp_path, one, budget={"usd": 1}
    )
    run_all(tmp_path, one, budget={"usd": 1}, runtime={"allow_unpriced": True})


def test_parameters_that_cannot_be_sent_are_found_by_a_dry_run(tmp_path: Path) -> None:
    folder = pack(tmp_path)
    model = {"id": "j", "base_url": "http://127.0.0.1:9/v1"}
    streams = unjudged(folder, model={**model, "params": {"stream": True}})
    assert "the judge's model: stream would replace" in refused(tmp_path, streams)
    unknown = refused(tmp_path, unjudged(folder, model={**model, "api_kee": "x"}))
    assert "api_kee" in unknown
    assert "no model is named" not in unknown


def test_a_judge_for_a_pack_that_asks_none_is_refused(tmp_path: Path) -> None:
    folder = pack(tmp_path, "{type: exact, expected: right}")
    one = unjudged(folder, model={"id": "j", "base_url": "http://127.0.0.1:9/v1"})
    assert "no validator of that type" in refused(tmp_path, one)
