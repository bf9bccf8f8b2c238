"""Each clause of the environment suite finds what breaks it, and lets pass what keeps it."""

from __future__ import annotations

import asyncio
from json import JSONDecodeError

import pytest

from steelyard.components.contract import UnusableComponent
from steelyard.components.environment import EnvironmentFault
from steelyard.testing.environment_suite import (
    BUILTIN_TRAITS,
    EnvironmentSuite,
    SuiteTraits,
    environment_suite,
)
from tests.testing.broken_environments import BROKEN, FORGOTTEN
from tests.testing.twisted import Twist, Twisted

RAISED: dict[str, type[Exception]] = {
    "input_that_nobody_reads_is_no_fault": EnvironmentFault,
    "arguments_pass_unchanged": JSONDecodeError,
    "arguments_that_cannot_be_passed_are_the_programs_fault": ValueError,
    "an_unused_session_closes": EnvironmentFault,
    "links_inside_are_followed": ValueError,
    "it_declares_what_it_is": UnusableComponent,
}
"""Where the provider itself, or the text it gave, is what raises."""


ALL_CLAIMS = dict.fromkeys(
    ("keeps_sessions", "offers_mounts", "offers_allowlist", "owns_root"), True
)
"""What is not claimed by default, and does not contradict what is."""


def _suite(twist: Twist) -> EnvironmentSuite:
    made = twist.environment or Twisted
    return EnvironmentSuite(lambda: made(twist), BUILTIN_TRAITS[twist.provider])  # type: ignore[arg-type]


def test_every_clause_has_something_that_breaks_it() -> None:
    every = environment_suite(Twisted, SuiteTraits(**ALL_CLAIMS))
    services = environment_suite(Twisted, SuiteTraits(keeps_services=True))
    assert set(BROKEN) == {check.name for check in (*every, *services)}


@pytest.mark.integration
@pytest.mark.parametrize("clause", BROKEN)
def test_a_provider_with_one_twist_breaks_its_clause(
    clause: str, request: pytest.FixtureRequest
) -> None:
    """The same provider without it keeps the clause: it is the twist that is found."""
    twist = BROKEN[clause]
    if twist.provider == "docker":
        request.getfixturevalue("docker_host")
        request.getfixturevalue("debian_image")
    asyncio.run(_suite(Twist(twist.provider)).check(clause))

    async def broken() -> None:
        try:
            await _suite(twist).check(clause)
        finally:
            while FORGOTTEN:
                await FORGOTTEN.pop().close()

    with pytest.raises(RAISED.get(clause, AssertionError)):
        asyncio.run(broken())


def test_a_clause_that_is_left_out_must_exist() -> None:
    with pytest.raises(ValueError, match="no such clause: streams_apart"):
        environment_suite(Twisted, leave_out=["streams_apart"])


def test_what_a_provider_does_not_claim_is_not_asked_of_it() -> None:
    checks = environment_suite(Twisted, BUILTIN_TRAITS["host_process"], leave_out=["folders_go_in"])
    names = {check.name for check in checks}
    assert "folders_come_out" in names
    assert names.isdisjoint({"folders_go_in", "a_memory_bomb_is_stopped"})
