"""What a call costs: the user's prices, the offline table, and nothing made up."""

from __future__ import annotations

import subprocess
import sys

import pytest

from steelyard.models.prices import (
    UNPRICED,
    DeferredPricing,
    Rates,
    explicit_rates,
    is_priced,
    price_table_version,
    pricing_for,
    table_pricing,
)
from steelyard.models.protocols.form import TokenCounts

OPENAI = "https://api.openai.com/v1"
ANTHROPIC = "https://api.anthropic.com"
COUNTS = TokenCounts(1_000_000, 100_000, 400_000, 0, 0)


def test_cached_tokens_cost_their_own_rate() -> None:
    rates = explicit_rates({"input_per_mtok": 2, "output_per_mtok": 10, "cached_per_mtok": 0.5})
    assert rates.cost_usd(COUNTS) == pytest.approx(0.6 * 2 + 0.4 * 0.5 + 0.1 * 10)


def test_cached_tokens_cost_as_input_where_nothing_is_said() -> None:
    rates = explicit_rates({"input_per_mtok": 2, "output_per_mtok": 10, "cached_per_mtok": None})
    assert rates.cost_usd(COUNTS) == pytest.approx(2 + 1)


def test_the_users_price_wins_over_the_table() -> None:
    prices = {"gpt-5": {"input_per_mtok": 1, "output_per_mtok": 1}}
    found = pricing_for("gpt-5", OPENAI, is_local=False, prices=prices)
    assert found == Rates(1, 1, 1, 1)


@pytest.mark.parametrize(
    ("model", "url"), [("gpt-5", OPENAI), ("claude-sonnet-4-5", ANTHROPIC), ("gpt-4o", OPENAI)]
)
def test_a_known_model_costs_what_the_table_says(model: str, url: str) -> None:
    from genai_prices import Usage, calc_price

    usage = Usage(input_tokens=10_000, output_tokens=1_000, cache_read_tokens=4_000)
    expected = float(calc_price(usage, model, provider_api_url=url).total_price)
    found = table_pricing(model, url)
    assert found.cost_usd(TokenCounts(10_000, 1_000, 4_000)) == pytest.approx(expected)


def test_tiers_are_kept_for_large_calls() -> None:
    from genai_prices import Usage, calc_price

    usage = Usage(input_tokens=500_000, output_tokens=1_000)
    expected = float(calc_price(usage, "claude-sonnet-4-5", provider_api_url=ANTHROPIC).total_price)
    found = table_pricing("claude-sonnet-4-5", ANTHROPIC)
    assert found.cost_usd(TokenCounts(500_000, 1_000)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("model", "url"),
    [("no-such-model", OPENAI), ("gpt-5", "https://proxy.example/v1"), ("", OPENAI)],
)
def test_an_unknown_model_or_provider_has_no_price(model: str, url: str) -> None:
    assert table_pricing(model, url) is UNPRICED
    assert not is_priced(model, url, {})


def test_a_deferred_price_is_there_when_it_is_asked_for() -> None:
    deferred = DeferredPricing(lambda: Rates(1, 0, 1, 1))
    assert deferred.cost_usd(TokenCounts(1_000_000)) == 1


def test_the_tables_version_is_known() -> None:
    name, version = price_table_version().split()
    assert name == "genai-prices"
    assert version[0].isdigit()


@pytest.mark.integration
def test_a_local_endpoint_loads_no_price_table() -> None:
    code = (
        "import sys\n"
        "from steelyard.components.clock import SystemClock\n"
        "from steelyard.config.secrets import SecretStore\n"
        "from steelyard.models.client import make_endpoint\n"
        "make_endpoint({'id': 'm', 'base_url': 'http://127.0.0.1:1/v1'}, SecretStore({}),"
        " clock=SystemClock(), seed=0)\n"
        "print([m for m in ('genai_prices', 'httpcore2', 'openai') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"
