"""What a submission may cost: nothing is made up, and nothing is made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from steelyard.evalset.earlier_runs import earlier_runs
from steelyard.evalset.estimate import Basis, SetEstimate, estimate_set
from steelyard.evalset.set_plan import plan_submission
from steelyard.evalset.surroundings import Surroundings
from steelyard.testing.endpoint import MockEndpoint
from tests.evalset.projects import (
    A_DOLLAR,
    agent,
    dear_endpoint,
    submitted,
    write_manifest,
    write_project,
)

NOWHERE = "http://127.0.0.1:9/v1"


def estimate(folder: Path, *agents: str, **fields: Any) -> SetEstimate:
    around = Surroundings(cwd=folder, environ={})
    return estimate_set(plan_submission(write_manifest(folder, *agents, **fields), around))


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def chat(**model: Any) -> dict[str, Any]:
    return {**agent("asks", "chat"), "model": {"id": "m", "base_url": NOWHERE, **model}}


PRICES = {"m": {"input_per_mtok": 2_000_000, "output_per_mtok": A_DOLLAR}}


def test_tasks_and_attempts_are_counted_per_cell(tmp_path: Path) -> None:
    write_project(tmp_path, agent("nothing", "nop"))
    execution = {"attempts": {"k": 2}, "limit": 2}
    found = estimate(tmp_path, "nothing", repeats=3, execution=execution)
    assert [(cell.tasks, cell.k, cell.attempts) for cell in found.cells] == [(2, 2, 4)] * 3
    assert (found.tasks, found.attempts) == (6, 12)


def test_who_calls_no_model_costs_nothing(tmp_path: Path) -> None:
    write_project(tmp_path, agent("nothing", "nop"))
    found = estimate(tmp_path, "nothing", limits={"budget_usd": 0})
    assert found.cells[0].cost.basis is Basis.NO_MODEL
    assert (found.cost_usd, found.is_over_budget) == (0.0, False)


def test_a_bound_on_answers_bounds_the_cost(tmp_path: Path) -> None:
    write_project(tmp_path, chat(params={"max_tokens": 4}), prices=PRICES)
    (cell,) = estimate(tmp_path, "asks").cells
    prompts = [f"Case case-{n}, seed 0: say right." for n in (1, 2, 3)]
    tokens_in = sum(-(-len(prompt) // 2) for prompt in prompts)
    assert cell.cost.basis is Basis.BOUNDED
    assert cell.cost.usd == pytest.approx(tokens_in * 2 + 3 * 4 * 0.5)


def test_a_packs_own_limit_bounds_it_too(tmp_path: Path) -> None:
    write_project(tmp_path, chat(), prices=PRICES)
    file = tmp_path / "packs" / "p" / "pack.yaml"
    pack = json.loads(file.read_text())
    file.write_text(json.dumps({**pack, "limits": {"output_tokens": 10}}))
    (cell,) = estimate(tmp_path, "asks").cells
    assert cell.cost.basis is Basis.BOUNDED
    assert "limits.output_tokens" in cell.cost.note


@pytest.mark.parametrize(
    ("model", "prices", "said"),
    [
        ({}, PRICES, "nothing bounds an answer"),
        ({"params": {"max_tokens": 4}}, {}, "the price of m is not known"),
    ],
)
def test_what_is_not_known_is_said_to_be_unknown(
    tmp_path: Path, model: dict[str, Any], prices: dict[str, Any], said: str
) -> None:
    write_project(tmp_path, chat(**model), agent("nothing", "nop"), prices=prices)
    found = estimate(tmp_path, "asks", "nothing")
    assert (found.cells[0].cost.basis, found.cells[0].cost.usd) == (Basis.UNKNOWN, None)
    assert said in found.cells[0].cost.note
    assert (found.cost_usd, found.known_usd, len(found.unknown)) == (None, 0.0, 1)


def test_an_agent_that_decides_itself_how_often_it_asks_is_unknown(tmp_path: Path) -> None:
    terminal = {**chat(params={"max_tokens": 4}), "harness": {"id": "terminal_agent"}}
    write_project(tmp_path, terminal, prices=PRICES)
    (cell,) = estimate(tmp_path, "asks").cells
    assert "decides itself how often it asks" in cell.cost.note


def test_more_than_the_budget_is_seen(tmp_path: Path) -> None:
    write_project(tmp_path, chat(params={"max_tokens": 4}), prices=PRICES)
    assert estimate(tmp_path, "asks", limits={"budget_usd": 5}).is_over_budget
    assert not estimate(tmp_path, "asks", limits={"budget_usd": 5000}).is_over_budget


@pytest.mark.integration
def test_earlier_runs_of_the_same_kind_tell_what_an_attempt_costs(tmp_path: Path) -> None:
    with dear_endpoint(tmp_path):
        submitted(tmp_path, "dear", repeats=2)
        found = estimate(tmp_path, "dear", repeats=4)
        cost = found.cells[0].cost
        assert (cost.basis, cost.runs, cost.attempts) == (Basis.EARLIER_RUNS, 2, 6)
        assert cost.usd == pytest.approx(3.0)
        assert found.cost_usd == pytest.approx(12.0)
        other = estimate(tmp_path, "dear", models=["other"])
        assert other.cells[0].cost.basis is not Basis.EARLIER_RUNS


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", '{"attempts": 1}', "{"])
def test_a_run_that_is_not_as_we_write_it_teaches_nothing(tmp_path: Path, text: str) -> None:
    run = tmp_path / "results" / "name" / "20260101_000000"
    run.mkdir(parents=True)
    for name in ("run.json", "metrics.json", "events.jsonl", "attempts.jsonl"):
        (run / name).write_text(text)
    assert dict(earlier_runs(tmp_path / "results")) == {}
    assert dict(earlier_runs(tmp_path / "absent")) == {}


def test_an_estimate_makes_nothing(tmp_path: Path) -> None:
    write_project(tmp_path, chat(params={"max_tokens": 4}), prices=PRICES)
    write_manifest(tmp_path, "asks")
    before = sorted(tmp_path.rglob("*"))
    document = estimate(tmp_path, "asks").as_json()
    assert sorted(tmp_path.rglob("*")) == before
    assert document["schema"] == "evalset-plan/1"
    json.dumps(document)


def test_parameters_beyond_64_bits_are_no_obstacle(tmp_path: Path) -> None:
    write_project(tmp_path, chat(params={"max_tokens": 4, "n_ctx": 2**70}), prices=PRICES)
    assert estimate(tmp_path, "asks").cells[0].cost.usd is not None


ASKS = """
import json, os, urllib.request
asked = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
head = {"authorization": "Bearer " + os.environ["OPENAI_API_KEY"],
        "content-type": "application/json"}
url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
with urllib.request.urlopen(urllib.request.Request(url, json.dumps(asked).encode(), head)) as got:
    print(json.load(got)["choices"][0]["message"]["content"])
"""


@pytest.mark.integration
def test_a_secret_of_a_program_does_not_hide_its_earlier_runs(tmp_path: Path) -> None:
    (tmp_path / "asks.py").write_text(ASKS)
    with MockEndpoint("--text", "right") as endpoint:
        params = {
            "run": ["python3", "{files}/asks.py"],
            "files": "asks.py",
            "env": {"OTHER_API_KEY": "sk-abcdefghijklmnop1234567"},
        }
        model = {"id": "m", "base_url": endpoint.url, "max_request_retries": 0}
        write_project(tmp_path, {**agent("program", "command", params), "model": model},
                      prices={"m": {"input_per_mtok": 0, "output_per_mtok": A_DOLLAR}})  # fmt: skip
        submitted(tmp_path, "program", repeats=2)
        found = estimate(tmp_path, "program", repeats=3)
    assert [(cell.cost.basis, cell.cost.attempts) for cell in found.cells] == [
        (Basis.EARLIER_RUNS, 6)
    ] * 3


@pytest.mark.integration
def test_agents_at_two_addresses_have_earlier_runs_of_their_own(tmp_path: Path) -> None:
    with MockEndpoint("--text", "right") as one, MockEndpoint("--text", "right " * 9) as other:
        agents = [
            {**agent(name, "chat"), "model": {"id": "m", "base_url": endpoint.url}}
            for name, endpoint in (("weak", one), ("strong", other))
        ]
        write_project(tmp_path, *agents,
                      prices={"m": {"input_per_mtok": 0, "output_per_mtok": A_DOLLAR}})  # fmt: skip
        submitted(tmp_path, "weak", "strong")
        weak, strong = estimate(tmp_path, "weak", "strong").cells
    assert weak.cost.attempts == strong.cost.attempts == 3
    assert weak.cost.usd is not None
    assert strong.cost.usd is not None
    assert weak.cost.usd < strong.cost.usd


@pytest.mark.integration
def test_earlier_runs_without_a_price_are_not_said_to_be_none(tmp_path: Path) -> None:
    with MockEndpoint("--text", "right") as endpoint:
        model = {"id": "m", "base_url": endpoint.url}
        write_project(tmp_path, {**agent("asks", "chat"), "model": model},
                      prices={"m": {"input_per_mtok": 0, "output_per_mtok": A_DOLLAR}})  # fmt: skip
        submitted(tmp_path, "asks")
        for file in (tmp_path / "results").rglob("metrics.json"):
            document = json.loads(file.read_text())
            document["spent"]["cost_usd"] = None
            file.write_text(json.dumps(document))
        (cell,) = estimate(tmp_path, "asks").cells
    assert cell.cost.note.startswith("what 3 attempts of 1 earlier run cost is not known, and ")
