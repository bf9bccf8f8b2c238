"""Each clause of the harness suite finds what breaks it, and lets pass what keeps it."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from steelyard.components.environment import ExecResult
from steelyard.components.registry import BUILTINS, Kind, find
from steelyard.testing.checks import Check
from steelyard.testing.fake_environment import FakeEnvironment
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


WORLDS: dict[str, dict[str, Any]] = {
    "chat": {},
    "oracle": {},
    "nop": {},
    "command": {
        "params": {"run": ["echo", "42"]},
        "environment": lambda: FakeEnvironment(lambda _call: ExecResult(0, b"42\n", b"")),
    },
}
"""What each built-in harness is given."""

BUILT_IN = [
    pytest.param(check, id=f"{name}-{check}")
    for name, world in WORLDS.items()
    for check in harness_suite(find(Kind.HARNESS, name).component, **world)
]


def test_every_built_in_harness_is_held_against_the_suite() -> None:
    assert set(WORLDS) == set(BUILTINS[Kind.HARNESS])


@pytest.mark.integration
@pytest.mark.parametrize("check", BUILT_IN)
def test_a_built_in_harness_keeps_every_clause(check: Check) -> None:
    check()
