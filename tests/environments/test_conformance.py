"""Every built-in provider keeps the contract, as whoever runs the tests."""

from __future__ import annotations

import asyncio

import pytest

from steelyard.testing.environment_suite import BUILTIN_TRAITS, builtin_suite
from tests.containers.images import DEBIAN

PARAMS: dict[str, dict[str, str]] = {"docker": {"image": DEBIAN, "pull": "never"}}
CASES = [
    (provider, name)
    for provider in BUILTIN_TRAITS
    for name in builtin_suite(provider, **PARAMS.get(provider, {})).names()
]


@pytest.mark.integration
@pytest.mark.parametrize(("provider", "name"), CASES)
def test_a_provider_keeps_the_contract(
    provider: str, name: str, request: pytest.FixtureRequest
) -> None:
    if provider == "docker":
        request.getfixturevalue("docker_host")
        request.getfixturevalue("debian_image")
    asyncio.run(builtin_suite(provider, **PARAMS.get(provider, {})).check(name))
