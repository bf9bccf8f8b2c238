"""Control and review files: each action with its fields, no others; the seed's own parses."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from pydantic import BaseModel

from steelyard.config.reference import json_schema
from steelyard.fix.schema.control import (
    ACTIONS,
    COMMON_FIELDS,
    FIELDS_OF_ACTION,
    Control,
    checked_control,
    control_document,
    read_control,
)
from steelyard.fix.schema.profile import Profile
from steelyard.fix.schema.reading import InvalidFixFile
from steelyard.fix.schema.review import Assessments, checked_review
from steelyard.fix.schema.spec import Spec
from tests.fix.documents import FIXTURES, GONE, node

INSIGHT = {
    "kind": "follow_up",
    "summary": "caching helps",
    "rationale": "c2 was faster",
    "uncertainty": "one run",
    "candidate_ids": ["c2"],
    "evidence": ["t4"],
    "code_paths": ["app.py"],
}
RESPONSE = {"scan_id": "s1", "packet_digest": "d", "author": "host", "insights": [INSIGHT]}
FIELDS: dict[str, Any] = {
    "policy": {"strategy": "argmax", "objective": "latency_ms", "seed": 11},
    "text": "avoid repeated calls",
    "parent_id": "c1",
    "hypothesis": "one call is enough",
    "limits": {"max_trials": 90},
    "candidate_id": "c1",
    "reason": "measured on a busy host",
    "target_operation_id": "expand-01",
    "host_id": "host-1",
    "scan_id": "s1",
    "response": RESPONSE,
}


def control(action: str, /, **changes: Any) -> dict[str, Any]:
    needed, allowed = FIELDS_OF_ACTION[action]
    document = {
        "version": 1,
        "operation_id": "op-1",
        "expected_revision": 12,
        "action": action,
        **{name: FIELDS[name] for name in needed | allowed},
        **changes,
    }
    return {name: value for name, value in document.items() if value is not GONE}


def faults(document: dict[str, Any]) -> str:
    with pytest.raises(InvalidFixFile) as caught:
        checked_control(node(document, "control.json"))
    assert all(problem.remedy for problem in caught.value.problems)
    return str(caught.value)


def is_valid(document: dict[str, Any]) -> bool:
    validator = jsonschema.Draft202012Validator(json_schema(Control))
    return bool(validator.is_valid(document))


def test_the_seeds_control_parses_unchanged() -> None:
    found, _ = read_control(FIXTURES / "seed-control.json")
    assert found.action == "policy"
    assert found.expected_revision == 12
    assert found.policy is not None
    assert found.policy.objective == "latency_ms"


@pytest.mark.parametrize(
    ("model", "name"), [(Spec, "seed-spec"), (Profile, "seed-profile"), (Control, "seed-control")]
)
def test_the_published_schemas_take_the_seeds_files(model: type[BaseModel], name: str) -> None:
    schema = json_schema(model)
    jsonschema.Draft202012Validator.check_schema(schema)
    document = json.loads((FIXTURES / f"{name}.json").read_text())
    assert jsonschema.Draft202012Validator(schema).is_valid(document)
    assert not jsonschema.Draft202012Validator(schema).is_valid({**document, "more": 1})


def test_every_action_has_its_row() -> None:
    assert set(ACTIONS) == set(FIELDS_OF_ACTION)
    of_actions = set().union(*(a | b for a, b in FIELDS_OF_ACTION.values()))
    assert of_actions == set(FIELDS) == set(Control.model_fields) - COMMON_FIELDS


@pytest.mark.parametrize("action", ACTIONS)
def test_each_action_takes_its_fields_and_no_others(action: str) -> None:
    needed, allowed = FIELDS_OF_ACTION[action]
    found = checked_control(node(control(action)))
    assert checked_control(node(control_document(found))) == found
    assert is_valid(control(action))
    for name in needed:
        assert f"needs {name}" in faults(control(action, **{name: GONE}))
        assert not is_valid(control(action, **{name: GONE}))
    for name in allowed:
        assert checked_control(node(control(action, **{name: GONE})))
    for name in set(FIELDS) - needed - allowed:
        assert f"{name} is nothing to the action" in faults(control(action, **{name: FIELDS[name]}))
        assert not is_valid(control(action, **{name: FIELDS[name]}))


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"version": 2}, "version"),
        ({"version": GONE}, "the required field version"),
        ({"operation_id": ""}, "operation_id"),
        ({"operation_id": "a b"}, "operation_id"),
        ({"operation_id": "-a"}, "operation_id"),
        ({"operation_id": "a" * 81}, "operation_id"),
        ({"operation_id": GONE}, "the required field operation_id"),
        ({"expected_revision": -1}, "expected_revision"),
        ({"expected_revision": "12"}, "a whole number"),
        ({"expected_revision": GONE}, "the required field expected_revision"),
        ({"action": "pause"}, "one of: policy"),
        ({"action": "selects"}, "did you mean select?"),
    ],
)
def test_every_control_has_version_id_revision_and_action(
    changes: dict[str, Any], word: str
) -> None:
    assert word in faults(control("stop", **changes))


def test_text_is_bounded_and_not_blank() -> None:
    assert "blank" in faults(control("directive", text=" "))
    assert "at most 4096" in faults(control("directive", text="x" * 4097))


def test_a_policy_is_held_to_its_own_rules() -> None:
    said = faults(control("policy", policy={"strategy": "argmax"}))
    assert "policy.objective" in said
    assert "argmax needs an objective" in said


def test_limits_of_a_continuation_say_something() -> None:
    assert "no limit is named" in faults(control("continue", limits={}))
    assert "max_trials" in faults(control("continue", limits={"max_trials": 0}))


def test_a_control_cannot_mean_itself() -> None:
    assert "cannot mean itself" in faults(control("cancel", target_operation_id="op-1"))


def test_insights_are_twenty_at_most_and_rest_on_something() -> None:
    none = {**RESPONSE, "insights": []}
    assert checked_control(node(control("insights", response=none)))
    many = {**RESPONSE, "insights": [INSIGHT] * 21}
    assert "at most 20" in faults(control("insights", response=many))
    for field in ("candidate_ids", "evidence", "code_paths"):
        bare = {**RESPONSE, "insights": [{**INSIGHT, field: []}]}
        assert field in faults(control("insights", response=bare))
        twice = {**RESPONSE, "insights": [{**INSIGHT, field: ["x", "x"]}]}
        assert "named twice" in faults(control("insights", response=twice))
    odd = {**RESPONSE, "insights": [{**INSIGHT, "kind": "guess"}]}
    assert "one of: failure_pattern" in faults(control("insights", response=odd))


# -- reviews -----------------------------------------------------------------------------------

REVIEW: dict[str, Any] = {
    "version": 1,
    "run_id": "run-1",
    "candidate_id": "cand-1",
    "source_digest": "s",
    "evaluation_digest": "e",
    "inputs_digest": "i",
    "trial_ids": ["t1", "t2"],
    "reviewer": "Robin",
    "verdict": "pass",
    "rationale": "one call less, same answers",
    "evidence": ["t1"],
    "assessments": dict.fromkeys(Assessments.model_fields, True),
}


def review_faults(**changes: Any) -> str:
    document = {name: value for name, value in {**REVIEW, **changes}.items() if value is not GONE}
    with pytest.raises(InvalidFixFile) as caught:
        checked_review(node(document, "review.json"))
    assert all(problem.remedy for problem in caught.value.problems)
    return str(caught.value)


def test_a_review_is_read() -> None:
    assert checked_review(node(REVIEW)).verdict == "pass"


@pytest.mark.parametrize("name", list(REVIEW))
def test_every_field_of_a_review_is_needed(name: str) -> None:
    assert f"the required field {name} is missing" in review_faults(**{name: GONE})


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"verdict": "pending"}, "one of: pass, reject"),
        ({"version": 2}, "version"),
        ({"trial_ids": []}, "a list of at least 1"),
        ({"trial_ids": ["t1", "t1"]}, "named twice"),
        ({"evidence": []}, "a list of at least 1"),
        ({"rationale": ""}, "blank"),
        ({"reviewer": " "}, "blank"),
        ({"metrics": {"latency_ms": 1}}, "unknown field 'metrics'"),
        ({"assessments": {"patch": True}}, "the required field evaluator_integrity"),
    ],
)
def test_a_review_that_says_too_little_or_too_much(changes: dict[str, Any], word: str) -> None:
    assert word in review_faults(**changes)


@pytest.mark.parametrize("name", list(Assessments.model_fields))
def test_a_pass_finds_everything_right(name: str) -> None:
    doubted = {**REVIEW["assessments"], name: False}
    assert f"{name} is not found right" in review_faults(assessments=doubted)
    rejected = {**REVIEW, "assessments": doubted, "verdict": "reject"}
    assert checked_review(node(rejected)).verdict == "reject"
