"""An image without tmux gets one where its network is open, as from Harbor."""

from __future__ import annotations

import pytest

from steelyard.components.environment import OpenRequest, Session
from steelyard.environments.docker.params import DockerParams
from steelyard.environments.docker.provider import Docker
from steelyard.harnesses.terminus2 import Terminus2
from tests.harnesses.terminus2.package import DONE, typed
from tests.harnesses.terminus2.shared import SharedTerminus2
from tests.harnesses.terminus2.test_terminus2 import context, work

pytestmark = pytest.mark.integration


def test_an_environment_with_a_network_gets_its_tmux_from_its_own_package_manager(
    docker_host: str, debian_image: str
) -> None:
    class Without(Docker):
        """Containers of an image that was made without tmux, whose network is open."""

        async def open(self, request: OpenRequest) -> Session:
            session = await super().open(request)
            gone = await session.exec(["sh", "-c", "dpkg -r tmux && ! command -v tmux"])
            assert gone.exit_code == 0, gone
            return session

    async def seen(session: Session) -> str:
        words = ["sh", "-c", "cat made && dpkg -s tmux"]
        return (await session.exec(words)).stdout_text

    environment = Without(DockerParams(image=debian_image, network="open", open_network="host"))
    keys = typed("echo by hand >made\n")
    result, said = work(
        SharedTerminus2(Terminus2.Params()),
        context(keys, DONE, DONE, environment=environment),
        seen,
    )
    assert result.issues == ()
    assert said.startswith("by hand\n")
    assert "Status: install ok installed" in said
