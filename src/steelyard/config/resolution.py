"""What resolving gives: the settings, their secrets, and where each value comes from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from steelyard.config import layers
from steelyard.config.errors import Problem, Where
from steelyard.config.layers import LayerFile
from steelyard.config.project_parts import ProjectParts
from steelyard.config.schema.orchestration import Orchestration
from steelyard.config.secrets import SecretStore
from steelyard.config.source import FieldPath, Node, Origin


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where each value of a resolved tree comes from."""

    root: Node

    def origin(self, path: FieldPath) -> Origin | None:
        """Give a value's origin; None where it is a built-in default."""
        node = self.root.at(path)
        return node.origin if node is not None else None

    def layer(self, path: FieldPath) -> str:
        """Give the name of the layer that a value comes from."""
        origin = self.origin(path)
        return origin.layer if origin is not None else layers.DEFAULT

    def where(self, path: FieldPath) -> Where:
        """Give the place of a value, or of the nearest mapping around it."""
        return self.root.nearest(path).origin.where


@dataclass(frozen=True, slots=True)
class Resolution:
    """A resolved orchestration and what is known about it."""

    orchestration: Orchestration
    secrets: SecretStore
    provenance: Provenance
    warnings: tuple[Problem, ...]
    base_dir: Path
    """What relative component paths start from: the orchestration's folder."""
    healed: frozenset[FieldPath] = frozenset()
    """Fields left out or filled in since they are wrong: it may be judged, but not run."""


@dataclass(frozen=True, slots=True)
class ConfigResolution:
    """The configuration files laid over each other, without an orchestration."""

    provenance: Provenance
    """Of a tree in the form of `ConfigFile`."""
    files: tuple[LayerFile, ...]
    warnings: tuple[Problem, ...]
    secrets: SecretStore
    parts: tuple[ProjectParts, ...] = ()
    """What each file says for eval sets, lowest first."""
