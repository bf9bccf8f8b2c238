"""Parameters of components that are paths of this machine, as their types say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class WrittenPath:
    """Marks a parameter, a text or a list of them, that names files of this machine.

    `Annotated[Path, WrittenPath()]`: a relative path in a configuration file then starts from that
    file's folder, one of the command line from the working folder. What the parameter's validator
    sees is relative to the context's `base_dir`, or absolute.
    """

    is_path: Callable[[str], bool] = bool
    """Tells a path from what else the parameter may hold, an address, say."""


def path_fields(params: type[Any]) -> Mapping[str, Callable[[str], bool]]:
    """Give the parameters of a model that are paths, each with what tells a path."""
    fields = getattr(params, "model_fields", {})
    return {
        name: mark.is_path
        for name, field in fields.items()
        for mark in field.metadata
        if isinstance(mark, WrittenPath)
    }
