"""Each clause of the harness suite finds what breaks it, and lets pass what keeps it."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from steelyard.components.environment import ExecResult
from steelyard.components.gateway import ModelAccess
from steelyard.components.registry import BUILTINS, Kind, find
from steelyard.harnesses.cli_agent import Agent
from steelyard.harnesses.cli_agent.table import AGENTS
from steelyard.testing.checks import Check
from steelyard.testing.fake_environment import ExecCall, FakeEnvironment
from steelyard.testing.harness_suite import CLAUSES, harness_suite
from tests.testing.broken_harnesses import BROKEN, STARTED, Sound

SEAM = "it_runs_in_a_fresh_interpreter"
"""Starts an interpreter: looked at where it is what a harness is for."""


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    """Take back what a broken harness does to the process."""
    state = random.getstate()
    yield
    random.setstate(state)
    os.environ.pop("STEELYARD_TEST_LITTER", None)
    while STARTED:
        pid = STARTED.pop()
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _failed(checks: tuple[Check, ...]) -> set[str]:
    failed = set()
    for check in checks:
        try:
            check()
        except (Exception, asyncio.CancelledError):
            failed.add(check.name)
    return failed


def test_every_clause_has_something_that_breaks_it() -> None:
    harness_suite(Sound)
    assert set(BROKEN) == set(CLAUSES.names())


@pytest.mark.integration
@pytest.mark.parametrize("check", harness_suite(Sound), ids=str)
def test_what_is_sound_keeps_every_clause(check: Check) -> None:
    check()


@pytest.mark.integration
@pytest.mark.parametrize("clause", BROKEN)
def test_what_is_broken_breaks_its_clause_and_no_other(clause: str) -> None:
    broken = BROKEN[clause]
    checks = harness_suite(broken.component, **broken.suite)
    failed = _failed(tuple(check for check in checks if check.name == clause or check.name != SEAM))
    assert clause in failed
    assert failed <= {clause, *broken.also}


@pytest.fixture
def agent_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs of the agents' names on the search path: they say their version, and do nothing."""
    for agent in AGENTS.values():
        program = tmp_path / agent.own_program[0]
        program.write_text(f"#!/bin/sh\necho version {agent.version}\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")


def as_agent_program(agent: Agent, call: ExecCall) -> ExecResult:
    """Answer as an environment that brings an agent's program."""
    if tuple(call.argv[len(agent.own_program) :]) == agent.version_words:
        return ExecResult(0, f"version {agent.version}".encode(), b"")
    return ExecResult(0, b"", b"")


WORLDS: dict[str, dict[str, Any]] = {
    "chat": {},
    "oracle": {},
    "terminal_agent": {},
    "nop": {},
    "command": {
        "params": {"run": ["echo", "42"]},
        "environment": lambda: FakeEnvironment(lambda _call: ExecResult(0, b"42\n", b"")),
    },
    **{
        name: {
            "params": {"install": "environment"},
            "environment": partial(FakeEnvironment, partial(as_agent_program, agent)),
            "access": ModelAccess("http://127.0.0.1:1", "token", "m", agent.protocols[0]),
        }
        for name, agent in AGENTS.items()
    },
}
"""What each built-in harness is given."""

BUILT_IN = [
    pytest.param(check, id=f"{name}-{check}")
    for name, world in WORLDS.items()
    for check in harness_suite(find(Kind.HARNESS, name).component, **world)
]


ELSEWHERE = {"terminus2": "tests/harnesses/terminus2/test_terminus2.py, with the real package"}


def test_every_built_in_harness_is_held_against_the_suite() -> None:
    assert {*WORLDS, *ELSEWHERE} == set(BUILTINS[Kind.HARNESS])


@pytest.mark.integration
@pytest.mark.usefixtures("agent_programs")
@pytest.mark.parametrize("check", BUILT_IN)
def test_a_built_in_harness_keeps_every_clause(check: Check) -> None:
    check()
