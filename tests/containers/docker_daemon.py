"""Docker's own daemon for a test run, where its program is installed and root may start it."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from typing import ClassVar

from tests.containers import engines, keeper


def is_here() -> bool:
    """Say whether the suite also runs on Docker's daemon: root alone may start it."""
    return os.geteuid() == 0 and shutil.which("dockerd") is not None


@dataclass(frozen=True)
class Daemon(engines.ServedEngine):
    """A `dockerd` of this test run, with a containerd of its own."""

    NAME: ClassVar[str] = "dockerd"
    # Its mounts are those of a namespace of their own, and end with the last process in it.
    KEEPER: ClassVar[tuple[str, ...]] = (
        "unshare", "--mount", "--propagation", "private",
        sys.executable, "-m", "tests.containers.docker_keeper",
    )  # fmt: skip

    def helper_pids(self) -> list[int]:
        return keeper.of_folder(self.folder, "containerd-shim-runc-v2")

    def building(self) -> list[str]:
        listed = self.told("/containers/json?all=1")
        return [one["Command"] for one in listed if "steelyard.token" not in one["Labels"]]
