"""`command` keeps every clause of the harness contract, over real processes."""

from __future__ import annotations

import pytest

from steelyard.components.environment import NoParams
from steelyard.environments.host_process import HostProcess
from steelyard.harnesses.command import Command
from steelyard.testing.checks import Check
from steelyard.testing.harness_suite import harness_suite

SUITE = harness_suite(Command, {"run": ["cat"]}, environment=lambda: HostProcess(NoParams()))


@pytest.mark.integration
@pytest.mark.parametrize("check", SUITE, ids=str)
def test_command_keeps_the_clause(check: Check) -> None:
    check()
