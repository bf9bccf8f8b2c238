"""What settings show and what planning finds is said at once, and nothing that follows from it."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steelyard.components.known import REGISTRY
from steelyard.config.errors import BadInput, Problem
from steelyard.config.resolve import InvalidSettings, resolve_orchestration
from steelyard.engine.every_problem import with_plan_problems
from steelyard.engine.launch import prepare

KEY = "sk-proj-0123456789abcdefghijklmnopqrstuvwxyz"
VARIABLES = {"KEY": KEY}


def problems_of(
    folder: Path, text: str, suffix: str = "yaml", environ: Mapping[str, str] = VARIABLES
) -> list[Problem]:
    file = folder / f"o.{suffix}"
    file.write_text(text)
    try:
        prepare(
            resolve_orchestration(Path(file.name), environ=environ, cwd=folder, components=REGISTRY)
        )
    except InvalidSettings as error:
        return list(with_plan_problems(error).problems)
    except BadInput as error:
        return list(error.problems)
    return []


def places(problems: list[Problem]) -> list[tuple[int | None, str | None]]:
    return [(problem.where.line, problem.where.field) for problem in problems]


def test_an_unset_variable_hides_no_unknown_field_and_no_fault_of_the_plan(tmp_path: Path) -> None:
    found = problems_of(
        tmp_path,
        "nonsense: 1\n"
        "requests:\n"
        "  - name: a\n"
        "    benchmark: {id: humaneval}\n"
        "    harness: {id: oracle, bogus: 1}\n"
        "    model: {id: x, api_key: '${UNSET}'}\n"
        "  - name: a\n"
        "    benchmark: {id: humaneval, bogus: 1}\n"
        "    harness: {id: chat}\n"
        "    model: {id: '${UNSET}', base_url: 'ftp://k'}\n"
        "    environment: {id: sandbox, bogus: 1}\n"
        "    executionn: {}\n"
        "  - name: c\n"
        "    benchmark: {id: humaneval}\n"
        "    harness: {id: chatt, unjudged: 1}\n",
    )
    assert places(found) == [
        (1, "nonsense"),
        (5, "requests[0].harness.bogus"),
        (6, "requests[0].model.id"),
        (6, "requests[0].model.api_key"),
        (7, "requests[1].name"),
        (8, "requests[1].benchmark.bogus"),
        (10, "requests[1].model.id"),
        (10, "requests[1].model.base_url"),
        (11, "requests[1].environment.bogus"),
        (12, "requests[1].executionn"),
        (13, "requests[2].model"),
        (15, "requests[2].harness.id"),
    ]


def test_what_stands_in_for_a_fault_and_what_is_secret_is_in_no_message(tmp_path: Path) -> None:
    found = problems_of(
        tmp_path,
        "runtime: {secret_env: [KEY]}\n"
        "budget: {usd: 1}\n"
        "requests:\n"
        "  - benchmark: {bogus: 1}\n"
        "    harness: {id: '${UNSET}'}\n"
        "    execution: {attempts: {k: 0}}\n"
        "    runtime: {reuse_run_id: gone}\n"
        "  - name: b\n"
        "    benchmark: {id: humaneval}\n"
        "    harness: {id: chat}\n"
        "    environment: {id: '${UNSET}', x: 1}\n"
        "    model: {base_url: 'ftp://h/${KEY}', params: {stream: true}}\n"
        "  - name: c\n"
        "    benchmark: {id: humaneval}\n"
        "    harness: {id: oracle}\n"
        "    model: {id: '${KEY}'}\n",
    )
    said = "\n".join(map(str, found))
    assert "unknown" not in said
    assert KEY not in said
    assert places(found) == [
        (4, "requests[0].name"),
        (4, "requests[0].benchmark.id"),
        (4, "requests[0].model"),
        (5, "requests[0].harness.id"),
        (6, "requests[0].execution.attempts.k"),
        (11, "requests[1].environment.id"),
        (12, "requests[1].model.id"),
        (12, "requests[1].model.base_url"),
        (12, "requests[1].model.params.stream"),
        (16, "requests[2].model.id"),
    ]


@pytest.mark.parametrize(
    "fault",
    [
        "harness: {id: chat, params: {a: 1}}, model: {id: m}",
        "harness: {id: chat}, model: {id: m, api_protocol: foo, params: {messages: []}}",
        "harness: {id: chat}, model: {id: m, params: 5}",
        "harness: {id: chat}, model: {}",
        "harness: {id: chat}, model: {id: '${UNSET}'}, budget: {usd: 1}",
        "harness: {id: chat}, model: m, budget: {usd: 1}",
        "harness: {id: oracle}, model: {id: none}, environment: sandbox",
        "harness: {id: oracle}, model: {id: none}, execution: {sample_ids: [1]}",
        "harness: {id: oracle}, model: {id: none}, output: {run_id: a/b}",
        "harness: {id: oracle}, model: {id: none}, runtime: {reuse_run_id: x, reuse: maybe}",
    ],
)
def test_one_fault_is_one_problem(tmp_path: Path, fault: str) -> None:
    text = f"requests:\n  - {{name: a, benchmark: {{id: humaneval}}, {fault}}}\n"
    expected = 2 if "reuse: maybe" in fault else 1
    assert len(problems_of(tmp_path, text)) == expected


def test_a_wrong_price_is_not_also_an_unknown_one(tmp_path: Path) -> None:
    found = problems_of(
        tmp_path,
        "budget: {usd: 1}\n"
        "prices: {nobody: {input_per_mtok: -1, output_per_mtok: 1}}\n"
        "requests:\n"
        "  - {name: a, benchmark: {id: humaneval}, harness: {id: chat}, "
        "model: {id: nobody, base_url: 'http://127.0.0.1:9'}}\n",
    )
    assert places(found) == [(2, "prices.nobody.input_per_mtok")]


def test_a_fault_that_requests_inherit_is_said_once(tmp_path: Path) -> None:
    found = problems_of(
        tmp_path,
        "defaults: {benchmark: {id: humaneval, bogus: 1}, harness: {id: oracl}, model: {id: none}}"
        "\nrequests: [{name: a}, {name: b, execution: {limit: x}}]\n",
    )
    assert places(found) == [
        (1, "defaults.benchmark.bogus"),
        (1, "defaults.harness.id"),
        (2, "requests[1].execution.limit"),
    ]


Change = Callable[[dict[str, Any]], None]
SOUND: dict[str, Any] = {
    "requests": [
        {
            "name": "a",
            "benchmark": {"id": "humaneval"},
            "harness": {"id": "oracle"},
            "environment": {"id": "host_process"},
            "model": {"id": "none"},
            "execution": {"attempts": {"k": 1}},
        },
        {
            "name": "b",
            "benchmark": {"id": "humaneval"},
            "harness": {"id": "chat"},
            "environment": {"id": "sandbox"},
            "model": {"id": "m", "base_url": "http://127.0.0.1:9/v1"},
        },
    ]
}


def put(value: Any, *path: str | int) -> Change:
    def change(document: dict[str, Any]) -> None:
        holder: Any = document
        for step in path[:-1]:
            holder = holder[step] if isinstance(step, int) else holder.setdefault(step, {})
        holder[path[-1]] = value

    return change


FAULTS: tuple[Change, ...] = (
    put(1, "nonsense"),
    put({"sandbx": 1}, "runtime", "provider_limits"),
    put(0, "requests", 0, "execution", "attempts", "k"),
    put(1, "requests", 0, "executionn"),
    put(1, "requests", 0, "benchmark", "bogus"),
    put(1, "requests", 0, "harness", "bogus"),
    put(1, "requests", 0, "environment", "bogus"),
    put("x", "requests", 0, "model", "id"),
    put({"reuse_run_id": "gone"}, "requests", 0, "runtime"),
    put("a", "requests", 1, "name"),
    put("./pkk", "requests", 1, "benchmark", "id"),
    put("sandbx", "requests", 1, "environment", "id"),
    put("${UNSET}", "requests", 1, "model", "api_key"),
    put({"stream": True}, "requests", 1, "model", "params"),
    put("ftp://h", "requests", 1, "model", "base_url"),
    put("five", "requests", 1, "execution", "limit"),
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.sets(st.sampled_from(range(len(FAULTS))), min_size=2, max_size=5))
def test_faults_together_give_what_each_gives_alone(tmp_path: Path, chosen: set[int]) -> None:
    def said(*numbers: int) -> set[tuple[str | None, str]]:
        document = copy.deepcopy(SOUND)
        for number in numbers:
            FAULTS[number](document)
        # JSON on one line: columns move with what stands before, fields and words do not.
        found = problems_of(tmp_path, json.dumps(document), "json")
        return {(problem.where.field, problem.message) for problem in found}

    alone = [said(number) for number in sorted(chosen)]
    assert all(len(problems) == 1 for problems in alone)
    assert said(*sorted(chosen)) == set().union(*alone)
