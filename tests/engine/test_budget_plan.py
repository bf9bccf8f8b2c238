"""What planning says of budgets: what has no price cannot be held by one in dollars."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from steelyard.components.clock import SystemClock
from steelyard.config.errors import BadInput
from steelyard.engine.plan import Plan, make_plan
from tests.engine.launching import request, resolved

HERE = "http://127.0.0.1:9/v1"
PACK = """\
schema: pack/v1
slug: judged
version: 1
prompt: "{{ q }}"
cases: [{id: a, q: "one?"}]
reference: right
scoring:
  validators: [{type: judge, assertion: It is right.}]
"""
PRICE = {"input_per_mtok": 1, "output_per_mtok": 2}
BOUNDS = [{"usd": 5}, {"attempt_usd": 5}]


def planned(tmp_path: Path, one: dict[str, Any], **top: Any) -> Plan:
    return make_plan(resolved(tmp_path, one, **top), clock=SystemClock())


def refused(tmp_path: Path, one: dict[str, Any], **top: Any) -> str:
    with pytest.raises(BadInput) as caught:
        planned(tmp_path, one, **top)
    return str(caught.value)


def calling(**model: Any) -> dict[str, Any]:
    return {**request(), "harness": {"id": "chat"}, "model": {"id": "unheard-of", **model}}


def judged(tmp_path: Path) -> dict[str, Any]:
    folder = tmp_path / "pack"
    folder.mkdir()
    (folder / "pack.yaml").write_text(PACK)
    judge = {"model": {"id": "j", "base_url": HERE}}
    return request(benchmark={"id": str(folder), "judge": judge}, harness={"id": "oracle"})


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("whose", ["whole", "request"])
def test_an_agents_model_and_a_judges_need_a_price_under_any_bound_in_dollars(
    tmp_path: Path, bound: dict[str, Any], whose: str
) -> None:
    of_request, of_whole = ({}, bound) if whose == "whole" else (bound, {})
    for one, name in ((calling(base_url=HERE), "unheard-of"), (judged(tmp_path), "j")):
        one["budget"] = of_request
        assert f"{name}' is not known, and the budget is in" in refused(
            tmp_path, one, budget=of_whole
        )
        planned(tmp_path, one, budget=of_whole, prices={name: PRICE})
        planned(tmp_path, one, budget=of_whole, runtime={"allow_unpriced": True})


def test_a_bound_in_tokens_needs_no_price(tmp_path: Path) -> None:
    one = calling(base_url=HERE)
    one["budget"] = {"tokens": 5, "attempt_tokens": 5, "reserve_usd": 1}
    planned(tmp_path, one)


def test_a_price_is_looked_up_where_the_run_will_call(tmp_path: Path) -> None:
    """A model without an address is called at its protocol's own, and is priced there."""
    known = calling(id="gpt-4o-mini")
    planned(tmp_path, known, budget={"usd": 1})
    known["model"]["base_url"] = HERE
    assert "gpt-4o-mini' is not known" in refused(tmp_path, known, budget={"usd": 1})


def test_a_price_for_another_model_says_nothing(tmp_path: Path) -> None:
    one = calling(base_url=HERE)
    assert refused(tmp_path, one, budget={"usd": 1}, prices={"unheard": PRICE})


def test_bounds_of_attempts_are_the_lower_of_both_and_stand_in_the_runs_document(
    tmp_path: Path,
) -> None:
    one = request(budget={"attempt_usd": 3, "attempt_tokens": 70})
    plan = planned(tmp_path, one, budget={"attempt_usd": 2, "attempt_tokens": 90})
    (made,) = plan.requests
    assert (made.spec.attempt_usd, made.spec.attempt_tokens) == (2, 70)
    written = made.document()["request"]["budget"]
    assert (written["attempt_usd"], written["attempt_tokens"]) == (2, 70)


def test_a_request_whose_judge_alone_calls_a_model_spends(tmp_path: Path) -> None:
    assert planned(tmp_path, judged(tmp_path)).requests[0].spends
    assert not planned(tmp_path, request()).requests[0].spends
