"""A search policy as people write it: in a profile, or in a `policy` control."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Annotated, Final, Literal, get_args

from pydantic import ConfigDict, Field

from steelyard.config.schema.request import Strict
from steelyard.config.source import FieldPath
from steelyard.config.validation import nearest
from steelyard.fix.schema.reading import Breach, conditions
from steelyard.fix.schema.words import Count, Integer, MetricName

Strategy = Literal["pareto", "argmax", "top_k", "epsilon_greedy", "softmax", "pareto_per_task"]
SCALAR: Final = frozenset({"argmax", "top_k", "epsilon_greedy", "softmax"})
"""Strategies that look at one objective, which must be named: none is ever invented."""
OWN_FIELD: Final[Mapping[str, str]] = MappingProxyType(
    {"k": "top_k", "epsilon": "epsilon_greedy", "temperature": "softmax"}
)
"""Fields that only one strategy reads."""
FIELDS_OF_STRATEGY: Final[Mapping[str, tuple[frozenset[str], frozenset[str]]]] = MappingProxyType(
    {
        strategy: (
            frozenset({"objective"} if strategy in SCALAR else ()),
            frozenset(field for field, owner in OWN_FIELD.items() if owner == strategy),
        )
        for strategy in get_args(Strategy)
    }
)
"""By strategy: the fields it needs, those it may have besides."""


class Search(Strict):
    """How the next candidate's parent is chosen."""

    model_config = ConfigDict(
        json_schema_extra=conditions("strategy", FIELDS_OF_STRATEGY, frozenset({"seed"}))
    )
    strategy: Strategy = "pareto"
    """Who is expanded next; `pareto` takes the least recently expanded of the frontier."""
    objective: MetricName | None = None
    """The metric that `argmax`, `top_k`, `epsilon_greedy` and `softmax` look at."""
    k: Count = 3
    """`top_k`: through how many of the best to cycle."""
    epsilon: Annotated[float, Field(ge=0, le=1)] = 0.1
    """`epsilon_greedy`: how often any eligible candidate is taken."""
    temperature: Annotated[float, Field(gt=0)] = 1.0
    """`softmax`: in the objective's unit; small means nearly always the best."""
    seed: Integer = 0
    """Where chance comes from."""


def search_breaches(search: Search, at: FieldPath = ()) -> list[Breach]:
    """Give what a policy breaks by itself.

    Args:
        search: the policy.
        at: where it stands in its document.
    """
    found = []
    if search.strategy in SCALAR and search.objective is None:
        found.append(
            Breach(
                (*at, "objective"),
                f"{search.strategy} needs an objective",
                "name one of the spec's metrics: `objective: …`",
            )
        )
    if search.strategy not in SCALAR and search.objective is not None:
        found.append(
            Breach(
                (*at, "objective"),
                f"{search.strategy} looks at no single objective",
                f"take it out, or choose one of: {', '.join(sorted(SCALAR))}",
            )
        )
    for field, strategy in OWN_FIELD.items():
        if field in search.model_fields_set and search.strategy != strategy:
            found.append(
                Breach(
                    (*at, field),
                    f"{field} is {strategy}'s, and the strategy is {search.strategy}",
                    f"take {field} out, or write `strategy: {strategy}`",
                )
            )
    return found


def search_against_spec(
    search: Search,
    metrics: Collection[str],
    task_metrics: Collection[str],
    at: FieldPath = (),
) -> list[Breach]:
    """Give what a policy asks of a spec that the spec does not declare."""
    found = []
    if search.objective is not None and search.objective not in metrics:
        near = nearest(search.objective, metrics)
        hint = f"did you mean {near}? " if near else ""
        found.append(
            Breach(
                (*at, "objective"),
                f"the spec declares no metric {search.objective!r}",
                f"{hint}declared: {', '.join(metrics)}",
            )
        )
    if search.strategy == "pareto_per_task" and not task_metrics:
        found.append(
            Breach(
                (*at, "strategy"),
                "pareto_per_task needs task_metrics, and the spec declares none",
                "declare task_metrics in the spec of a new run, or choose another strategy",
            )
        )
    return found


def search_document(search: Search) -> dict[str, object]:
    """Write a policy with the fields its strategy reads, no others."""
    written: dict[str, object] = {"strategy": search.strategy, "seed": search.seed}
    if search.objective is not None:
        written["objective"] = search.objective
    for field, strategy in OWN_FIELD.items():
        if search.strategy == strategy:
            written[field] = getattr(search, field)
    return written
