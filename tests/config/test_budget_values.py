"""What may stand in a budget and in prices: numbers of at least 0, and nothing that is none."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import steelyard as sy
from steelyard.config.errors import BadInput
from steelyard.config.resolve import resolve_orchestration
from steelyard.config.schema.orchestration import Orchestration

DOLLARS = ("usd", "attempt_usd", "reserve_usd")
TOKENS = ("tokens", "attempt_tokens")
NOT_AMOUNTS = ("-1", "-0.5", ".nan", ".inf", "-.inf", "1e400", "'5'", "five", "true", "[]", "{}")
REQUEST = "{name: r, benchmark: {id: x}, harness: {id: nop}, model: {id: none}"


def resolved(folder: Path, *, top: str = "", request: str = "") -> Orchestration:
    path = folder / "o.yaml"
    path.write_text(f"{top}\nrequests:\n  - {REQUEST}{request}}}\n")
    return resolve_orchestration(path, environ={}, cwd=folder).orchestration


@pytest.mark.parametrize("value", NOT_AMOUNTS)
@pytest.mark.parametrize("field", DOLLARS + TOKENS)
def test_what_is_no_amount_is_refused_at_its_place(tmp_path: Path, field: str, value: str) -> None:
    with pytest.raises(BadInput) as caught:
        resolved(tmp_path, top=f"budget: {{{field}: {value}}}")
    assert f"o.yaml:1:{12 + len(field)} budget.{field}" in str(caught.value)
    assert "expected" in str(caught.value)
    with pytest.raises(BadInput) as caught:
        resolved(tmp_path, request=f", budget: {{{field}: {value}}}")
    assert f"requests[0].budget.{field}" in str(caught.value)


@pytest.mark.parametrize("value", ["1.5", "1e3", "-0.0"])
@pytest.mark.parametrize("field", TOKENS)
def test_tokens_are_whole(tmp_path: Path, field: str, value: str) -> None:
    with pytest.raises(BadInput, match="expected a whole number"):
        resolved(tmp_path, top=f"budget: {{{field}: {value}}}")


@pytest.mark.parametrize("field", DOLLARS + TOKENS)
def test_zero_and_nothing_are_two_things(tmp_path: Path, field: str) -> None:
    assert getattr(resolved(tmp_path, top=f"budget: {{{field}: 0}}").budget, field) == 0
    assert getattr(resolved(tmp_path, top=f"budget: {{{field}: null}}").budget, field) is None
    assert getattr(resolved(tmp_path, top="budget: {}").budget, field) is None


@pytest.mark.parametrize("value", ["1e30", "5e-10", "99999999999999999999999999"])
def test_amounts_of_any_size_are_counted(tmp_path: Path, value: str) -> None:
    from steelyard.engine.budget import nano_usd

    usd = resolved(tmp_path, top=f"budget: {{usd: {value}}}").budget.usd
    assert usd == float(value)
    assert nano_usd(usd) >= 0


@pytest.mark.parametrize("value", ["-1", ".nan", ".inf", "'2'", "null"])
@pytest.mark.parametrize("field", ["input_per_mtok", "output_per_mtok"])
def test_what_is_no_price_is_refused(tmp_path: Path, field: str, value: str) -> None:
    prices = {"input_per_mtok": "1", "output_per_mtok": "1", field: value}
    written = ", ".join(f"{name}: {price}" for name, price in prices.items())
    with pytest.raises(BadInput, match=f"prices.m.{field}"):
        resolved(tmp_path, top=f"prices: {{m: {{{written}}}}}")


@pytest.mark.parametrize(
    "given",
    [
        {"budget_usd": math.nan},
        {"budget_usd": math.inf},
        {"budget_usd": -1},
        {"budget_usd": "5"},
        {"budget_tokens": 1.5},
        {"budget_tokens": -1},
        {"budget_tokens": True},
        {"budget_tokens": math.nan},
    ],
)
def test_python_refuses_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, Any]
) -> None:
    monkeypatch.chdir(tmp_path)
    (name,) = given
    with pytest.raises(BadInput, match=name.partition("_")[2]):
        sy.run("humaneval", "nop", use_config_files=False, **given)
    assert list(tmp_path.iterdir()) == []
