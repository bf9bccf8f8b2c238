"""What the cells of a set refer to, found before anything is made; every fault at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from steelyard.components.registry import Kind, find
from steelyard.components.scanner import Scanner
from steelyard.config import checks
from steelyard.config.errors import BadInput, Problem, SteelyardError, Where
from steelyard.config.project_parts import unset_variables
from steelyard.config.source import Node
from steelyard.config.validation import in_order
from steelyard.evalset.agent_refs import Deployment, resolve_agent
from steelyard.evalset.expansion import Expansion
from steelyard.evalset.manifest import Manifest, ReadManifest
from steelyard.evalset.pack_refs import OpenedPack, Packs
from steelyard.evalset.project import Project
from steelyard.evalset.set_document import PinnedPack

_T = TypeVar("_T")
_NAMES_OFFERED: Final = 10
"""Refs for which near names are looked for: with thousands of deployments that takes its time."""


class UnresolvedReferences(BadInput):
    """Packs or deployments that a set names are not there, or not fit to be used."""


@dataclass(frozen=True, slots=True)
class References:
    """What the cells of a set refer to."""

    packs: Mapping[str, PinnedPack]
    """By ref, as the manifest writes it."""
    agents: Mapping[tuple[str, str | None], Deployment]
    """By ref and label."""
    opened: Mapping[str, OpenedPack]
    """The packs with their cases, by ref."""
    judge: Node | None
    """The project's `judge`, as written."""

    def benchmark(self, ref: str, where: Node) -> Node:
        """Give the `benchmark` of a request for a pack.

        Args:
            ref: the pack's, as the manifest writes it.
            where: what stands for its place.
        """
        fields = {"id": Node(self.packs[ref].path, where.origin)}
        if self.judge is not None and self.opened[ref].benchmark.judges:
            fields["judge"] = self.judge
        return Node(fields, where.origin)


def resolve_references(
    read: ReadManifest,
    expansion: Expansion,
    project: Project,
    *,
    base_dir: Path | None = None,
) -> References:
    """Resolve every pack and deployment that a cell names. Blocking: packs are read whole.

    Args:
        read: the manifest.
        expansion: its cells; what none of them names is not looked at.
        project: whose packs and deployments are meant.
        base_dir: what relative paths of packs start from; by default the manifest's folder, and
            the project's where the manifest was read from no file.

    Raises:
        UnresolvedReferences: everything that is wrong, each with its place.
    """
    work = _Resolving(read, project, base_dir or _folder_of(read, project))
    manifest = read.manifest
    used_packs = {cell.pack_ref for cell in expansion.cells}
    used_agents = {(cell.agent_ref, cell.agent_label) for cell in expansion.cells}
    opened = {
        ref: found
        for index, ref in enumerate(manifest.packs)
        if ref in used_packs
        if (found := work.pack(ref, read.root.nearest(("packs", index)).origin.where)) is not None
    }
    agents = {
        (agent.deployment, agent.label): deployment
        for index, agent in enumerate(manifest.agents)
        if (agent.deployment, agent.label) in used_agents
        if (deployment := work.agent(index, agent.deployment)) is not None
    }
    work.judge(manifest, asks=any(pack.benchmark.judges for pack in opened.values()))
    if work.problems:
        raise UnresolvedReferences.of(in_order(work.problems))
    packs = {ref: pack.pinned for ref, pack in opened.items()}
    return References(packs, agents, opened, project.judge)


def _folder_of(read: ReadManifest, project: Project) -> Path:
    file = read.root.origin.where.file
    if file is None:
        return project.folder
    path = project.cwd / file
    return path.parent if path.is_file() else project.folder


class _Resolving:
    """Gathers what is wrong with the references of a set."""

    def __init__(self, read: ReadManifest, project: Project, base_dir: Path) -> None:
        self.read, self.project, self.base_dir = read, project, base_dir
        self.packs = Packs(project.packs)
        self.problems: list[Problem] = []
        self._unnamed = 0
        self._checked: set[int] = set()

    def pack(self, ref: str, where: Where) -> OpenedPack | None:
        return self._kept(lambda: self.packs.resolve(ref, self.base_dir, where))

    def agent(self, index: int, ref: str) -> Deployment | None:
        where = self.read.root.nearest(("agents", index, "deployment")).origin.where
        offers = self._unnamed < _NAMES_OFFERED
        found = self._kept(
            lambda: resolve_agent(ref, self.project.agents, where=where, offers_names=offers)
        )
        if found is None:
            self._unnamed += 1
        elif id(found) not in self._checked:
            self._checked.add(id(found))
            self.problems += deployment_problems(found, self.project)
        return found

    def judge(self, manifest: Manifest, *, asks: bool) -> None:
        """Look at the judge, where a pack or a scanner asks one."""
        for index, name in enumerate(manifest.scanner_ids):
            where = self.read.root.nearest(("scanners", index)).origin.where
            found = self._kept(partial(find, Kind.SCANNER, name, base_dir=self.base_dir), where)
            if found is None or not issubclass(found.component, Scanner):
                continue
            needs_model = found.component.needs_model
            if needs_model and self.project.judge is None:
                self.problems.append(
                    Problem(
                        f"the scanner {name} asks a judge model, and the project names none",
                        where,
                        remedy="write `judge: {model: {id: …, base_url: …}}` in steelyard.yaml",
                    )
                )
            asks = asks or needs_model
        if asks and self.project.judge is not None:
            self.problems += unset_variables(self.project.judge, self.project.environ)

    def _kept(self, look: Callable[[], _T], where: Where = Where()) -> _T | None:
        try:
            return look()
        except SteelyardError as error:
            self.problems += [
                problem if str(problem.where) else replace(problem, where=where)
                for problem in error.problems
            ]
            return None


def deployment_problems(deployment: Deployment, project: Project) -> list[Problem]:
    """Say what keeps a deployment from being used: unset variables, ids that lead nowhere."""
    whole = Node(dict(deployment.parts), deployment.node.origin)
    problems = [
        replace(problem, message=f"the deployment {deployment.name!r}: {problem.message}")
        for problem in unset_variables(whole, project.environ)
    ]
    for kind in ("harness", "environment"):
        part_node = deployment.parts.get(kind)
        named = part_node.at(("id",)) if part_node is not None else None
        if named is not None and isinstance(named.value, str) and "${" not in named.value:
            where = named.origin.where
            checks.unknown_id(kind, named.value, where, project.ids, problems, project.folder)
    return problems
