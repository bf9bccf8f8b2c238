"""Every field belongs to one identity or none, and changing it changes exactly that."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, get_args, get_origin

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from steelyard.config.schema.orchestration import Orchestration
from steelyard.config.schema.request import Component, Request
from steelyard.config.secrets import SecretRef
from steelyard.results.identity import (
    FIELD_IDENTITY,
    Belongs,
    base_of,
    canonical_json,
    evaluation_identity,
    evaluation_parts,
    generation_identity,
    generation_parts,
)

# These stand for a mapping or a choice whose inside is the user's, and count as one field.
WHOLE = {"prices", "requests.execution.timeout_multiplier"}


def model_of(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) is list:
        return model_of(get_args(annotation)[0])
    return None


def fields_of(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, info in model.model_fields.items():
        path = f"{prefix}{name}"
        inner = None if path in WHOLE else model_of(info.annotation)
        if inner is None:
            yield path
        else:
            yield from fields_of(inner, f"{path}.")
            if issubclass(inner, Component):
                yield f"{path}.*"


def test_the_table_names_every_field_and_no_other() -> None:
    named_parameters = {"requests.environment.image", "requests.environment.network"}
    assert set(FIELD_IDENTITY) == set(fields_of(Orchestration)) | named_parameters


BASE: dict[str, Any] = {
    "name": "a",
    "benchmark": {"id": "bench", "extra": 1},
    "harness": {"id": "chat", "extra": 1},
    "environment": {"id": "sandbox", "image": "img", "network": "none", "extra": 1},
    "model": {"id": "m", "params": {"temperature": 0.5}},
    "execution": {"attempts": {"k": 2, "strategy": "avg", "early_stop": False}},
}
# Another value for each field of a request, so that a new field needs a line here too.
OTHER: dict[str, Any] = {
    "name": "b",
    "benchmark.id": "other",
    "benchmark.*": 2,
    "harness.id": "nop",
    "harness.*": 2,
    "environment.id": "host_process",
    "environment.image": "other",
    "environment.network": "open",
    "environment.*": 2,
    "model.id": "n",
    "model.base_url": "http://localhost:1",
    "model.api_key": SecretRef("env:KEY"),
    "model.api_protocol": "anthropic",
    "model.params": {"temperature": 0.7},
    "model.extra_headers": {"x": SecretRef("env:X")},
    "model.max_request_retries": 1,
    "model.max_connections": 2,
    "model.rpm": 3.0,
    "model.tpm": 3.0,
    "model.request_timeout_seconds": 5.0,
    "model.max_response_bytes": 5,
    "model.provider_tools": True,
    "execution.attempts.k": 3,
    "execution.attempts.strategy": "pass",
    "execution.attempts.early_stop": True,
    "execution.seed": 0,
    "execution.max_concurrent_attempts": 1,
    "execution.max_retries": 1,
    "execution.retry_pattern_list": ["x"],
    "execution.run_timeout_seconds": 5.0,
    "execution.evaluation_timeout_seconds": 5.0,
    "execution.setup_timeout_seconds": 5.0,
    "execution.collection_timeout_seconds": 5.0,
    "execution.timeout_multiplier": 2.0,
    "execution.keep_environment": True,
    "execution.analysis": True,
    "execution.recipes": ["r"],
    "execution.save_artifacts": ["*.txt"],
    "execution.limit": 3,
    "execution.sample_ids": ["t"],
    "execution.exclude_ids": ["t"],
    "execution.shard": "1/2",
    "runtime.reuse": True,
    "runtime.reuse_run_id": "r",
    "runtime.checkpoint_resume": False,
    "output.run_name": "n",
    "output.run_id": "i",
    "budget.usd": 1.0,
    "budget.tokens": 1,
    "budget.attempt_usd": 1.0,
    "budget.attempt_tokens": 1,
    "budget.reserve_usd": 1.0,
}


def identities(data: dict[str, Any]) -> tuple[str, str]:
    request = Request.model_validate(data)
    generation = base_of(generation_parts(request, harness_version="1"))
    evaluation = base_of(
        evaluation_parts(request, benchmark_id=request.benchmark.id, benchmark_version="1")
    )
    content = {"question": "?"}
    return generation_identity(generation, content), evaluation_identity(evaluation, content)


def changed(path: str) -> dict[str, Any]:
    data = copy.deepcopy(BASE)
    *folders, name = path.replace("*", "extra").split(".")
    place = data
    for folder in folders:
        place = place.setdefault(folder, {})
    assert place.get(name) != OTHER[path]
    place[name] = OTHER[path]
    return data


def test_every_field_of_a_request_is_changed_by_a_test() -> None:
    prefix = "requests."
    in_table = {path.removeprefix(prefix) for path in FIELD_IDENTITY if path.startswith(prefix)}
    assert set(OTHER) == in_table


@pytest.mark.parametrize("path", OTHER)
def test_a_change_moves_exactly_the_identity_of_the_table(path: str) -> None:
    before, after = identities(BASE), identities(changed(path))
    belongs = FIELD_IDENTITY[f"requests.{path}"]
    assert (before[0] != after[0]) == (belongs is Belongs.GENERATION)
    assert (before[1] != after[1]) == (belongs is Belongs.EVALUATION)


@settings(deadline=None)
@given(st.sets(st.sampled_from(sorted(OTHER)), max_size=6))
def test_changes_together_move_what_each_of_them_moves(paths: set[str]) -> None:
    data = copy.deepcopy(BASE)
    for path in paths:
        *folders, name = path.replace("*", "extra").split(".")
        place = data
        for folder in folders:
            place = place.setdefault(folder, {})
        place[name] = OTHER[path]
    moved = {FIELD_IDENTITY[f"requests.{path}"] for path in paths}
    before, after = identities(BASE), identities(data)
    assert (before[0] != after[0]) == (Belongs.GENERATION in moved)
    assert (before[1] != after[1]) == (Belongs.EVALUATION in moved)


def test_fields_outside_a_request_belong_to_neither() -> None:
    outside = {path: b for path, b in FIELD_IDENTITY.items() if not path.startswith("requests.")}
    assert set(outside.values()) == {Belongs.NEITHER}


def test_a_nested_model_parameter_counts() -> None:
    data = copy.deepcopy(BASE)
    data["model"]["params"] = {"temperature": 0.5, "extra_body": {"deep": [1, {"x": None}]}}
    assert identities(data)[0] != identities(BASE)[0]


def test_one_and_one_point_zero_are_one_number() -> None:
    first, second = copy.deepcopy(BASE), copy.deepcopy(BASE)
    first["model"]["params"] = {"temperature": 1, "top_p": [1]}
    second["model"]["params"] = {"top_p": [1.0], "temperature": 1.0}
    assert identities(first) == identities(second)


def test_a_boolean_is_not_a_number() -> None:
    first, second = copy.deepcopy(BASE), copy.deepcopy(BASE)
    first["model"]["params"] = {"x": True}
    second["model"]["params"] = {"x": 1}
    assert identities(first)[0] != identities(second)[0]


def test_the_name_of_a_secret_in_a_parameter_does_not_count() -> None:
    first, second = copy.deepcopy(BASE), copy.deepcopy(BASE)
    first["harness"]["token"] = SecretRef("env:A")
    second["harness"]["token"] = SecretRef("config:b")
    assert identities(first) == identities(second)


def test_early_stop_counts_as_what_it_resolves_to() -> None:
    first, second = copy.deepcopy(BASE), copy.deepcopy(BASE)
    first["execution"]["attempts"] = {"k": 2, "strategy": "pass"}
    second["execution"]["attempts"] = {"k": 2, "strategy": "pass", "early_stop": True}
    assert identities(first) == identities(second)


def test_identities_are_32_hex_digits_and_stable() -> None:
    generation, evaluation = identities(BASE)
    assert len(generation) == len(evaluation) == 32
    int(generation, 16)
    first = generation_identity(b"base", {"b": 1, "a": 2})
    assert first == generation_identity(b"base", {"a": 2, "b": 1})
    assert first == "e4f813e9a32e16729ca76e20b9b98374"


@pytest.mark.parametrize("value", [2**80, "\ud800", {"k": ["\ud800", 2**70]}])
def test_content_that_orjson_refuses_still_has_an_identity(value: Any) -> None:
    assert canonical_json(value) == canonical_json(copy.deepcopy(value))
