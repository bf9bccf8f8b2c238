"""The registry as settings see it: which ids exist, which parameters are paths.

Nothing is imported to answer but by `path_fields`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from steelyard.components import registry
from steelyard.components.path_params import path_fields
from steelyard.components.registry import Kind
from steelyard.config.errors import SteelyardError

_STANDS_FOR: Final = {("environment", "auto"): "docker"}
"""What has every path that may be written for an id that is no component."""


class RegistryIds:
    """Answers `steelyard.config.checks.ComponentIds` from the registry."""

    def is_known(self, kind: str, name: str) -> bool:
        """True where the id names a component of that kind, or has the form of a path."""
        return registry.is_known(Kind(kind), name)

    def fault(self, kind: str, name: str, base_dir: Path | None) -> tuple[str, str] | None:
        """What is wrong with an id and what would be right; None where it leads somewhere."""
        found = registry.id_fault(Kind(kind), name, base_dir)
        return None if found is None else (found.message, found.remedy)

    def known(self, kind: str) -> Sequence[str]:
        """Every id and alias of a kind."""
        return registry.known_ids(Kind(kind))

    def canonical(self, kind: str, name: str) -> str:
        """Resolve an alias; other ids come back as they are."""
        return registry.canonical_id(Kind(kind), name)

    def path_fields(
        self, kind: str, name: str, base_dir: Path
    ) -> Mapping[str, Callable[[str], bool]]:
        """Give a component's parameters that are paths; none where it cannot be imported."""
        name = _STANDS_FOR.get((kind, name), name)
        try:
            found = registry.find(Kind(kind), name, base_dir=base_dir)
        except SteelyardError:
            return {}  # planning says so
        return path_fields(found.component.Params)


REGISTRY: Final = RegistryIds()
