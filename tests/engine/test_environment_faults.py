"""Faults of an environment: of one attempt, or of every attempt of the request."""

from __future__ import annotations

import pytest

from steelyard.components.environment import EnvironmentFault
from steelyard.components.issues import IssueCode
from tests.engine.fakes import FakeBenchmark, FakeEnvironment
from tests.engine.test_attempt import codes, raising, run


@pytest.mark.parametrize("is_of_request", [True, False])
def test_a_fault_that_each_attempt_would_meet_is_one_of_the_request(is_of_request: bool) -> None:
    fault = EnvironmentFault("no image of that name")
    fault.is_of_request = is_of_request
    result = run(FakeBenchmark(needs=True), FakeEnvironment(on_open=raising(fault)))
    assert codes(result) == [IssueCode.ENVIRONMENT_OPEN_FAILED]
    assert (result.request_fault is not None) is is_of_request
