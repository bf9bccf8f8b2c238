"""Planning: defaults of the seeds, what is refused before anything is created."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from steelyard.components.clock import SystemClock
from steelyard.config.errors import BadInput
from steelyard.config.resolve import resolve_orchestration
from steelyard.engine.plan import Plan, make_plan
from tests.engine.launching import COMPONENTS, request


def planned(tmp_path: Path, *requests: dict[str, Any], **top: Any) -> Plan:
    path = tmp_path / "o.json"
    path.write_text(json.dumps({"requests": list(requests), **top}))
    resolution = resolve_orchestration(path, environ={}, cwd=tmp_path)
    return make_plan(resolution, clock=SystemClock())


def refused(tmp_path: Path, *requests: dict[str, Any], **top: Any) -> str:
    with pytest.raises(BadInput) as caught:
        planned(tmp_path, *requests, **top)
    assert not (tmp_path / "results").exists()
    return str(caught.value)


def test_each_built_in_provider_is_limited_to_128_and_local_ones_are_not_paced(
    tmp_path: Path,
) -> None:
    limits = planned(tmp_path, request()).limits
    assert limits.task_concurrency == 32
    assert dict(limits.provider_limits) == {"docker": 128, "host_process": 128, "sandbox": 128}
    assert dict(limits.env_open_qps) == {}


def test_a_remote_provider_opens_ten_a_second_and_has_no_limit_of_its_own(tmp_path: Path) -> None:
    name = f"{COMPONENTS}:Remote"
    limits = planned(tmp_path, request(environment={"id": name})).limits
    assert limits.env_open_qps == {name: 10.0}
    assert name not in limits.provider_limits


def test_what_the_user_sets_replaces_the_defaults_and_zero_is_no_limit(tmp_path: Path) -> None:
    name = f"{COMPONENTS}:Remote"
    runtime = {"provider_limits": {"sandbox": 8, "host_process": 0}, "env_open_qps": {name: 0}}
    limits = planned(tmp_path, request(environment={"id": name}), runtime=runtime).limits
    assert dict(limits.provider_limits) == {"docker": 128, "host_process": 0, "sandbox": 8}
    assert dict(limits.env_open_qps) == {name: 0}


def test_an_unknown_provider_in_a_limit_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    said = refused(tmp_path, request(), runtime={"provider_limits": {"sandbx": 8}})
    assert "did you mean sandbox?" in said


def test_the_seeds_time_limit_is_a_hundred_hours_and_zero_is_none(tmp_path: Path) -> None:
    assert planned(tmp_path, request()).timeout_s == 360_000
    assert planned(tmp_path, request(), runtime={"timeout_seconds": 0}).timeout_s == 0


def test_where_nothing_model_written_runs_auto_is_the_host(tmp_path: Path) -> None:
    plan = planned(tmp_path, request(environment={"id": "auto"}))
    assert plan.requests[0].spec.environment.id == "host_process"


def test_where_model_written_code_runs_auto_is_a_sandbox(tmp_path: Path) -> None:
    one = request(benchmark={"id": "humaneval"}, harness={"id": "nop"}, environment={"id": "auto"})
    plan = planned(tmp_path, one)
    assert plan.requests[0].spec.environment.id == "sandbox"
    assert plan.requests[0].document()["environment"] == "sandbox"


def test_a_harness_without_a_model_takes_the_model_none(tmp_path: Path) -> None:
    assert "calls no model" in refused(tmp_path, request(model={"id": "gpt"}))
    chat = request(harness={"id": "chat"})
    assert "requests[0].model.id" in refused(tmp_path, chat)


def test_faults_of_all_requests_are_said_at_once_with_their_lines(tmp_path: Path) -> None:
    said = refused(
        tmp_path,
        request("a", benchmark={"taks": 3}),
        request("b", harness={"sleep": 3}),
        request("c", benchmark={"tasks": "many"}),
    )
    assert "requests[0].benchmark.taks" in said
    assert "did you mean tasks?" in said
    assert "requests[1].harness.sleep" in said
    assert "requests[2].benchmark.tasks" in said
    assert said.count("o.json:1:") == 3


def test_pass_needs_a_binary_metric(tmp_path: Path) -> None:
    one = request(
        benchmark={"id": f"{COMPONENTS}:Weighed"}, execution={"attempts": {"strategy": "pass"}}
    )
    said = refused(tmp_path, one)
    assert "scalar" in said
    assert "strategy: avg" in said


def test_a_named_reuse_source_that_is_missing_is_refused_by_the_plan(tmp_path: Path) -> None:
    one = request(runtime={"reuse_run_id": "gone"})
    assert "requests[0].runtime.reuse_run_id" in refused(tmp_path, one)


def test_what_this_machine_lacks_is_a_warning_of_the_dry_run(tmp_path: Path) -> None:
    one = request(environment={"id": f"{COMPONENTS}:Absent"})
    (problem,) = planned(tmp_path, one).lacking
    assert "no such engine" in problem.message


CHAT = {
    "harness": {"id": "chat"},
    "model": {"id": "nobody-knows-this", "base_url": "http://127.0.0.1:9/v1"},
}


def test_an_unpriced_model_under_a_dollar_budget_is_refused(tmp_path: Path) -> None:
    one = {**request(), **CHAT}
    said = refused(tmp_path, one, budget={"usd": 5})
    assert "--allow-unpriced" in said
    assert refused(tmp_path, {**one, "budget": {"usd": 5}})


def test_a_price_or_the_users_word_lets_it_run(tmp_path: Path) -> None:
    one = {**request(), **CHAT}
    price = {"nobody-knows-this": {"input_per_mtok": 1, "output_per_mtok": 2}}
    planned(tmp_path, one, budget={"usd": 5}, prices=price)
    planned(tmp_path, one, budget={"usd": 5}, runtime={"allow_unpriced": True})
    planned(tmp_path, one, budget={"tokens": 5})


def agent_of(agent: str, **model: Any) -> dict[str, Any]:
    endpoint = {"id": "m", "base_url": "http://127.0.0.1:9/v1", **model}
    return request(harness={"id": agent}, environment={"id": "sandbox"}, model=endpoint)


@pytest.mark.parametrize(
    ("agent", "spoken"),
    [
        ("claude_code", "anthropic"),
        ("codex", "openai-responses"),
        ("mini_swe_agent", "openai-chat"),
    ],
)
def test_an_agents_program_is_not_asked_for_a_protocol_that_it_does_not_speak(
    tmp_path: Path, agent: str, spoken: str
) -> None:
    for other in {"anthropic", "openai-responses", "openai-chat"} - {spoken}:
        said = refused(tmp_path, agent_of(agent, api_protocol=other))
        assert "requests[0].model.api_protocol" in said
        assert f"write `{spoken}` or leave it out" in said
    planned(tmp_path, agent_of(agent, api_protocol=spoken))
    planned(tmp_path, agent_of(agent))


def test_what_only_says_how_a_harness_is_installed_is_no_part_of_what_is_measured(
    tmp_path: Path,
) -> None:
    def harness(agent: str, **params: Any) -> Any:
        one = {**agent_of(agent), "harness": {"id": agent, **params}}
        (plan,) = planned(tmp_path, one).requests
        return plan.document()["identities"]["generation"]["harness"]

    for agent in ("terminus2", "codex"):
        assert harness(agent) == harness(agent, install_timeout_seconds=5)
    assert harness("terminus2") == harness("terminus2", python=sys.executable)
    assert harness("terminus2") != harness("terminus2", install_tmux=False)


@pytest.mark.parametrize("field", ["sample_ids", "exclude_ids"])
def test_a_task_that_is_not_there_is_said_by_the_plan_with_the_nearest_names(
    tmp_path: Path, field: str
) -> None:
    one = request(
        benchmark={"id": "humaneval"},
        harness={"id": "nop"},
        environment={"id": "sandbox"},
        execution={field: ["HumanEval/7", "HumanEvil/8"]},
    )
    said = refused(tmp_path, one)
    assert f"requests[0].execution.{field}" in said
    assert "there is no task 'HumanEvil/8'" in said
    assert "did you mean HumanEval/8" in said
    assert "HumanEval/7'" not in said


def test_a_benchmark_that_must_load_to_know_its_tasks_is_not_asked_by_the_plan(
    tmp_path: Path,
) -> None:
    planned(tmp_path, request(execution={"sample_ids": ["no such task"]}))


def _pack(folder: Path) -> Path:
    folder.mkdir()
    (folder / "pack.yaml").write_text(
        "schema: pack/v1\nslug: small\nversion: 1\nname: Small\ndescription: One case.\n"
        "prompt: '{{ q }}'\ncases: [{id: a, q: what}]\n"
        "scoring: {validators: [{type: exact, expected: x}]}\n"
    )
    return folder


def test_a_pack_is_read_once_for_all_requests_of_a_launch_and_anew_for_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from steelyard.benchmarks.pack import benchmark

    read: list[Path] = []
    real = benchmark.read_pack
    monkeypatch.setattr(benchmark, "read_pack", lambda path: read.append(path) or real(path))
    pack = {"id": str(_pack(tmp_path / "small"))}
    requests = [request(f"r{n}", benchmark=pack, execution={"seed": n}) for n in range(5)]
    plan = planned(tmp_path, *requests)
    assert len(read) == 1
    made = [one.services.benchmark for one in plan.requests]
    assert len({id(one) for one in made}) == 5, "each request has a benchmark of its own"
    tasks = [one.load_tasks() for one in made]
    assert [task.id for task in tasks[0]] == ["a"]
    assert all(each is tasks[0] for each in tasks)
    planned(tmp_path, *requests)
    assert len(read) == 2


def test_packs_that_lie_elsewhere_or_have_other_parameters_share_nothing(tmp_path: Path) -> None:
    one, other = (str(_pack(tmp_path / name)) for name in ("one", "other"))
    plan = planned(
        tmp_path, request("a", benchmark={"id": one}), request("b", benchmark={"id": other})
    )
    first, second = (planned.services.benchmark.load_tasks() for planned in plan.requests)
    assert first is not second


def test_a_benchmark_that_cannot_share_says_so_where_it_is_named(tmp_path: Path) -> None:
    benchmark = {"id": f"{COMPONENTS}:Selfish"}
    said = refused(tmp_path, request("a", benchmark=benchmark), request("b", benchmark=benchmark))
    assert "share()" in said
    assert "requests[1].benchmark" in said
