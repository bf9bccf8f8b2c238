"""What people may ask of `sandbox`; apart, so that planning imports no more than this."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt

DEFAULT_CPU: Final = 1.0
DEFAULT_MEMORY_MB: Final = 2048
DEFAULT_PROCESSES: Final = 256
DEFAULT_DISK_MB: Final = 1024


class SandboxParams(BaseModel):
    """`environment: {id: sandbox, …}`. What is not named is what the task asks, else a default."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    cpu: PositiveFloat | None = None
    """Cores' worth of time; 1 by default. Held where there is a cpu cgroup."""
    memory_mb: Annotated[int, Field(ge=16)] | None = None
    """2048 by default; of all processes together where there is a memory cgroup."""
    processes: PositiveInt | None = None
    """Processes and threads at once; 256 by default."""
    disk_mb: PositiveInt | None = None
    """1024 by default: one file's size is held exactly, the sum is watched."""
    network: Literal["none", "open"] | None = None
    """`none` by default. `open` shares the host's network; trust is then `contained`."""
