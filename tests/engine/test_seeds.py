"""A request's seed on its way: to the task's programs, to the harness, to the model's calls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.config.errors import BadInput
from steelyard.engine.seeds import attempt_seed
from steelyard.results.reader import RunReader
from steelyard.testing.endpoint import MockEndpoint
from tests.engine.launching import COMPONENTS, records, request, resolved, run_all
from tests.harnesses.asking import AGENT

SEEDS = st.integers(0, 2**63 - 1)
ASK = f"python3 - <<'AGENT'\n{AGENT}\nAGENT\n"


@given(SEEDS)
def test_the_first_attempt_gets_the_seed_itself(seed: int) -> None:
    assert attempt_seed(seed, 1) == seed


@given(SEEDS, st.integers(2, 10_000))
def test_a_later_attempt_gets_31_positive_bits_of_its_own(seed: int, attempt: int) -> None:
    derived = attempt_seed(seed, attempt)
    assert 0 < derived < 2**31
    assert derived == attempt_seed(seed, attempt)
    assert derived not in {attempt_seed(seed, other) for other in range(2, 40) if other != attempt}


def test_the_derivation_is_the_same_for_ever() -> None:
    # Runs with one seed are to be paired across versions: these figures never change.
    assert [attempt_seed(7, attempt) for attempt in (1, 2, 3)] == [7, 462121814, 1698595815]


def test_without_a_seed_attempts_are_numbered() -> None:
    assert [attempt_seed(None, attempt) for attempt in (1, 2, 3)] == [1, 2, 3]


@pytest.mark.parametrize("seed", [-1, 2**63, 1.5, "3", True])
def test_a_seed_that_no_signed_64_bits_hold_is_refused(tmp_path: Path, seed: Any) -> None:
    with pytest.raises(BadInput, match=r"execution\.seed"):
        resolved(tmp_path, request(execution={"seed": seed}))


def test_task_and_harness_are_handed_the_seed(tmp_path: Path) -> None:
    benchmark = {"id": f"{COMPONENTS}:Seeded"}
    harness = {"id": f"{COMPONENTS}:SaysItsSeed"}
    execution = {"seed": 7, "attempts": {"k": 3}}
    result = run_all(tmp_path, request(benchmark=benchmark, harness=harness, execution=execution))
    said = {record.attempt: record.answer for record in records(result)}
    assert said == {n: f"{attempt_seed(7, n)} {attempt_seed(7, n)}" for n in (1, 2, 3)}


def test_a_saved_run_says_its_seed_and_a_run_without_one_says_what_it_always_did(
    tmp_path: Path,
) -> None:
    result = run_all(tmp_path, request("a", execution={"seed": 7}), request("b"), request("c"))
    parts = [RunReader(one.run_dir).document["identities"]["generation"] for one in result.requests]
    assert parts[0].pop("seed") == 7
    assert parts[0] == parts[1] == parts[2]


# The model's calls


def asked(
    tmp_path: Path, *, protocol: str = "openai-chat", harness: Any = None, **rest: Any
) -> list[dict[str, Any]]:
    """Give the bodies that reached the endpoint, in order."""
    model = {"id": "m", "api_protocol": protocol, "max_request_retries": 0}
    params = rest.pop("params", {})
    with MockEndpoint("--text", "right", "--keep-bodies", "20") as endpoint:
        url = endpoint.origin if protocol == "anthropic" else endpoint.url
        one = request(
            benchmark={"tasks": 1},
            harness=harness or {"id": "chat"},
            model={**model, "base_url": url, "params": params},
            **rest,
        )
        result = run_all(tmp_path, one, task_concurrency=1)
        assert all(record.metrics == {"passed": True} for record in records(result))
        return [json.loads(kept["body"]) for kept in endpoint.stats()["bodies"]]


@pytest.mark.integration
def test_calls_of_the_driver_carry_the_attempts_seed(tmp_path: Path) -> None:
    execution = {"seed": 7, "attempts": {"k": 2}}
    seen = [body.get("seed") for body in asked(tmp_path, execution=execution)]
    assert seen == [7, attempt_seed(7, 2)]


@pytest.mark.integration
def test_without_a_seed_calls_carry_none(tmp_path: Path) -> None:
    assert all("seed" not in body for body in asked(tmp_path))


@pytest.mark.integration
def test_a_seed_among_the_models_own_parameters_wins(tmp_path: Path) -> None:
    (body,) = asked(tmp_path, execution={"seed": 7}, params={"seed": 99})
    assert body["seed"] == 99


@pytest.mark.integration
@pytest.mark.parametrize("protocol", ["openai-responses", "anthropic"])
def test_a_protocol_without_a_seed_is_sent_none(tmp_path: Path, protocol: str) -> None:
    params = {"max_tokens": 9} if protocol == "anthropic" else {}
    (body,) = asked(tmp_path, protocol=protocol, execution={"seed": 7}, params=params)
    assert "seed" not in body


@pytest.mark.integration
def test_programs_in_the_sandbox_read_the_seed_and_their_calls_carry_it(tmp_path: Path) -> None:
    script = f'{ASK}test "$STEELYARD_SEED" = 7 || exit 3\n'
    (body,) = asked(
        tmp_path,
        harness={"id": "command", "script": script},
        environment={"id": "sandbox"},
        execution={"seed": 7},
    )
    assert body["seed"] == 7


@pytest.mark.integration
def test_a_program_that_brings_a_seed_of_its_own_keeps_it(tmp_path: Path) -> None:
    agent = AGENT.replace('"model":', '"seed": 5, "model":')
    assert agent != AGENT
    script = f"python3 - <<'AGENT'\n{agent}\nAGENT\n"
    (body,) = asked(tmp_path, harness={"id": "command", "script": script}, execution={"seed": 7})
    assert body["seed"] == 5


@pytest.mark.integration
def test_without_a_seed_no_program_is_told_of_one(tmp_path: Path) -> None:
    script = f'{ASK}test -z "$STEELYARD_SEED" || exit 3\n'
    (body,) = asked(tmp_path, harness={"id": "command", "script": script})
    assert "seed" not in body
