"""Admission against its reference model, on random workloads."""

from __future__ import annotations

import ast
from pathlib import Path
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.engine.admission import Admission, BudgetLimits, Limits, Start
from tests.engine.admission_replay import Replay, Workload, workloads


@settings(max_examples=250, deadline=None)
@given(workloads())
def test_admission_decides_as_its_model_on_any_workload(workload: Workload) -> None:
    Replay(workload).run()


def test_the_model_shares_no_code_with_what_it_judges() -> None:
    tree = ast.parse(Path(__file__).with_name("admission_model.py").read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert {getattr(node, "module", None) for node in imports} == {
        "__future__",
        "dataclasses",
        "fractions",
    }


LONGEST_S = 4
"""The longest of the executions below."""


@settings(deadline=None)
@given(seed=st.integers(0, 10_000), large_usd=st.integers(1, 9), behind=st.integers(1, 4))
def test_a_large_claim_starts_in_bounded_time_whatever_comes_behind_it(
    seed: int, large_usd: int, behind: int
) -> None:
    """All that was in flight ends, then the last who passed on the slot: two lengths at most."""
    random = Random(seed)
    queue = Admission(Limits(50, {"docker": 1}), budget=BudgetLimits(usd=9))
    queue.open_request(
        0,
        provider="docker",
        opens_environment=True,
        overlap=True,
        k=1,
        budget=BudgetLimits(reserve_usd=large_usd),
    )
    for number in range(1, behind + 1):
        queue.open_request(
            number,
            provider=random.choice(("docker", "modal")),
            opens_environment=True,
            overlap=True,
            k=1,
            budget=BudgetLimits(reserve_usd=random.randint(1, 5)),
            spends=random.random() < 0.8 or number == 1,
        )
        queue.add_tasks(number, 10_000, 0.0)
    ends: list[tuple[int, Start]] = []
    asked_at = random.randint(0, 6)
    for now in range(asked_at + 2 * LONGEST_S + 1):
        if now == asked_at:
            queue.add_tasks(0, 1, now)
        for end, start in [entry for entry in ends if entry[0] <= now]:
            ends.remove((end, start))
            queue.finish(start, now, spent_usd=0.0)
        while (start := queue.start_next(now)) is not None:
            if start.request == 0:
                return
            ends.append((now + random.randint(1, LONGEST_S), start))
    raise AssertionError(f"asked for at {asked_at}, it has not started at {now}")
