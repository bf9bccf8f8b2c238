"""What an attempt may spend: each bound on its own, settled when calls end."""

from __future__ import annotations

import pytest

from steelyard.components.issues import AttemptFault, IssueCode
from steelyard.components.values import Usage
from steelyard.models.allowance import (
    MOST_ASSUMED_TOKENS,
    UNSEEN_TOKENS,
    Allowance,
    assumed_counts,
)
from steelyard.models.protocols.form import TokenCounts


def test_without_bounds_everything_is_allowed() -> None:
    allowance = Allowance()
    allowance.spend(Usage(10**9, 10**9, cost_usd=1e9))
    assert allowance.overrun() is None
    allowance.check()


@pytest.mark.parametrize(
    ("allowance", "name"),
    [(Allowance(usd=0.5), "attempt_usd"), (Allowance(tokens=30), "attempt_tokens")],
)
def test_a_bound_that_is_reached_refuses(allowance: Allowance, name: str) -> None:
    allowance.spend(Usage(10, 19, cost_usd=0.49))
    allowance.check()
    allowance.spend(Usage(1, 0, cost_usd=0.01))
    with pytest.raises(AttemptFault, match=name) as caught:
        allowance.check()
    assert caught.value.code is IssueCode.ATTEMPT_BUDGET
    assert not caught.value.request_fault


def test_nothing_granted_is_nothing_allowed() -> None:
    assert Allowance(usd=0).overrun() is not None
    assert Allowance(tokens=0).overrun() is not None


def test_unknown_costs_count_as_what_is_known_of_them() -> None:
    allowance = Allowance(usd=1.0, tokens=100)
    allowance.spend(Usage(40, 20, requests=1, cost_usd=None))
    assert allowance.overrun() is None
    allowance.spend(Usage(40, 0, cost_usd=0.1))
    assert "attempt_tokens" in (allowance.overrun() or "")


def test_a_call_of_which_nothing_is_known_counts_by_its_size() -> None:
    unknown = Usage(requests=1, cost_usd=None)
    allowance = Allowance(usd=1.0, tokens=100)
    allowance.spend(unknown, Usage(40, 2, cost_usd=0.5))
    assert (allowance.spent_tokens, allowance.spent_usd) == (42, 0.5)
    allowance.spend(Usage(1, 1, cost_usd=0.1), Usage(40, 2, cost_usd=0.5))
    assert (allowance.spent_tokens, allowance.spent_usd) == (44, 0.6)


def test_what_a_call_may_have_consumed_is_told_by_its_size() -> None:
    assert assumed_counts(401, 9) == TokenCounts(101, 3)
    assert assumed_counts(0, None) == TokenCounts(0, UNSEEN_TOKENS)
    assert assumed_counts(0, None, 17) == TokenCounts(0, 17)
    assert assumed_counts(0, None, 10**30) == TokenCounts(0, MOST_ASSUMED_TOKENS)
    assert assumed_counts(0, 8, 17) == TokenCounts(0, 2)
