"""The providers as an ordinary user, and where user namespaces are refused."""

from __future__ import annotations

import os

import pytest

from tests.environments.people import ordinary_user, run_python, without_namespaces

OPEN_SANDBOX = """
import asyncio
from steelyard.components.environment import EnvironmentFault, OpenRequest
from steelyard.environments.sandbox import Sandbox, SandboxParams
async def main():
    session = await Sandbox(SandboxParams()).open(OpenRequest("t1"))
    result = await session.exec(["id", "-u"])
    print(session.trust.value, session.description.details["outside"], result.stdout_text.strip())
    await session.close()
asyncio.run(main())
"""


@pytest.mark.integration
@pytest.mark.parametrize("provider", ["sandbox", "host_process"])
def test_an_ordinary_user_passes_the_whole_suite(provider: str) -> None:
    with ordinary_user() as (prefix, variables):
        done = run_python(
            ["-m", "steelyard.testing.environment_suite", provider], prefix=prefix, env=variables
        )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-4000:]
    assert done.stdout.count("passed ") > 30
    assert "FAILED" not in done.stdout


@pytest.mark.integration
def test_an_ordinary_user_gets_an_isolated_sandbox() -> None:
    with ordinary_user() as (prefix, variables):
        done = run_python(["-c", OPEN_SANDBOX], prefix=prefix, env=variables)
    assert done.stdout.split() == ["isolated", "calling", "user", "65534"], done


@pytest.mark.integration
def test_without_user_namespaces_the_sandbox_says_so_and_opens_nothing() -> None:
    told = run_python(
        ["-c", "from steelyard.environments.sandbox import Sandbox; print(Sandbox.unavailable())"],
        prefix=without_namespaces(),
    )
    assert "user namespaces are off" in told.stdout, told
    assert "sysctl -w user.max_user_namespaces" in told.stdout, told
    opened = run_python(["-c", OPEN_SANDBOX], prefix=without_namespaces())
    assert opened.returncode == 1, opened
    assert "EnvironmentFault: user namespaces are off" in opened.stderr, opened
    assert opened.stdout == ""


@pytest.mark.integration
def test_auto_without_user_namespaces_is_a_refusal_with_three_remedies() -> None:
    program = (
        "from steelyard.environments.auto import resolve_auto, NoSafeEnvironment\n"
        "print(resolve_auto(False))\n"
        "try: print(resolve_auto(True))\n"
        "except NoSafeEnvironment as error: print(error.exit_status, error)"
    )
    nowhere = {**os.environ, "DOCKER_HOST": "unix:///no/engine"}
    told = run_python(["-c", program], prefix=without_namespaces(), env=nowhere)
    lines = told.stdout.splitlines()
    assert lines[0] == "host_process", told
    assert lines[1].startswith("2 environment auto: model-written code will run"), told
    assert [line.strip()[:2] for line in lines[-3:]] == ["1.", "2.", "3."], told
    assert "sysctl" in lines[-3]
    assert "host_process" in lines[-1]


@pytest.mark.integration
def test_auto_without_user_namespaces_falls_to_a_container_engine(docker_host: str) -> None:
    program = "from steelyard.environments.auto import resolve_auto; print(resolve_auto(True))"
    told = run_python(["-c", program], prefix=without_namespaces())
    assert told.stdout == "docker\n", told
