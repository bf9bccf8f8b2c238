"""A spec over a profile: whose repetitions, whose seeds; what the digest covers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from steelyard.fix.frozen import (
    NOT_MEASURING,
    FrozenSpecDamaged,
    confirmation_of,
    constraints_of,
    freeze,
    frozen_document,
    frozen_from,
    objectives_of,
    policy_of,
    task_objectives_of,
)
from steelyard.fix.schema.reading import InvalidFixFile
from steelyard.fix.schema.spec import Spec, checked_spec
from tests.fix.documents import GONE, limits, node, profile, spec, spec_document

OPEN: dict[str, Any] = {"repetitions": GONE, "seeds": GONE}


def test_three_repetitions_and_counted_seeds_by_default() -> None:
    found = freeze(spec(**OPEN), profile())
    assert found.repetitions == 3
    assert found.seeds == (0, 1, 2)
    assert found.repetitions_from == "default"


def test_a_profile_overrides_the_default_and_a_spec_the_profile() -> None:
    found = freeze(spec(**OPEN), profile(repetitions=5))
    assert (found.repetitions, found.seeds) == (5, (0, 1, 2, 3, 4))
    assert found.repetitions_from == "profile"
    found = freeze(spec(), profile(repetitions=5))
    assert (found.repetitions, found.seeds) == (3, (11, 22, 33))
    assert found.repetitions_from == "spec"


@pytest.mark.parametrize(
    ("in_spec", "in_profile", "whence"), [(GONE, 5, "the profile"), (GONE, GONE, "the default")]
)
def test_seeds_must_be_as_many_as_the_repetitions_in_force(
    in_spec: Any, in_profile: Any, whence: str
) -> None:
    document = spec_document(repetitions=in_spec, seeds=[1, 2])
    root = node(document, "spec.json")
    with pytest.raises(InvalidFixFile) as caught:
        freeze(checked_spec(root), profile(repetitions=in_profile), root=root)
    said = str(caught.value)
    assert f"2 seeds for {5 if in_profile == 5 else 3} repetitions (from {whence})" in said
    assert "spec.json:" in said
    assert "`repetitions: 2`" in said


def test_a_run_needs_a_goal_or_an_issue() -> None:
    bare = spec(goal=GONE)
    with pytest.raises(InvalidFixFile, match="a run needs a goal or an issue"):
        freeze(bare, profile())
    assert freeze(bare, profile(), goal="be quick").spec.goal == "be quick"
    assert freeze(bare, profile(), issues=["i-1"]).spec.issue_ids == ["i-1"]
    assert freeze(spec(), profile(), goal="be quick").spec.goal == "be quick"


def test_issues_of_the_command_line_are_added_and_checks_name_none_but_those() -> None:
    check = {"id": "one", "argv": ["x"], "issue_ids": ["i-2"]}
    found = spec(issue_ids=["i-1"], checks=[check])
    with pytest.raises(InvalidFixFile, match="'i-2', which is no issue of the run"):
        freeze(found, profile())
    frozen = freeze(found, profile(), issues=["i-2", "i-1"])
    assert frozen.spec.issue_ids == ["i-1", "i-2"]
    assert any("no check speaks for i-1" in warning for warning in frozen.warnings)


def test_the_profiles_policy_must_fit_the_spec() -> None:
    with pytest.raises(InvalidFixFile) as caught:
        freeze(spec(), profile(search={"strategy": "argmax", "objective": "latency"}))
    assert "did you mean latency_ms?" in str(caught.value)
    assert "profile.search.objective" in str(caught.value)
    tasks = profile(search={"strategy": "pareto_per_task"})
    with pytest.raises(InvalidFixFile, match="needs task_metrics"):
        freeze(spec(), tasks)
    assert freeze(spec(task_metrics={"a": {"direction": "max", "unit": "x"}}), tasks)


def test_the_baseline_must_fit_the_budget() -> None:
    with pytest.raises(InvalidFixFile, match="2 trials are fewer than the baseline's 3"):
        freeze(spec(), profile(limits=limits(max_trials=2)))
    assert any(
        "too few" in w for w in freeze(spec(), profile(limits=limits(max_trials=5))).warnings
    )


def test_everything_that_does_not_fit_comes_at_once() -> None:
    with pytest.raises(InvalidFixFile) as caught:
        freeze(
            spec(goal=GONE, repetitions=GONE),
            profile(repetitions=4, search={"strategy": "argmax", "objective": "x"}),
        )
    assert len(caught.value.problems) == 3


def test_a_frozen_spec_reads_back_through_json_whatever_becomes_of_its_order() -> None:
    metric = {"direction": "max", "unit": "x"}
    frozen = freeze(
        spec(task_metrics={"zeta": metric, "alpha": metric, "mid": metric}),
        profile(search={"strategy": "top_k", "objective": "quality", "k": 2}),
    )
    back = frozen_from(json.loads(json.dumps(frozen_document(frozen), sort_keys=True)))
    assert back == frozen
    assert list(back.spec.task_metrics) == ["zeta", "alpha", "mid"]


def test_a_frozen_spec_that_was_changed_is_not_read() -> None:
    document = frozen_document(freeze(spec(), profile()))
    for change in ("goal", "repetitions"):
        other = json.loads(json.dumps(document))
        other["spec"][change] = "other" if change == "goal" else 4
        with pytest.raises(FrozenSpecDamaged):
            frozen_from(other)
    with pytest.raises(FrozenSpecDamaged, match="fix-frozen/9"):
        frozen_from({**document, "schema": "fix-frozen/9"})


CHANGES: dict[str, Any] = {
    "goal": "another",
    "issue_ids": ["i-9"],
    "editable_paths": ["other.py"],
    "evaluation_paths": ["benchmark.py"],
    "benchmark": {"argv": ["python3", "b.py"]},
    "subject": {"argv": ["python3", "app.py"]},
    "metrics": {"latency_ms": {"direction": "max", "unit": "ms"}},
    "task_metrics": {"a": {"direction": "max", "unit": "x"}},
    "constraints": [],
    "checks": [],
    "overlays": [{"source": "a", "path": "b"}],
    "inputs": [{"source": "a", "path": "b"}],
    "repetitions": 2,
    "seeds": [1, 2, 3],
    "rigor": "high",
    "confirmation": {"repetitions": 12},
}


@pytest.mark.parametrize("field", list(CHANGES))
def test_every_field_is_in_the_digest_and_what_is_measured_in_its_own(field: str) -> None:
    assert set(CHANGES) == set(Spec.model_fields)
    extra = {"seeds": GONE} if field == "repetitions" else {}
    extra |= {"constraints": []} if field == "metrics" else {}
    was = freeze(spec(**extra), profile())
    now = freeze(spec(**{**extra, field: CHANGES[field]}), profile())
    assert now.digest != was.digest
    assert (now.measuring_digest == was.measuring_digest) == (field in NOT_MEASURING)


def test_the_order_of_tasks_decides_whose_turn_it_is_so_it_is_in_the_digest() -> None:
    metric = {"direction": "max", "unit": "x"}
    one = freeze(spec(task_metrics={"a": metric, "b": metric}), profile())
    other = freeze(spec(task_metrics={"b": metric, "a": metric}), profile())
    assert one.digest != other.digest


def test_a_profile_that_changes_later_is_another_digest() -> None:
    was = freeze(spec(), profile())
    assert freeze(spec(), profile()).digest == was.digest
    assert freeze(spec(), profile(trial_retries=0)).digest != was.digest
    setup = freeze(spec(), profile(setup=[["true"]]))
    assert setup.measuring_digest != was.measuring_digest


def test_a_frozen_spec_gives_verification_and_search_their_terms() -> None:
    frozen = freeze(
        spec(
            task_metrics={"b": {"direction": "max", "unit": "x"}},
            confirmation={"repetitions": 12, "min_effect": {"latency_ms": 2}},
        ),
        profile(search={"strategy": "top_k", "objective": "quality", "k": 2, "seed": 4}),
    )
    assert [(one.metric, one.direction) for one in objectives_of(frozen.spec)] == [
        ("latency_ms", "min"),
        ("quality", "max"),
    ]
    assert [one.metric for one in task_objectives_of(frozen.spec)] == ["b"]
    assert [str(one) for one in constraints_of(frozen.spec)] == [
        "quality ≥ 0.95",
        "latency_ms ≤ 1.05 × baseline",
    ]
    plan = confirmation_of(frozen.spec)
    assert (plan.repetitions, plan.alpha, plan.min_effect) == (12, 0.05, {"latency_ms": 2})
    policy = policy_of(frozen.profile.search, revision=3)
    assert (policy.strategy, policy.k, policy.seed, policy.revision) == ("top_k", 2, 4, 3)
