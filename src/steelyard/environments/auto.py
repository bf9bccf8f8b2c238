"""What `environment: auto` becomes on this machine. Never the host by itself."""

from __future__ import annotations

from steelyard.config.errors import BadInput
from steelyard.environments.bubblewrap import unavailable
from steelyard.environments.docker import finding


class NoSafeEnvironment(BadInput):
    """Model-written code would run, and nothing on this machine can hold it."""

    def __init__(self, reason: str, engine_reason: str) -> None:
        why, _, remedy = reason.partition("; ")
        no_engine, _, engine_remedy = engine_reason.partition("; ")
        super().__init__(
            "environment auto: model-written code will run, and nothing here can hold it: "
            f"{why}; {no_engine}",
            remedy="one of:\n"
            f"    1. {remedy or 'make bubblewrap work on this machine'}\n"
            f"    2. a container engine: {engine_remedy or 'install podman or Docker'}\n"
            "    3. name `environment: host_process` yourself: the code then runs as you, held by "
            "nothing, and results say trust `host`",
        )


def resolve_auto(runs_model_code: bool, *, wants_images: bool = False) -> str:
    """Give the id of the environment that `auto` stands for. Blocking; quick after the first call.

    Args:
        runs_model_code: True where benchmark or harness runs what a model wrote.
        wants_images: True where the benchmark's tasks bring images: only an engine has those, and
            that there is none here is said like anything else that the machine lacks.

    Raises:
        NoSafeEnvironment: it does, and neither a sandbox nor a container can be started here.
    """
    if wants_images:
        return "docker"
    if not runs_model_code:
        return "host_process"
    no_sandbox = unavailable()
    if no_sandbox is None:
        return "sandbox"
    no_engine = finding.unavailable()
    if no_engine is None:
        return "docker"
    raise NoSafeEnvironment(no_sandbox, no_engine)
