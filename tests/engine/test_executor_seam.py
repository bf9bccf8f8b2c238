"""A spec and its result go as JSON through a fresh interpreter that is handed no secret."""

from __future__ import annotations

import asyncio
import os
import secrets
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from steelyard.components.artifacts import ArtifactSpec
from steelyard.components.benchmark import Task
from steelyard.components.clock import SystemClock
from steelyard.components.issues import IssueCode, Outcome
from steelyard.components.registry import BUILTINS, Kind
from steelyard.config.secrets import SecretStore
from steelyard.engine.executor import InProcessExecutor
from steelyard.engine.services import EndpointPool, Maker
from steelyard.engine.spec import (
    AttemptPlace,
    ComponentSpec,
    ExecutionResult,
    ExecutionSpec,
    RequestSpec,
)
from steelyard.engine.spec_json import result_from_bytes, spec_to_bytes
from steelyard.harnesses.cli_agent.table import AGENTS
from steelyard.results.checkpoints import read_checkpoint
from steelyard.testing.endpoint import MockEndpoint
from tests.engine.fakes import FakeHarness, Watch, services
from tests.engine.fakes import spec as fake_spec
from tests.harnesses.asking import AGENT
from tests.harnesses.cli_agent.running import DATA_DIR, install

pytestmark = pytest.mark.integration

PACK = str(Path(__file__).parents[2] / "examples" / "packs" / "refund-triage")
SECRET = "sk-canary-0123456789"
HARNESSES = sorted(BUILTINS[Kind.HARNESS])
PARAMS: dict[str, dict[str, Any]] = {"command": {"run": ["python3", "-c", AGENT]}}
ENVIRONMENTS = sorted(BUILTINS[Kind.ENVIRONMENT])
PROTOCOLS = {"chat": "openai-chat", "command": "openai-chat", "terminal_agent": "openai-chat"} | {
    name: agent.protocols[0] for name, agent in AGENTS.items()
}
"""Of the harnesses that call a model."""
INSTALLED = (*AGENTS, "terminus2")
"""Programs that are installed once and take seconds to start: one benchmark is enough for them."""


def maker(secrets: SecretStore) -> Maker:
    clock = SystemClock()
    return Maker(secrets, clock, EndpointPool(secrets, clock), Path.cwd())


def spec(
    benchmark: str,
    harness: str,
    environment: str,
    model: dict[str, Any] | None,
    env_params: dict[str, Any] | None = None,
) -> ExecutionSpec:
    component = ComponentSpec(benchmark)
    task = maker(SecretStore({})).component(Kind.BENCHMARK, component).load_tasks()[0]
    played = ComponentSpec(harness, PARAMS.get(harness, {}))
    place = ComponentSpec(environment, env_params or {})
    request = RequestSpec("r", component, played, place, model, data_dir=str(DATA_DIR))
    return ExecutionSpec(request, task, 1, 1, f"test-{secrets.token_hex(8)}", 1)


def in_fresh_interpreter(spec: ExecutionSpec, **variables: str) -> ExecutionResult:
    done = subprocess.run(
        [sys.executable, "-m", "steelyard.engine.worker"],
        input=spec_to_bytes(spec),
        env={"PATH": os.environ["PATH"], **variables},
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr.decode()
    return result_from_bytes(done.stdout)


def in_process(spec: ExecutionSpec, secrets: SecretStore) -> ExecutionResult:
    async def main() -> ExecutionResult:
        executor = InProcessExecutor(maker(secrets))
        try:
            return await executor.execute(spec, Watch())
        finally:
            await executor.close()

    return asyncio.run(main())


def model_settings(endpoint: MockEndpoint, **more: Any) -> dict[str, Any]:
    from steelyard.config.schema.request import ModelSettings

    settings = ModelSettings(id="m", base_url=endpoint.url).model_dump(mode="json")
    return settings | more


def where(environment: str, request: pytest.FixtureRequest) -> dict[str, Any]:
    if environment != "docker":
        return {}
    host, image = (request.getfixturevalue(name) for name in ("docker_host", "debian_image"))
    return {"host": host, "image": image}


@pytest.mark.parametrize("environment", ENVIRONMENTS)
@pytest.mark.parametrize("harness", [name for name in HARNESSES if name not in INSTALLED])
@pytest.mark.parametrize("benchmark", [PACK, "humaneval"], ids=["pack", "humaneval"])
def test_every_built_in_gives_the_same_result_over_the_seam(
    benchmark: str, harness: str, environment: str, request: pytest.FixtureRequest
) -> None:
    with MockEndpoint("--text", "no idea") as endpoint:
        protocol = PROTOCOLS.get(harness)
        model = model_settings(endpoint, api_protocol=protocol) if protocol else None
        one = spec(benchmark, harness, environment, model, where(environment, request))
        there, here = in_fresh_interpreter(one), in_process(one, SecretStore({}))
    assert there.outcome is Outcome.SCORED, there.issues
    assert there.metrics == here.metrics
    assert (there.answer, there.trust, there.usage) == (here.answer, here.trust, here.usage)
    assert bool(there.usage.requests) is (harness in PROTOCOLS)
    assert [step.source for step in there.steps] == [step.source for step in here.steps]
    assert bool(there.metrics[next(iter(there.metrics))]) is (harness == "oracle")


@pytest.mark.parametrize("environment", ENVIRONMENTS)
@pytest.mark.parametrize("harness", AGENTS)
def test_an_installed_agent_comes_to_the_same_over_the_seam(
    harness: str, environment: str, request: pytest.FixtureRequest
) -> None:
    install(harness)
    with MockEndpoint("--text", "no idea") as endpoint:
        model = model_settings(endpoint, api_protocol=PROTOCOLS[harness])
        one = spec(PACK, harness, environment, model, where(environment, request))
        there, here = in_fresh_interpreter(one), in_process(one, SecretStore({}))
    assert [issue.code for issue in there.issues] == [issue.code for issue in here.issues]
    assert (there.outcome, there.metrics, there.trust) == (here.outcome, here.metrics, here.trust)
    if environment == "host_process":  # which mounts nothing
        assert there.request_fault is not None
    else:
        assert there.usage.requests > 0


def test_what_is_kept_goes_over_the_seam_as_references_to_files_of_this_host(
    tmp_path: Path,
) -> None:
    components = Path(__file__).with_name("components.py")
    benchmark = ComponentSpec(f"{components}:Counted", {"collects": True, "scorer_crashes": True})
    harness = ComponentSpec(
        f"{components}:Scripted", {"execs": "touch out", "ledger": str(tmp_path / "ran")}
    )
    host = ComponentSpec("host_process")
    wanted = (ArtifactSpec(globs=("o*",)),)
    request = RequestSpec("r", benchmark, harness, host, None, save_artifacts=wanted)
    task, token = Task("t0", {"n": 0}), f"test-{secrets.token_hex(8)}"
    place = AttemptPlace(str(tmp_path), "g")
    first = in_fresh_interpreter(
        ExecutionSpec(request, task, 1, 1, token, 1, place=place), PYTHONPATH=str(Path.cwd())
    )
    assert first.outcome is Outcome.FAILED_FATAL
    assert [one["path"] for one in first.artifacts] == ["tasks/t0/attempt-1/artifacts/out"]
    assert first.checkpoint is not None
    digest = first.checkpoint["sha256"]
    found = read_checkpoint(tmp_path, "t0", 1, sha256=digest)
    assert found is not None
    assert found.generation == "g"
    assert first.work is not None
    assert Path(first.work.inputs["out"]).is_relative_to(tmp_path)
    mended = replace(request, benchmark=ComponentSpec(benchmark.id, {"collects": True}))
    again = in_fresh_interpreter(
        ExecutionSpec(mended, task, 1, 2, token, 1, saved=first.work, place=place),
        PYTHONPATH=str(Path.cwd()),
    )
    assert (again.outcome, again.checkpoint) == (Outcome.SCORED, first.checkpoint)
    assert (tmp_path / "ran").read_text() == "t0 1\n"


def test_a_secret_never_crosses_the_seam_and_the_worker_finds_its_own() -> None:
    with MockEndpoint("--text", "refund", "--require-key", SECRET) as endpoint:
        model = model_settings(endpoint, api_key={"$secret": "env:MODEL_KEY"})
        one = spec(PACK, "chat", "host_process", model)
        assert SECRET.encode() not in spec_to_bytes(one)
        without = in_fresh_interpreter(one)
        assert without.outcome is Outcome.FAILED_FATAL
        assert [issue.code for issue in without.issues] == [IssueCode.SECRET_UNAVAILABLE]
        assert "MODEL_KEY" in without.issues[0].message
        assert in_fresh_interpreter(one, MODEL_KEY=SECRET).outcome is Outcome.SCORED


def test_bytes_that_are_no_spec_are_refused_with_status_two() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "steelyard.engine.worker"],
        input=b"{}",
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 2
    assert b"execution-spec/1" in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_component_that_does_not_close_does_not_hold_up_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("steelyard.engine.executor.CLOSE_S", 0.05)

    class Holding(FakeHarness):
        async def close(self) -> None:
            await asyncio.sleep(60)

    async def main() -> None:
        executor = InProcessExecutor(maker(SecretStore({})))
        executor.adopt(fake_spec().request, services(None, Holding()))
        async with asyncio.timeout(10):
            await executor.close()

    asyncio.run(main())
