"""What a run consumed, in words: one rule for money wherever it is shown. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from steelyard.components.values import Usage
from steelyard.results.figures import usd
from steelyard.results.records import AttemptRecord

_JSON_DIGITS: Final = 12
"""Of dollars in files: sums of floats leave noise behind them."""
_BUDGET_WORDS: Final = "what had started ran to its end"


def dollars(amount: float | None, known: float = 0.0) -> str:
    """Write an amount of money: `$0.0013`, `$0`, `at least $0.0013`, `unknown`.

    Args:
        amount: in US dollars; None where a part of it has no known price.
        known: of an amount that is None, the part that is known.
    """
    if amount is None:
        return f"at least ${usd(known)}" if known else "unknown"
    return f"${usd(amount)}" if amount else "$0"


def without_noise(amount: float | None) -> float | None:
    """Give an amount for a file, without what adding floats left: 0.0013, not 0.00129999…8."""
    return None if amount is None else round(amount, _JSON_DIGITS)


@dataclass(frozen=True, slots=True)
class Spending:
    """What a run, or a launch of several, spent itself; reused work was paid before."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0
    """None where a part has no known price."""
    known_usd: float = 0.0

    @property
    def tokens(self) -> int:
        """As a budget counts them."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Spending) -> Spending:
        is_known = self.cost_usd is not None and other.cost_usd is not None
        return Spending(
            self.requests + other.requests,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            (self.cost_usd or 0.0) + (other.cost_usd or 0.0) if is_known else None,
            self.known_usd + other.known_usd,
        )

    def as_json(self) -> dict[str, Any]:
        """Give the form of `metrics.json`."""
        return {
            "requests": self.requests,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cost_usd": without_noise(self.cost_usd),
            "known_cost_usd": without_noise(self.known_usd),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Spending:
        """Read the form of `metrics.json`."""
        return cls(
            data["requests"],
            data["input_tokens"],
            data["output_tokens"],
            data["cost_usd"],
            data["known_cost_usd"] or 0.0,
        )

    def text(self) -> str:
        """Say it in a line."""
        calls = f"{self.requests:,} model request{'s' * (self.requests != 1)}"
        if not self.requests and self.cost_usd == 0:
            return "no model requests"
        tokens = f"{self.input_tokens:,} input and {self.output_tokens:,} output tokens"
        return f"{calls}, {tokens}; cost {dollars(self.cost_usd, self.known_usd)}"


def spending(metrics: Iterable[Mapping[str, Any] | None]) -> Spending:
    """Add up what runs spent, from what their `metrics.json` hold; None of them adds nothing."""
    total = Spending()
    for each in metrics:
        if each is not None and "spent" in each:
            total += Spending.from_json(each["spent"])
        elif each is not None and "usage" in each:
            total += _own(each)
    return replace(
        total,
        cost_usd=without_noise(total.cost_usd),
        known_usd=without_noise(total.known_usd) or 0.0,
    )


def paid_before(record: AttemptRecord) -> Usage:
    """Give what an earlier run paid of a record that has `reused_from`; mostly all of it."""
    reused = record.reused_from or {}
    try:
        return Usage.from_json(reused["usage"])
    except (KeyError, TypeError, ValueError):  # taken whole, or of an earlier version
        return replace(record.usage, cost_usd=reused.get("cost_usd", record.usage.cost_usd))


def spent_beyond(usage: Usage, paid: Usage) -> Spending:
    """Give what was consumed beyond what had been paid; what is equal is nothing, known or not."""
    if usage == paid:
        return NO_SPENDING
    is_known = usage.cost_usd is not None and paid.cost_usd is not None
    cost = (usage.cost_usd or 0.0) - (paid.cost_usd or 0.0) if is_known else None
    return Spending(
        usage.requests - paid.requests,
        usage.input_tokens - paid.input_tokens,
        usage.output_tokens - paid.output_tokens,
        cost,
        cost or 0.0,
    )


def _own(metrics: Mapping[str, Any]) -> Spending:
    """Read what a version wrote that did not keep what the run itself had spent."""
    usage, reused = metrics["usage"], metrics["reused"]["usage"]
    calls, tokens_in, tokens_out = (
        int(usage[key]) - int(reused[key]) for key in ("requests", "input_tokens", "output_tokens")
    )
    old = reused["cost_usd"]
    known = 0.0 if old is None else max(0.0, usage["known_cost_usd"] - old)
    cost = None if usage["cost_usd"] is None or old is None else usage["cost_usd"] - old
    return Spending(calls, tokens_in, tokens_out, without_noise(cost), without_noise(known) or 0.0)


NO_SPENDING: Final = Spending()


def budget_text(spent: Spending, limit_usd: float | None, limit_tokens: int | None) -> str | None:
    """Say what was spent of a budget's limits, and whether it is more; None without a limit."""
    parts = []
    is_over = False
    if limit_usd is not None:
        cost = dollars(spent.cost_usd, spent.known_usd)
        parts.append(f"{cost} of ${usd(limit_usd, 2)}")
        is_over |= spent.known_usd > limit_usd
    if limit_tokens is not None:
        parts.append(f"{spent.tokens:,} of {limit_tokens:,} tokens")
        is_over |= spent.tokens > limit_tokens
    if not parts:
        return None
    return f"{' and '.join(parts)} spent{f'; more than the limit, since {_BUDGET_WORDS}' * is_over}"
