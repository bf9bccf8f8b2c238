"""What a harness makes once a run, before the first session of an agent opens."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from steelyard.components.benchmark import EnvironmentNeeds
from steelyard.components.environment import Environment, Mount
from steelyard.components.harness import Harness
from steelyard.components.issues import AttemptFault


def cannot_open(
    environment: Environment, needs: EnvironmentNeeds, mounts: Sequence[Mount]
) -> str | None:
    """Say what of these needs a provider cannot give, and the remedy; None where it can."""
    if needs.wants_image and not environment.offers_images:
        wanted = "an image of its own" if needs.image is None else f"the image {needs.image!r}"
        return (
            f"the task asks for {wanted}, and {environment.id} runs programs of this machine; "
            "name an environment with images, or ask for none (task folders: "
            "`benchmark.images: none`; a pack: without `environment.image`)"
        )
    if needs.network == "allowlist" and not environment.offers_allowlist:
        return (
            f"the task is to reach named hosts alone, and {environment.id} can only close the "
            "network or open it; name an environment with an allowlist"
        )
    if mounts and not environment.offers_mounts:
        return (
            f"the harness's program is mounted into the environment, and {environment.id} mounts "
            "nothing; name another environment"
        )
    return None


class Preparation:
    """Prepares a harness once, however many attempts ask; a fault it found holds for all."""

    def __init__(self, harness: Harness) -> None:
        self._harness = harness
        self._lock = asyncio.Lock()
        self._is_done = False
        self._fault: AttemptFault | None = None

    async def mounts(self) -> Sequence[Mount]:
        """Give what the agent's sessions must see of the host, once it is there.

        Whoever is cancelled while preparing leaves the work to the next who asks.

        Raises:
            AttemptFault: as `Harness.prepare`.
        """
        if not self._is_done:
            async with self._lock:
                if not self._is_done:
                    try:
                        await self._harness.prepare()
                    except AttemptFault as fault:
                        self._fault = fault
                    self._is_done = True
        if self._fault is not None:
            raise self._fault
        return self._harness.mounts()
