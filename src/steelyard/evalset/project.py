"""The project that eval sets refer to: its packs, deployments and judge, with their places."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from steelyard.components.known import REGISTRY
from steelyard.config.checks import ComponentIds, RememberedIds
from steelyard.config.layers import merged, project_file, shown
from steelyard.config.project_parts import deployments
from steelyard.config.resolution import ConfigResolution
from steelyard.config.resolve import resolve_config
from steelyard.config.source import Node
from steelyard.evalset.agent_refs import Agents, deployment_of
from steelyard.evalset.own_packs import OwnPacks, pack_folders


@dataclass(frozen=True, slots=True)
class Project:
    """What a project's configuration says for eval sets."""

    folder: Path
    """Of `steelyard.yaml`; the working folder where there is none."""
    cwd: Path
    """What shown paths start from."""
    file: str | None
    """How messages name `steelyard.yaml`; None where there is none."""
    agents: Agents
    packs: OwnPacks
    judge: Node | None
    """As written: `model`, `samples`; None where no model judges."""
    environ: Mapping[str, str]
    """Where `${NAME}` are looked up."""
    config: ConfigResolution
    """The configuration files, secrets sealed, what is unset left by name."""
    ids: ComponentIds = field(default_factory=lambda: RememberedIds(REGISTRY))
    """Which harnesses and environments there are."""


def read_project(
    config_files: Sequence[Path] = (),
    *,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Project:
    """Read the configuration files. No pack is opened, no variable of a deployment looked up.

    Args:
        config_files: `--config` files, lowest first; relative to `cwd`.
        environ: the variables that references name; this process's own by default.
        cwd: where the project's file is looked for; the working directory by default.

    Raises:
        InvalidSettings: everything that is wrong with the files.
    """
    environ = os.environ if environ is None else environ
    cwd = Path.cwd() if cwd is None else cwd
    config = resolve_config(config_files=config_files, environ=environ, cwd=cwd)
    file = project_file(cwd)
    folder = cwd if file is None else file.parent
    judge = merged(one.root.value.get("judge") for one in config.parts)
    packs = OwnPacks(
        entry
        for one in config.parts
        for node in one.items("packs")
        for entry in pack_folders(node, one.folder)
    )
    return Project(
        folder=folder,
        cwd=cwd,
        file=None if file is None else shown(file, cwd),
        agents=Agents(
            deployment_of(node, one.folder, packs) for one, node in deployments(config.parts)
        ),
        packs=packs,
        judge=judge if judge is not None and judge.value is not None else None,
        environ=environ,
        config=config,
    )
