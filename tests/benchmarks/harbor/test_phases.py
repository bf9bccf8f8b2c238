"""Each phase of a task in a container has the network that the task declares for it."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from steelyard.components.environment import NoParams
from steelyard.components.issues import IssueCode, Outcome
from steelyard.components.registry import Kind, find
from steelyard.engine.spec import ExecutionResult
from steelyard.harnesses.nop import Nop
from tests.benchmarks.harbor.task_folders import attempt, harbor, write_task
from tests.benchmarks.harbor.test_verify import Does
from tests.containers.listening import WORD, listening

pytestmark = pytest.mark.integration

HOST = "127.0.0.2"
"""Of this machine, and not among what programs reach without a proxy."""
OTHER = "127.0.0.3"
ASK = """\
import sys, urllib.error, urllib.request
try:
    print(urllib.request.urlopen(sys.argv[1], timeout=10).read().decode())
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())
except OSError as error:
    print("unreached", error)
"""
REWARD = "/logs/verifier/reward.txt"


def ask(port: int, *hosts: str, into: str) -> str:
    """A shell line that asks each host and notes what came."""
    asks = "; ".join(f"python3 /ask.py http://{host}:{port}/" for host in hosts)
    return f"{{ {asks}; }} >>{into} 2>&1"


def run(
    tmp_path: Path, image: str, toml: str, agent: str, test: str, **rest: Any
) -> ExecutionResult:
    files = {
        "environment/Dockerfile": f"FROM {image}\nCOPY ask.py /ask.py\nWORKDIR /app\n",
        "environment/ask.py": ASK,
        **rest,
    }
    task = write_task(tmp_path, toml=toml, test=test, files=files)
    docker = find(Kind.ENVIRONMENT, "docker").component
    harness = Does(agent) if agent else Nop(NoParams())
    return attempt(harbor(task, images="task"), harness, docker(docker.Params()))


def passes(*conditions: str) -> str:
    return f"if {' && '.join(conditions)}; then echo 1 >{REWARD}; else echo 0 >{REWARD}; fi"


@pytest.mark.usefixtures("docker_host")
def test_an_allowlist_lets_the_agent_reach_the_listed_host_and_no_other(
    tmp_path: Path, debian_image: str
) -> None:
    toml = f'[environment]\nnetwork_mode = "allowlist"\nallowed_hosts = ["{HOST}"]\n'
    name = socket.gethostname()
    with listening() as port:
        raw = f"python3 -c 'import socket; socket.create_connection((\"{HOST}\", {port}), 5)'"
        agent = f"{ask(port, HOST, into='one')}; {ask(port, OTHER, name, into='other')}; "
        agent += f"{raw} 2>&1 | tail -n 1 >raw"
        test = passes(
            f"grep -qx {WORD.decode()} one",
            f"! grep -q {WORD.decode()} other",
            "[ $(grep -c '^403 .*not among the allowed hosts' other) = 2 ]",
            "grep -q Error raw",
            # The tests share the environment, and its network.
            f"python3 /ask.py http://{HOST}:{port}/ | grep -qx {WORD.decode()}",
        )
        result = run(tmp_path, debian_image, toml, agent, f"cat one other raw; {test}")
    assert result.metrics == {"passed": True, "reward": 1.0}, (result.details, result.issues)


@pytest.mark.usefixtures("docker_host")
def test_tests_in_the_agents_container_may_reach_what_the_agent_may_not(
    tmp_path: Path, debian_image: str
) -> None:
    toml = f"""
    [environment]
    network_mode = "no-network"
    [verifier]
    network_mode = "allowlist"
    allowed_hosts = ["{HOST}"]
    """
    with listening() as port:
        agent = ask(port, HOST, into="tried")
        test = f"{ask(port, HOST, into='got')}; {ask(port, OTHER, into='other')}; " + passes(
            "grep -q unreached tried", f"grep -qx {WORD.decode()} got", "grep -q '^403' other"
        )
        result = run(tmp_path, debian_image, toml, agent, test)
    assert result.metrics == {"passed": True, "reward": 1.0}, (result.details, result.issues)


@pytest.mark.usefixtures("docker_host")
def test_what_the_agent_alone_is_refused_is_the_tests_by_their_environment(
    tmp_path: Path, debian_image: str
) -> None:
    toml = """
    [environment]
    network_mode = "public"
    [agent]
    network_mode = "no-network"
    """
    with listening() as port:
        agent = ask(port, HOST, into="tried")
        # A private address is not what `public` means: refused, and not for want of a way out.
        test = f"{ask(port, HOST, into='got')}; cat got; " + passes(
            "grep -q unreached tried", "grep -q '^502 .*private address' got"
        )
        result = run(tmp_path, debian_image, toml, agent, test)
    assert result.metrics == {"passed": True, "reward": 1.0}, (result.details, result.issues)


@pytest.mark.usefixtures("docker_host")
def test_what_the_agent_may_reach_may_be_closed_to_the_tests(
    tmp_path: Path, debian_image: str
) -> None:
    toml = f"""
    [environment]
    network_mode = "allowlist"
    allowed_hosts = ["{HOST}"]
    [verifier]
    network_mode = "no-network"
    """
    with listening() as port:
        agent = ask(port, HOST, into="got")
        # Asked by the proxy's address: the tests are not told of it any more.
        again = f"env http_proxy=http://127.0.0.1:8378 python3 /ask.py http://{HOST}:{port}/"
        test = f"{again} >after; " + passes(f"grep -qx {WORD.decode()} got", "grep -q unre after")
        result = run(tmp_path, debian_image, toml, agent, f"cat got; {test}; cat after")
    assert result.metrics == {"passed": True, "reward": 1.0}, (result.details, result.issues)


@pytest.mark.usefixtures("docker_host")
def test_an_agent_that_takes_the_proxys_port_does_not_take_the_tests_network(
    tmp_path: Path, debian_image: str
) -> None:
    toml = f"""
    [environment]
    network_mode = "no-network"
    [verifier]
    network_mode = "allowlist"
    allowed_hosts = ["{HOST}"]
    """
    squat = "import socket, time; s = socket.socket(); s.bind(('127.0.0.1', 8378)); s.listen(); "
    squat += "print('held', flush=True); time.sleep(600)"
    with listening() as port:
        agent = f'setsid python3 -c "{squat}" >held & until grep -q held held; do sleep 0.1; done'
        test = f"{ask(port, HOST, into='got')}; cat got; " + passes(f"grep -qx {WORD.decode()} got")
        result = run(tmp_path, debian_image, toml, agent, test)
    assert result.metrics == {"passed": True, "reward": 1.0}, (result.details, result.issues)


@pytest.mark.usefixtures("docker_host")
def test_each_step_has_the_network_that_it_declares(tmp_path: Path, debian_image: str) -> None:
    toml = f"""
    [environment]
    network_mode = "no-network"
    [[steps]]
    name = "out"
    [steps.agent]
    network_mode = "allowlist"
    allowed_hosts = ["{HOST}"]
    [[steps]]
    name = "in"
    """
    with listening() as port:
        first = f"{ask(port, HOST, into='t')}; " + passes(
            f"grep -qx {WORD.decode()} seen", "grep -q unreached t"
        )
        second = passes("tail -n 1 seen | grep -q unreached")
        steps = {
            "steps/out/instruction.md": "Ask.",
            "steps/out/tests/test.sh": f"#!/bin/sh\n{first}\n",
            "steps/in/instruction.md": "Ask again.",
            "steps/in/tests/test.sh": f"#!/bin/sh\ncat seen; {second}\n",
        }
        agent = ask(port, HOST, into="seen")
        result = run(tmp_path, debian_image, toml, agent, "true", **steps)
    assert result.metrics == {"passed": True, "reward": 1.0}, (result.details, result.issues)


@pytest.mark.usefixtures("docker_host")
def test_an_open_network_that_must_close_is_refused_before_the_agent_works(
    tmp_path: Path, debian_image: str
) -> None:
    toml = '[environment]\nnetwork_mode = "public"\n[verifier]\nnetwork_mode = "no-network"\n'
    result = run(tmp_path, debian_image, toml, "echo worked", passes("true"))
    (issue,) = result.issues
    assert (result.outcome, issue.code) == (Outcome.FAILED_FATAL, IssueCode.TASK_INVALID)
    assert "the verifier shares the environment of the agent" in issue.message
    assert "cannot be closed" in issue.message
    assert not result.steps
