"""What a call costs: the user's own prices first, then the offline table of genai-prices.

The table is looked up once a model; a call costs a few multiplications. Nothing is fetched.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Protocol

from steelyard.models.protocols.form import TokenCounts

MILLION: Final = 1_000_000


class Pricing(Protocol):
    """Prices the calls of one model."""

    def cost_usd(self, counts: TokenCounts) -> float | None:
        """Give the cost of a call in US dollars, None where the model has no known price."""
        ...


@dataclass(frozen=True, slots=True)
class Rates:
    """US dollars a million tokens."""

    input_per_mtok: float
    output_per_mtok: float
    cached_per_mtok: float
    cache_write_per_mtok: float

    def cost_usd(self, counts: TokenCounts) -> float | None:
        """Sum tokens times rates; cached and cache-writing input apart from the rest."""
        plain = counts.input_tokens - counts.cached_tokens - counts.cache_write_tokens
        return (
            plain * self.input_per_mtok
            + counts.cached_tokens * self.cached_per_mtok
            + counts.cache_write_tokens * self.cache_write_per_mtok
            + counts.output_tokens * self.output_per_mtok
        ) / MILLION


class Unpriced:
    """A model without a known price."""

    def cost_usd(self, counts: TokenCounts) -> float | None:
        """Unknown."""
        return None


UNPRICED: Final = Unpriced()


@dataclass(frozen=True, slots=True)
class TieredRates:
    """A model whose rates depend on a call's size: priced by the table's own arithmetic."""

    model_price: Any

    def cost_usd(self, counts: TokenCounts) -> float | None:
        """Ask the table's entry."""
        from genai_prices import Usage

        usage = Usage(
            input_tokens=counts.input_tokens,
            output_tokens=counts.output_tokens,
            cache_read_tokens=counts.cached_tokens or None,
            cache_write_tokens=counts.cache_write_tokens or None,
        )
        return float(self.model_price.calc_price(usage)["total_price"])


class DeferredPricing:
    """Looks the price up in a thread, so that the loop does not stand still for the import.

    Loading the table takes about a second; the first answer of a real endpoint rarely comes
    sooner. Where it does, `cost_usd` waits.
    """

    def __init__(self, look_up: Callable[[], Pricing]) -> None:
        self._found: Pricing = UNPRICED
        self._thread: threading.Thread | None = threading.Thread(
            target=self._run, args=(look_up,), name="steelyard-prices", daemon=True
        )
        self._thread.start()

    def _run(self, look_up: Callable[[], Pricing]) -> None:
        self._found = look_up()

    def cost_usd(self, counts: TokenCounts) -> float | None:
        """Give the cost, once the table is there."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        return self._found.cost_usd(counts)


def explicit_rates(price: Mapping[str, Any]) -> Rates:
    """Make the rates of a `prices:` entry; cached input costs as input where nothing is said."""
    given = float(price["input_per_mtok"])
    cached = price.get("cached_per_mtok")
    return Rates(
        given, float(price["output_per_mtok"]), given if cached is None else float(cached), given
    )


def table_pricing(model_id: str, base_url: str) -> Pricing:
    """Look a model up in the offline table; `UNPRICED` where provider or model is unknown.

    The provider is told by the base URL: a model's name at another address says nothing of what
    that address charges.
    """
    from genai_prices import Usage, calc_price

    try:
        one = Usage(input_tokens=1, output_tokens=1)
        price = calc_price(one, model_id, provider_api_url=base_url).model_price
    except (LookupError, ValueError):
        return UNPRICED
    rates = [
        getattr(price, name, None)
        for name in ("input_mtok", "output_mtok", "cache_read_mtok", "cache_write_mtok")
    ]
    try:
        given, written, cached, cache_write = (
            None if rate is None else float(rate) for rate in rates
        )
    except TypeError:  # tiers
        return TieredRates(price)
    if given is None or written is None:
        return UNPRICED
    return Rates(
        given,
        written,
        given if cached is None else cached,
        given if cache_write is None else cache_write,
    )


def pricing_for(
    model_id: str, base_url: str, *, is_local: bool, prices: Mapping[str, Mapping[str, Any]]
) -> Pricing:
    """Choose how a model's calls are priced.

    Args:
        model_id: the id that is sent.
        base_url: where it is sent.
        is_local: a loopback address, which no table knows; the table is then not loaded.
        prices: the user's `prices:`, by model id.
    """
    if model_id in prices:
        return explicit_rates(prices[model_id])
    if is_local:
        return UNPRICED
    return DeferredPricing(lambda: table_pricing(model_id, base_url))


def is_priced(model_id: str, base_url: str, prices: Mapping[str, Mapping[str, Any]]) -> bool:
    """True where calls of the model have a known price; loads the table where it must."""
    return model_id in prices or table_pricing(model_id, base_url) is not UNPRICED


@cache
def price_table_version() -> str:
    """Give the table's name and version, for `run.json`; imports nothing of it."""
    from importlib.metadata import version

    return f"genai-prices {version('genai-prices')}"
