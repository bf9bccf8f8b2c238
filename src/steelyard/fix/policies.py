"""Which candidate the next one starts from: six policies, exactly. Pure.

A decision is a value that holds all it was made of: replayed, it gives the same parent.
Verification and the frontier are not touched by it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import exp
from types import MappingProxyType
from typing import Any, Final, Literal

from steelyard.fix.verify.chance import u
from steelyard.fix.verify.measured import Direction

Strategy = Literal["pareto", "argmax", "top_k", "epsilon_greedy", "softmax", "pareto_per_task"]
EXPLORE: Final = "explore"
PICK: Final = "pick"


class NoParent(ValueError):
    """Nobody can be expanded; no decision number is used."""


class NothingEligible(NoParent):
    """No candidate is verified, feasible, accepted, and neither invalidated nor exhausted."""

    def __init__(self) -> None:
        super().__init__(
            "no candidate can be expanded: every one is unverified, infeasible, invalidated or "
            "exhausted; measure and review one first"
        )


class EmptyPool(NoParent):
    """Candidates are eligible, and none of them is one this policy looks at."""

    def __init__(self, strategy: str, why: str) -> None:
        super().__init__(f"{strategy} finds no parent: {why}; choose another policy or a parent")
        self.strategy = strategy


class NotEligible(NoParent):
    """An explicit parent that does not pass the gate."""

    def __init__(self, parent: str, eligible: Sequence[str]) -> None:
        super().__init__(
            f"{parent} cannot be a parent: only verified, feasible candidates that are neither "
            f"invalidated nor exhausted can ({', '.join(eligible) or 'there are none'})"
        )
        self.parent = parent


@dataclass(frozen=True, slots=True)
class Policy:
    """A search policy in force."""

    strategy: Strategy = "pareto"
    objective: str | None = None
    k: int = 3
    epsilon: float = 0.1
    temperature: float = 1.0
    seed: int = 0
    revision: int = 0
    """Counts the policies of the run: a new one begins an epoch."""


@dataclass(frozen=True, slots=True)
class Eligible:
    """A candidate of E, with what a policy may look at."""

    candidate: str
    values: Mapping[str, float]
    """Medians, by metric."""
    tasks: Mapping[str, float]
    """Medians, by task; empty where the spec declares none."""
    is_on_frontier: bool
    """Of all valid verified candidates: exhausted ones dominate, too."""
    last: int | None = None
    """The decision that last expanded it; None where none has."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What of the frozen spec and the run a policy needs."""

    run: str
    """The long id."""
    directions: Mapping[str, Direction]
    """Of metrics."""
    task_directions: Mapping[str, Direction]
    """Of tasks, in the order they were declared."""
    epoch_start: int = 0
    """The first decision number under the policy in force."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Why this parent: enough to make the decision again."""

    number: int
    policy: Policy
    run: str
    epoch_start: int
    directions: Mapping[str, Direction]
    task_directions: Mapping[str, Direction]
    eligible: tuple[Eligible, ...]
    """E in the order of creation."""
    pool: tuple[str, ...]
    """Whom the policy looked at, in its order."""
    drawn: tuple[tuple[str, float], ...]
    """Label and number of each `u` that was asked."""
    task: str | None
    """`pareto_per_task`: whose winners the pool is."""
    parent: str
    is_explicit: bool
    """True where the parent was named, not chosen."""


@dataclass(frozen=True, slots=True)
class _Choice:
    parent: str
    pool: tuple[str, ...]
    drawn: tuple[tuple[str, float], ...] = ()
    task: str | None = None


def decide(
    policy: Policy,
    eligible: Sequence[Eligible],
    terms: Terms,
    number: int,
    *,
    explicit: str | None = None,
) -> Decision:
    """Choose a parent, or let a named one through the same gate.

    Args:
        policy: in force.
        eligible: E, in the order of creation.
        terms: of the run.
        number: of the decision, from 0 on; nothing uses it up but a decision.
        explicit: the parent that was named.

    Raises:
        NothingEligible: E is empty.
        EmptyPool: none of E is one this policy looks at.
        NotEligible: the named parent is not in E.
        KeyError: the policy's objective is no metric of the run.
    """
    names = [one.candidate for one in eligible]
    if explicit is not None:
        if explicit not in names:
            raise NotEligible(explicit, names)
        choice = _Choice(explicit, (explicit,))
    elif not eligible:
        raise NothingEligible
    else:
        choice = _CHOOSERS[policy.strategy](policy, eligible, terms, number)
    return Decision(
        number=number,
        policy=policy,
        run=terms.run,
        epoch_start=terms.epoch_start,
        directions=terms.directions,
        task_directions=terms.task_directions,
        eligible=tuple(eligible),
        pool=choice.pool,
        drawn=choice.drawn,
        task=choice.task,
        parent=choice.parent,
        is_explicit=explicit is not None,
    )


def replayed(decision: Decision) -> Decision:
    """Make a recorded decision again, from what it was made of alone."""
    return decide(
        decision.policy,
        decision.eligible,
        Terms(decision.run, decision.directions, decision.task_directions, decision.epoch_start),
        decision.number,
        explicit=decision.parent if decision.is_explicit else None,
    )


def _pareto(policy: Policy, eligible: Sequence[Eligible], terms: Terms, number: int) -> _Choice:
    pool = [one for one in eligible if one.is_on_frontier]
    if not pool:
        raise EmptyPool(policy.strategy, "no eligible candidate is on the frontier")
    return _Choice(_least_recent(pool), _names(pool))


def _argmax(policy: Policy, eligible: Sequence[Eligible], terms: Terms, number: int) -> _Choice:
    return _Choice(_best(policy, eligible, terms), _names(eligible))


def _top_k(policy: Policy, eligible: Sequence[Eligible], terms: Terms, number: int) -> _Choice:
    worth = _worth(policy, terms)
    # A stable sort: equals keep the order of creation.
    pool = sorted(eligible, key=lambda one: -worth(one))[: policy.k]

    def turn(rank: int) -> tuple[float, int]:
        last = pool[rank].last
        is_past = last is None or last < terms.epoch_start
        return (float("-inf") if is_past or last is None else last, rank)

    return _Choice(pool[min(range(len(pool)), key=turn)].candidate, _names(pool))


def _epsilon_greedy(
    policy: Policy, eligible: Sequence[Eligible], terms: Terms, number: int
) -> _Choice:
    explore = u(policy.seed, terms.run, number, EXPLORE)
    if explore >= policy.epsilon:
        best = _best(policy, eligible, terms)
        return _Choice(best, _names(eligible), ((EXPLORE, explore),))
    pick = u(policy.seed, terms.run, number, PICK)
    chosen = eligible[int(pick * len(eligible))]
    return _Choice(chosen.candidate, _names(eligible), ((EXPLORE, explore), (PICK, pick)))


def _softmax(policy: Policy, eligible: Sequence[Eligible], terms: Terms, number: int) -> _Choice:
    weights = softmax_weights(policy, eligible, terms)
    pick = u(policy.seed, terms.run, number, PICK)
    sums = list(accumulate(weights))
    # The last sum may fall short of 1 by a rounding: the last candidate takes what is left.
    index = min(bisect_right(sums, pick * sums[-1]), len(eligible) - 1)
    return _Choice(eligible[index].candidate, _names(eligible), ((PICK, pick),))


def _pareto_per_task(
    policy: Policy, eligible: Sequence[Eligible], terms: Terms, number: int
) -> _Choice:
    tasks = list(terms.task_directions)
    if not tasks:
        raise EmptyPool(policy.strategy, "the spec declares no task_metrics")
    task = tasks[number % len(tasks)]
    sign = 1 if terms.task_directions[task] == "max" else -1
    able = [one for one in eligible if task in one.tasks]
    if not able:
        raise EmptyPool(policy.strategy, f"no eligible candidate has a value of task {task}")
    best = max(sign * one.tasks[task] for one in able)
    pool = [one for one in able if sign * one.tasks[task] == best]
    return _Choice(_least_recent(pool), _names(pool), task=task)


_CHOOSERS: Final[Mapping[str, Callable[[Policy, Sequence[Eligible], Terms, int], _Choice]]] = (
    MappingProxyType(
        {
            "pareto": _pareto,
            "argmax": _argmax,
            "top_k": _top_k,
            "epsilon_greedy": _epsilon_greedy,
            "softmax": _softmax,
            "pareto_per_task": _pareto_per_task,
        }
    )
)


def softmax_weights(
    policy: Policy, eligible: Sequence[Eligible], terms: Terms
) -> tuple[float, ...]:
    """Give the chance of each candidate, in the order of creation.

    exp((s - max s) / T), divided by their sum; s is the median, negated where less is better.
    """
    worth = _worth(policy, terms)
    values = [worth(one) for one in eligible]
    highest = max(values)
    weights = [exp((value - highest) / policy.temperature) for value in values]
    total = sum(weights)
    return tuple(weight / total for weight in weights)


def _worth(policy: Policy, terms: Terms) -> Callable[[Eligible], float]:
    objective = policy.objective
    if objective is None:
        raise KeyError(f"{policy.strategy} needs an objective")
    sign = 1 if terms.directions[objective] == "max" else -1
    return lambda one: sign * one.values[objective]


def _best(policy: Policy, eligible: Sequence[Eligible], terms: Terms) -> str:
    # `max` keeps the first of equals: the earliest created.
    return max(eligible, key=_worth(policy, terms)).candidate


def _least_recent(pool: Sequence[Eligible]) -> str:
    # `min` keeps the first of equals: the earliest created.
    return min(pool, key=lambda one: -1 if one.last is None else one.last).candidate


def _names(pool: Sequence[Eligible]) -> tuple[str, ...]:
    return tuple(one.candidate for one in pool)


def decision_document(decision: Decision) -> dict[str, Any]:
    """Write a decision as JSON; `decision_from` reads it back."""
    policy = decision.policy
    return {
        "schema": "fix-decision/1",
        "number": decision.number,
        "run": decision.run,
        "epoch_start": decision.epoch_start,
        "policy": {
            "strategy": policy.strategy,
            "objective": policy.objective,
            "k": policy.k,
            "epsilon": policy.epsilon,
            "temperature": policy.temperature,
            "seed": policy.seed,
            "revision": policy.revision,
        },
        "directions": dict(decision.directions),
        # Pairs, not a mapping: the order of tasks decides whose turn it is.
        "task_directions": [[task, way] for task, way in decision.task_directions.items()],
        "eligible": [
            {
                "candidate": one.candidate,
                "values": dict(one.values),
                "tasks": dict(one.tasks),
                "is_on_frontier": one.is_on_frontier,
                "last": one.last,
            }
            for one in decision.eligible
        ],
        "pool": list(decision.pool),
        "drawn": [[label, number] for label, number in decision.drawn],
        "task": decision.task,
        "parent": decision.parent,
        "is_explicit": decision.is_explicit,
    }


def decision_from(document: Mapping[str, Any]) -> Decision:
    """Read a decision back.

    Raises:
        ValueError: it is of another format.
    """
    if document.get("schema") != "fix-decision/1":
        raise ValueError(f"a decision of the format {document.get('schema')!r}")
    return Decision(
        number=document["number"],
        policy=Policy(**document["policy"]),
        run=document["run"],
        epoch_start=document["epoch_start"],
        directions=document["directions"],
        task_directions=dict(document["task_directions"]),
        eligible=tuple(Eligible(**one) for one in document["eligible"]),
        pool=tuple(document["pool"]),
        drawn=tuple((label, number) for label, number in document["drawn"]),
        task=document["task"],
        parent=document["parent"],
        is_explicit=document["is_explicit"],
    )
