"""Both built-in providers keep the contract, as whoever runs the tests."""

from __future__ import annotations

import asyncio

import pytest

from steelyard.testing.environment_suite import builtin_suite

CASES = [
    (provider, name)
    for provider in ("host_process", "sandbox")
    for name in builtin_suite(provider).names()
]


@pytest.mark.integration
@pytest.mark.parametrize(("provider", "name"), CASES)
def test_a_provider_keeps_the_contract(provider: str, name: str) -> None:
    asyncio.run(builtin_suite(provider).check(name))
