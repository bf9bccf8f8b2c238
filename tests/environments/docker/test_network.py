"""`network: open` is the engine's own network, and only what asks for it gets it."""

from __future__ import annotations

import asyncio

import pytest

from steelyard.components.environment import Network, OpenRequest
from steelyard.components.values import Trust
from steelyard.environments.docker.params import DockerParams
from steelyard.environments.docker.provider import Docker
from tests.containers.listening import WORD, listening

pytestmark = pytest.mark.integration

ASK_HOST = """
gateway=$(ip route | while read -r kind _ address rest; do
    [ "$kind" = default ] && echo "$address"; done)
wget -q -O - "http://${0:-$gateway}:$1/"
"""
"""`sh -c ASK_HOST ADDRESS PORT`; without an address, whoever routes for the container."""


def _asked(network: Network, image: str, open_network: str, address: str) -> tuple[bytes, Trust]:
    async def asked(port: int) -> tuple[bytes, Trust]:
        environment = Docker(DockerParams(image=image, open_network=open_network))
        try:
            session = await environment.open(OpenRequest(f"net-{open_network}", network=network))
            try:
                words = ["sh", "-c", ASK_HOST, address, str(port)]
                done = await session.exec(words, timeout_s=30)
                return done.stdout or done.stderr, session.trust
            finally:
                await session.close()
        finally:
            await environment.close()

    with listening() as port:
        return asyncio.run(asked(port))


@pytest.mark.parametrize(("open_network", "address"), [("bridge", ""), ("host", "127.0.0.1")])
def test_an_open_network_reaches_the_host_and_is_never_called_isolated(
    open_network: str, address: str, docker_host: str, busybox_image: str
) -> None:
    assert _asked("open", busybox_image, open_network, address) == (WORD, Trust.CONTAINED)


def test_a_named_open_network_opens_nothing_for_a_task_that_asks_for_none(
    docker_host: str, busybox_image: str
) -> None:
    said, _ = _asked("none", busybox_image, "host", "127.0.0.1")
    assert WORD not in said
    assert b"can't connect" in said
