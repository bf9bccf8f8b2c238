"""The six policies: worked examples, replay, and an independent model of each."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from math import exp
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from steelyard.fix.policies import (
    Decision,
    Eligible,
    EmptyPool,
    NotEligible,
    NothingEligible,
    Policy,
    Terms,
    decide,
    decision_document,
    decision_from,
    replayed,
    softmax_weights,
)
from steelyard.fix.verify.chance import shuffled, u

TERMS = Terms("r", {"latency": "min"}, {})
LATENCY = {"c1": 10.0, "c2": 8.0, "c3": 12.0, "c4": 8.0}
N = 20_000


def eligible(
    values: dict[str, float] | None = None,
    *,
    front: str = "c2 c4",
    last: dict[str, int] | None = None,
    tasks: dict[str, dict[str, float]] | None = None,
) -> list[Eligible]:
    return [
        Eligible(
            name,
            {"latency": value},
            (tasks or {}).get(name, {}),
            name in front.split(),
            (last or {}).get(name),
        )
        for name, value in (values or LATENCY).items()
    ]


def run(policy: Policy, count: int, terms: Terms = TERMS, **more: Any) -> list[str]:
    last: dict[str, int] = {}
    parents = []
    for number in range(count):
        found = decide(policy, eligible(last=last, **more), terms, number)
        last[found.parent] = number
        parents.append(found.parent)
    return parents


# -- worked examples ---------------------------------------------------------------------------


def test_numbers_without_state() -> None:
    assert u(0, "r", 0, "explore") == 0.03963097840870089
    assert u(0, "r", 1, "explore") == 0.7788188225185843
    assert u(0, "r", 0, "pick") == 0.08033509214758272


def test_argmax_takes_the_best_the_earliest_of_equals() -> None:
    assert run(Policy("argmax", "latency"), 3) == ["c2", "c2", "c2"]
    up = Terms("r", {"latency": "max"}, {})
    assert run(Policy("argmax", "latency"), 2, up) == ["c3", "c3"]


def test_top_k_cycles_through_the_best() -> None:
    assert run(Policy("top_k", "latency"), 7) == ["c2", "c4", "c1", "c2", "c4", "c1", "c2"]
    assert run(Policy("top_k", "latency", k=9), 5) == ["c2", "c4", "c1", "c3", "c2"]


def test_top_k_forgets_what_was_expanded_under_an_earlier_policy() -> None:
    found = eligible(last={"c2": 4, "c4": 1, "c1": 0})
    earlier = decide(Policy("top_k", "latency"), found, TERMS, 5)
    assert earlier.parent == "c1"
    epoch = Terms("r", {"latency": "min"}, {}, epoch_start=5)
    assert decide(Policy("top_k", "latency"), found, epoch, 5).parent == "c2"


def test_softmax_samples_by_value() -> None:
    weights = softmax_weights(Policy("softmax", "latency"), eligible(), TERMS)
    assert weights == pytest.approx((0.062839935, 0.464327802, 0.008504460, 0.464327802), abs=5e-10)
    policy = Policy("softmax", "latency", temperature=2)
    assert run(policy, 6) == ["c1", "c4", "c2", "c2", "c2", "c1"]


def test_softmax_takes_any_temperature() -> None:
    far = {"a": 1e300, "b": -1e300}
    assert run(Policy("softmax", "latency", temperature=1e-300), 3, values=far) == ["b"] * 3
    assert set(run(Policy("softmax", "latency", temperature=1e300), 50)) == set(LATENCY)


def test_epsilon_greedy_explores_now_and_then() -> None:
    policy = Policy("epsilon_greedy", "latency", epsilon=0.5)
    assert run(policy, 6) == ["c1", "c2", "c3", "c2", "c2", "c1"]
    assert run(Policy("epsilon_greedy", "latency", epsilon=0), 9) == ["c2"] * 9
    assert set(run(Policy("epsilon_greedy", "latency", epsilon=1), 60)) == set(LATENCY)


def test_pareto_takes_the_least_recently_expanded_of_the_frontier() -> None:
    assert run(Policy(), 5) == ["c2", "c4", "c2", "c4", "c2"]
    assert Policy().strategy == "pareto"


def test_pareto_per_task_rotates_through_the_winners() -> None:
    tasks = {
        "c1": {"write": 0.9, "read": 5.0},
        "c2": {"write": 0.1, "read": 4.0},
        "c3": {"write": 0.9, "read": 4.0},
        "c4": {},
    }
    terms = Terms("r", {"latency": "min"}, {"write": "max", "read": "min"})
    policy = Policy("pareto_per_task")
    assert run(policy, 6, terms, tasks=tasks) == ["c1", "c2", "c3", "c2", "c1", "c3"]
    found = decide(policy, eligible(tasks=tasks), terms, 1)
    assert found.task == "read"
    assert found.pool == ("c2", "c3")


# -- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "strategy", ["pareto", "argmax", "top_k", "epsilon_greedy", "softmax", "pareto_per_task"]
)
def test_nobody_eligible_is_an_error_of_its_own(strategy: Any) -> None:
    with pytest.raises(NothingEligible):
        decide(Policy(strategy, "latency"), [], TERMS, 0)


def test_an_empty_pool_is_an_error_of_its_own() -> None:
    with pytest.raises(EmptyPool, match="on the frontier"):
        decide(Policy(), eligible(front=""), TERMS, 0)
    with pytest.raises(EmptyPool, match="declares no task_metrics"):
        decide(Policy("pareto_per_task"), eligible(), TERMS, 0)
    terms = Terms("r", {"latency": "min"}, {"write": "max"})
    with pytest.raises(EmptyPool, match="has a value of task write"):
        decide(Policy("pareto_per_task"), eligible(), terms, 0)


def test_a_named_parent_passes_the_same_gate() -> None:
    found = decide(Policy("argmax", "latency"), eligible(), TERMS, 3, explicit="c3")
    assert found.parent == "c3"
    assert found.is_explicit
    assert found.drawn == ()
    with pytest.raises(NotEligible, match="c9 cannot be a parent"):
        decide(Policy("argmax", "latency"), eligible(), TERMS, 3, explicit="c9")
    with pytest.raises(NotEligible):
        decide(Policy(), [], TERMS, 3, explicit="c1")


# -- decisions are values ----------------------------------------------------------------------

STRATEGIES = st.sampled_from(
    ["pareto", "argmax", "top_k", "epsilon_greedy", "softmax", "pareto_per_task"]
)


@st.composite
def situations(draw: st.DrawFn) -> tuple[Policy, list[Eligible], Terms, int]:
    number = draw(st.integers(0, 30))
    rows = draw(
        st.lists(
            st.tuples(
                st.integers(0, 4),
                st.integers(0, 2),
                st.integers(0, 2),
                st.booleans(),
                st.none() | st.integers(0, 30),
            ),
            min_size=1,
            max_size=7,
        )
    )
    found = [
        Eligible(f"c{i}", {"m": float(m)}, {"b": float(b), "a": float(a)}, front, last)
        for i, (m, a, b, front, last) in enumerate(rows)
    ]
    way = draw(st.sampled_from(["min", "max"]))
    terms = Terms("run-1", {"m": way}, {"b": way, "a": "max"}, draw(st.integers(0, 30)))
    policy = Policy(
        draw(STRATEGIES),
        "m",
        draw(st.integers(1, 9)),
        draw(st.floats(0, 1)),
        draw(st.floats(0.1, 10)),
        draw(st.integers(-5, 5)),
    )
    return policy, found, terms, number


def model(policy: Policy, found: list[Eligible], terms: Terms, number: int) -> str | None:
    """The table of the contract, read off slowly; None where it has no answer."""

    def draw(label: str) -> float:
        text = f"{policy.seed}\x1f{terms.run}\x1f{number}\x1f{label}"
        bits = hashlib.sha256(text.encode()).hexdigest()[:16]
        return (int(bits, 16) // 2**11) / 2**53

    def s(i: int) -> float:
        return found[i].values["m"] * (-1 if terms.directions["m"] == "min" else 1)

    def when(i: int, since: int = -1) -> float:
        last = found[i].last
        return float("-inf") if last is None or last < since else last

    everyone = list(range(len(found)))
    best = sorted(everyone, key=lambda i: (-s(i), i))
    if policy.strategy == "pareto":
        pool = sorted((when(i), i) for i in everyone if found[i].is_on_frontier)
        return found[pool[0][1]].candidate if pool else None
    if policy.strategy == "top_k":
        kept = best[: min(policy.k, len(found))]
        turns = sorted((when(i, terms.epoch_start), rank) for rank, i in enumerate(kept))
        return found[kept[turns[0][1]]].candidate
    if policy.strategy == "epsilon_greedy" and draw("explore") < policy.epsilon:
        return found[int(draw("pick") * len(found) // 1)].candidate
    if policy.strategy == "softmax":
        top = max(map(s, everyone))
        weights = [exp((s(i) - top) / policy.temperature) for i in everyone]
        target, reached = draw("pick") * sum(weights), 0.0
        for i in everyone:
            reached += weights[i]
            if target < reached:
                return found[i].candidate
        return found[-1].candidate
    if policy.strategy == "pareto_per_task":
        task = list(terms.task_directions)[number % len(terms.task_directions)]
        way = -1 if terms.task_directions[task] == "min" else 1
        top = max(way * one.tasks[task] for one in found)
        pool = sorted((when(i), i) for i in everyone if way * found[i].tasks[task] == top)
        return found[pool[0][1]].candidate
    return found[best[0]].candidate


@settings(deadline=None)
@given(situations())
def test_every_policy_does_what_the_table_says(
    situation: tuple[Policy, list[Eligible], Terms, int],
) -> None:
    expected = model(*situation)
    if expected is None:
        with pytest.raises(EmptyPool):
            decide(*situation)
    else:
        assert decide(*situation).parent == expected


@settings(deadline=None)
@given(situations(), st.booleans())
def test_a_decision_that_was_written_is_made_again_the_same(
    situation: tuple[Policy, list[Eligible], Terms, int], named: bool
) -> None:
    policy, found, _, number = situation
    try:
        made = decide(*situation, explicit=found[-1].candidate if named else None)
    except EmptyPool:
        return
    written = json.dumps(decision_document(made), sort_keys=True)
    back = decision_from(json.loads(written))
    assert back == made
    assert replayed(back) == made
    assert made.parent in made.pool
    assert policy.strategy == back.policy.strategy
    assert back.number == number


def test_a_decision_of_another_format_is_refused() -> None:
    with pytest.raises(ValueError, match="fix-decision/9"):
        decision_from({"schema": "fix-decision/9"})


# -- chance ------------------------------------------------------------------------------------


def often(policy: Policy) -> Counter[str]:
    found = eligible()
    return Counter(decide(policy, found, TERMS, number).parent for number in range(N))


def chi2_p(seen: Counter[str], expected: dict[str, float]) -> float:
    return float(
        chisquare([seen[name] for name in expected], [N * p for p in expected.values()]).pvalue
    )


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_softmax_is_as_often_as_its_weights_say(seed: int) -> None:
    policy = Policy("softmax", "latency", temperature=3, seed=seed)
    weights = softmax_weights(policy, eligible(), TERMS)
    assert chi2_p(often(policy), dict(zip(LATENCY, weights, strict=True))) > 1e-4


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_epsilon_greedy_explores_as_often_as_it_says(seed: int) -> None:
    policy = Policy("epsilon_greedy", "latency", epsilon=0.4, seed=seed)
    assert chi2_p(often(policy), {"c1": 0.1, "c2": 0.7, "c3": 0.1, "c4": 0.1}) > 1e-4


def test_the_chance_test_finds_a_policy_that_leaves_the_best_out() -> None:
    seen = often(Policy("epsilon_greedy", "latency", epsilon=0.4))
    assert chi2_p(seen, {"c1": 0.4 / 3, "c2": 0.6, "c3": 0.4 / 3, "c4": 0.4 / 3}) < 1e-4


def test_every_order_of_a_block_is_as_likely() -> None:
    names = ("a", "b", "c")
    seen = Counter(
        shuffled(names, seed=0, run="r", decision=number, label="block") for number in range(N)
    )
    assert len(seen) == 6
    assert float(chisquare(list(seen.values())).pvalue) > 1e-4


def test_decisions_differ_by_seed_run_and_number() -> None:
    policy = Policy("epsilon_greedy", "latency", epsilon=1)

    def parents(seed: int, name: str) -> list[str]:
        terms = Terms(name, {"latency": "min"}, {})
        other = Policy("epsilon_greedy", "latency", epsilon=1, seed=seed)
        return [decide(other, eligible(), terms, number).parent for number in range(20)]

    assert parents(0, "r") == [decide(policy, eligible(), TERMS, n).parent for n in range(20)]
    assert len({tuple(parents(seed, name)) for seed in (0, 1) for name in ("r", "s")}) == 4
    assert isinstance(decide(policy, eligible(), TERMS, 0), Decision)
