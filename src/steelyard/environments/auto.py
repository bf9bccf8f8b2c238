"""What `environment: auto` becomes on this machine. Never the host by itself."""

from __future__ import annotations

from steelyard.config.errors import BadInput
from steelyard.environments.bubblewrap import unavailable


class NoSafeEnvironment(BadInput):
    """Model-written code would run, and nothing on this machine can hold it."""

    def __init__(self, reason: str) -> None:
        why, _, remedy = reason.partition("; ")
        super().__init__(
            f"environment auto: model-written code will run, and no sandbox can hold it: {why}",
            remedy="one of:\n"
            f"    1. {remedy or 'make bubblewrap work on this machine'}\n"
            "    2. run on a Linux machine or virtual machine where bubblewrap works (a container "
            "engine as environment comes in a later release)\n"
            "    3. name `environment: host_process` yourself: the code then runs as you, held by "
            "nothing, and results say trust `host`",
        )


def resolve_auto(runs_model_code: bool) -> str:
    """Give the id of the environment that `auto` stands for. Blocking; quick after the first call.

    Args:
        runs_model_code: True where benchmark or harness runs what a model wrote.

    Raises:
        NoSafeEnvironment: it does, and no sandbox can be started here.
    """
    if not runs_model_code:
        return "host_process"
    if reason := unavailable():
        raise NoSafeEnvironment(reason)
    return "sandbox"
