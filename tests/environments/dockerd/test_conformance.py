"""Containers of Docker's own daemon keep the contract as those of podman do."""

from __future__ import annotations

import asyncio

import pytest

from steelyard.testing.environment_suite import builtin_suite
from tests.containers.images import DEBIAN

SUITE = builtin_suite("docker", image=DEBIAN, pull="never")


@pytest.mark.integration
@pytest.mark.usefixtures("docker_host", "debian_image")
@pytest.mark.parametrize("name", SUITE.names())
def test_a_container_of_dockerd_keeps_the_contract(name: str) -> None:
    asyncio.run(SUITE.check(name))
