"""Profiles: the seed's own parse unchanged; runners, limits, variables, policies."""

from __future__ import annotations

import json
from typing import Any

import pytest

from steelyard.fix.schema.profile import (
    InvalidProfileName,
    check_profile_name,
    checked_profile,
    profile_document,
    read_limits,
    read_profile,
)
from steelyard.fix.schema.reading import InvalidFixFile
from tests.fix import documents
from tests.fix.documents import FIXTURES, GONE, limits, node, profile


def faults(**changes: Any) -> str:
    with pytest.raises(InvalidFixFile) as caught:
        checked_profile(node(documents.profile_document(**changes), "profile.json"))
    assert all(problem.remedy for problem in caught.value.problems)
    return str(caught.value)


def test_the_seeds_profile_parses_unchanged() -> None:
    found, _ = read_profile(FIXTURES / "seed-profile.json")
    assert found.env == {"MODEL_API_KEY": "CUSTOM_MODEL_API_KEY"}
    assert found.limits.max_trials == 60
    assert found.search.strategy == "pareto"
    assert found.search.seed == 0
    assert (found.search.k, found.search.epsilon, found.search.temperature) == (3, 0.1, 1.0)
    assert found.scans is None
    assert found.repetitions is None
    assert found.trial_retries == 1
    assert found.isolation == "standard"
    assert (found.resources.memory_mb, found.resources.processes) == (4096, 512)
    assert not found.setup_cache
    assert not found.has_independent_capacity


def test_the_seeds_search_and_scans_parse_unchanged() -> None:
    found = profile(
        search={"strategy": "top_k", "objective": "latency_ms", "k": 3, "seed": 11},
        scans={"max_scans": 3, "max_input_bytes": 65536, "scan_timeout_seconds": 120},
        repetitions=5,
    )
    assert found.search.k == 3
    assert found.scans is not None
    assert found.scans.max_input_bytes == 65536


def test_a_profile_reads_back_as_it_was_written() -> None:
    found = profile(search={"strategy": "softmax", "objective": "latency_ms"})
    assert checked_profile(node(profile_document(found))) == found


@pytest.mark.parametrize(
    "name",
    [
        "max_candidates",
        "max_trials",
        "max_elapsed_seconds",
        "parallel_candidates",
        "parallel_trials",
        "trial_timeout_seconds",
    ],
)
def test_every_limit_is_asked_for_and_none_may_be_nothing(name: str) -> None:
    without = {key: value for key, value in limits().items() if key != name}
    assert f"the required field {name} is missing" in faults(limits=without)
    assert name in faults(limits=limits(**{name: 0}))
    assert name in faults(limits=limits(**{name: -1}))
    assert name in faults(limits=limits(**{name: True}))


def test_stagnation_is_three_rounds_by_default() -> None:
    without = {key: value for key, value in limits().items() if key != "stagnation_rounds"}
    assert profile(limits=without).limits.stagnation_rounds == 3


@pytest.mark.parametrize("kind", ["local", "ssh"])
def test_concurrent_trials_on_one_machine_want_an_assertion(kind: str) -> None:
    runner = {"kind": kind} | ({"host": "h", "remote_root": "/r"} if kind == "ssh" else {})
    many = limits(parallel_trials=2)
    assert "disturb each other's measurements" in faults(runner=runner, limits=many)
    assert "disturb" in faults(runner={**runner, "independent_capacity": False}, limits=many)
    assert profile(runner={**runner, "independent_capacity": True}, limits=many)
    assert profile(runner=runner, independent_capacity=True, limits=many)
    assert "true in one place" in faults(
        runner={**runner, "independent_capacity": False}, independent_capacity=True
    )


def test_a_remote_service_has_capacity_of_its_own() -> None:
    runner = {"kind": "e2b", "template": "t", "sandbox_timeout_seconds": 120}
    assert profile(runner=runner, limits=limits(parallel_trials=4))


@pytest.mark.parametrize(
    ("runner", "word"),
    [
        ({}, "the required field kind"),
        ({"kind": "docker"}, "one of: local, ssh, e2b"),
        ({"kind": "ssh"}, "the runner ssh needs host"),
        ({"kind": "ssh", "host": "h"}, "the runner ssh needs remote_root"),
        ({"kind": "ssh", "host": "h", "remote_root": "r"}, "remote_root"),
        ({"kind": "ssh", "host": "-oProxyCommand=x", "remote_root": "/r"}, "host"),
        ({"kind": "ssh", "host": "h", "remote_root": "/r", "template": "t"}, "template is nothing"),
        ({"kind": "e2b"}, "the runner e2b needs template"),
        ({"kind": "e2b", "template": "t", "host": "h"}, "host is nothing"),
        ({"kind": "local", "host": "h"}, "host is nothing"),
        ({"kind": "local", "independent_capacity": "yes"}, "true or false"),
        ({"kind": "e2b", "template": "t", "sandbox_timeout_seconds": 60}, "ends before a trial"),
        ({"kind": "local", "hots": "h"}, "did you mean host?"),
    ],
)
def test_each_runner_has_its_own_fields(runner: dict[str, Any], word: str) -> None:
    assert word in faults(runner=runner)


def test_runners_with_all_their_fields() -> None:
    ssh = {"kind": "ssh", "host": "me@build-1", "remote_root": "/srv/fix", "python": "python3.12"}
    assert profile(runner=ssh).runner.python == "python3.12"
    e2b = {"kind": "e2b", "template": "t", "api_key_env": "E2B_API_KEY"}
    assert profile(runner=e2b).runner.api_key_env == "E2B_API_KEY"


def test_a_secret_in_place_of_a_variables_name_is_not_shown() -> None:
    said = faults(env={"MODEL_API_KEY": "sk-proj-very-secret"})
    assert "very-secret" not in said
    assert "env.MODEL_API_KEY" in said
    said = faults(runner={"kind": "e2b", "template": "t", "api_key_env": "e2b_very-secret"})
    assert "very-secret" not in said


@pytest.mark.parametrize("name", ["STEELYARD_SEED", "agentagon_x", "HOME", "TMPDIR"])
def test_variables_that_are_ours_cannot_be_set(name: str) -> None:
    assert "set by us" in faults(env={name: "X"})


def test_no_trial_gets_the_runners_own_key() -> None:
    runner = {"kind": "e2b", "template": "t", "sandbox_timeout_seconds": 90}
    assert "the runner's own key" in faults(runner=runner, env={"KEY": "E2B_API_KEY"})
    assert "the runner's own key" in faults(
        runner={**runner, "api_key_env": "MINE"}, env={"KEY": "MINE"}
    )
    assert profile(env={"KEY": "E2B_API_KEY"})


@pytest.mark.parametrize("strategy", ["argmax", "top_k", "epsilon_greedy", "softmax"])
def test_scalar_policies_need_an_objective(strategy: str) -> None:
    assert f"{strategy} needs an objective" in faults(search={"strategy": strategy})
    assert profile(search={"strategy": strategy, "objective": "latency_ms"})


@pytest.mark.parametrize(
    ("search", "word"),
    [
        ({"strategy": "pareto", "objective": "latency_ms"}, "looks at no single objective"),
        ({"objective": "latency_ms"}, "looks at no single objective"),
        ({"strategy": "argmax", "objective": "m", "k": 3}, "k is top_k's"),
        ({"strategy": "top_k", "objective": "m", "epsilon": 0.1}, "epsilon is epsilon_greedy's"),
        ({"temperature": 1}, "temperature is softmax's"),
        ({"strategy": "top_k", "objective": "m", "k": 0}, "search.k"),
        ({"strategy": "epsilon_greedy", "objective": "m", "epsilon": 1.5}, "search.epsilon"),
        ({"strategy": "softmax", "objective": "m", "temperature": 0}, "search.temperature"),
        ({"strategy": "best"}, "one of: pareto"),
        ({"strategy": "pareto", "seed": 1.5}, "a whole number"),
    ],
)
def test_a_policy_has_its_own_fields_and_bounds(search: dict[str, Any], word: str) -> None:
    assert word in faults(search=search)


@pytest.mark.parametrize(
    "scans",
    [
        {},
        {"max_scans": 3, "max_input_bytes": 65536},
        {"max_scans": 0, "max_input_bytes": 65536, "scan_timeout_seconds": 1},
        {"max_scans": 1, "max_input_bytes": 1023, "scan_timeout_seconds": 1},
        {"max_scans": 1, "max_input_bytes": 1048577, "scan_timeout_seconds": 1},
        {"max_scans": 1, "max_input_bytes": 1024, "scan_timeout_seconds": 0},
    ],
)
def test_scans_want_explicit_bounds(scans: dict[str, Any]) -> None:
    assert "scans" in faults(scans=scans)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("setup", ["pip install x"]),
        ("setup", [[]]),
        ("repetitions", 0),
        ("repetitions", 1001),
        ("isolation", "none"),
        ("setup_cache", "yes"),
        ("trial_retries", -1),
        ("resources", {"memory_mb": 1}),
        ("resources", {"processes": 0}),
        ("resources", {"disk": 1}),
        ("limits", GONE),
        ("runner", GONE),
    ],
)
def test_what_is_out_of_bounds_is_refused(field: str, value: Any) -> None:
    assert field in faults(**{field: value})


def test_names_of_profiles() -> None:
    assert check_profile_name("local-2") == "local-2"
    for name in ("", "Local", "2x", "a b", "a" * 65, "../x"):
        with pytest.raises(InvalidProfileName):
            check_profile_name(name)


def test_a_limits_file_names_what_changes(tmp_path: Any) -> None:
    path = tmp_path / "limits.json"
    path.write_text(json.dumps({"max_trials": 90}))
    extended = read_limits(path).over(profile().limits)
    assert extended.max_trials == 90
    assert extended.max_candidates == 6
    path.write_text("{}")
    with pytest.raises(InvalidFixFile, match="no limit is named"):
        read_limits(path)
    path.write_text(json.dumps({"max_trials": 0, "max_trails": 1}))
    with pytest.raises(InvalidFixFile, match="did you mean max_trials"):
        read_limits(path)
