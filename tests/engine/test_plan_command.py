"""Planning of `command`, and of what one attempt may spend."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from steelyard.engine.plan_values import attempt_tokens, attempt_usd
from tests.engine.launching import request
from tests.engine.test_plan import planned, refused

MODEL = {"id": "m", "base_url": "http://127.0.0.1:1/v1"}


def command(**params: Any) -> dict[str, Any]:
    return {"id": "command", "run": ["agent"], **params}


def test_an_agent_of_ones_own_gets_a_sandbox_unless_another_place_is_named(tmp_path: Path) -> None:
    auto = planned(tmp_path, request(harness=command(), environment={"id": "auto"}))
    assert auto.requests[0].spec.environment.id == "sandbox"
    named = planned(tmp_path, request(harness=command()))
    assert named.requests[0].spec.environment.id == "host_process"


def test_it_plans_with_a_model_and_without(tmp_path: Path) -> None:
    assert planned(tmp_path, request(harness=command())).requests[0].spec.model is None
    spec = planned(tmp_path, request(harness=command(), model=MODEL)).requests[0].spec
    assert spec.model is not None
    assert spec.model["id"] == "m"
    assert "calls a model" in refused(tmp_path, request(harness={"id": "chat"}))
    assert "calls no model" in refused(tmp_path, request(harness={"id": "nop"}, model=MODEL))


def test_a_mistake_in_its_settings_has_its_place(tmp_path: Path) -> None:
    said = refused(tmp_path, request(harness=command(script="x", answer={"fil": "a"})))
    assert "requests[0].harness" in said
    assert "answer.fil" in said
    assert "no such" in refused(tmp_path, request(harness=command(files="no such.py")))


def test_of_two_bounds_for_an_attempt_the_lower_one_holds(tmp_path: Path) -> None:
    def bounds(whole: dict[str, Any], own: dict[str, Any]) -> tuple[float | None, int | None]:
        plan = planned(tmp_path, request(budget=own), budget=whole)
        spec = plan.requests[0].spec
        assert spec.attempt_usd == attempt_usd(plan.orchestration, plan.requests[0].request)
        assert spec.attempt_tokens == attempt_tokens(plan.orchestration, plan.requests[0].request)
        return spec.attempt_usd, spec.attempt_tokens

    assert bounds({}, {}) == (None, None)
    assert bounds({"attempt_usd": 2}, {}) == (2, None)
    assert bounds({"attempt_usd": 2}, {"attempt_usd": 0.5, "attempt_tokens": 9}) == (0.5, 9)
    assert bounds({"attempt_usd": 0, "attempt_tokens": 5}, {"attempt_usd": 1}) == (0, 5)


@pytest.mark.parametrize("harness", [command(), {"id": "chat"}], ids=["command", "chat"])
def test_a_bound_in_dollars_needs_a_price(harness: dict[str, Any], tmp_path: Path) -> None:
    one = request(harness=harness, model=MODEL, budget={"attempt_usd": 1})
    assert "the price of 'm' is not known" in refused(tmp_path, one)
    prices = {"m": {"input_per_mtok": 1, "output_per_mtok": 1}}
    assert planned(tmp_path, one, prices=prices).requests
    assert planned(tmp_path, one, runtime={"allow_unpriced": True}).requests


def test_a_changed_agent_is_another_agent_and_a_moved_one_is_not(tmp_path: Path) -> None:
    def identity(folder: Path, text: str) -> str:
        folder.mkdir(exist_ok=True)
        (folder / "agent.py").write_text(text)
        plan = planned(folder, request(harness=command(files="agent.py"))).requests[0]
        identities = plan.document()["identities"]
        assert str(folder) not in json.dumps(identities)
        return plan.generation_base.hex()

    first = identity(tmp_path / "one", "print(1)")
    assert identity(tmp_path / "two", "print(1)") == first
    assert identity(tmp_path / "two", "print(2)") != first
