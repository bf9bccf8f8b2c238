"""The manifest of an eval set (`evalset/v1`), as people write it.

Strict: what is unknown, of another type, blank or not finite is an error with its place.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, Field, PositiveInt, field_validator, model_validator

from steelyard.components.registry import Kind, canonical_id, is_known, known_ids
from steelyard.config.errors import Problem
from steelyard.config.names import normalise
from steelyard.config.resolve import InvalidSettings
from steelyard.config.schema.request import MAX_SEED, NonNegativeNumber, Output, Strict
from steelyard.config.schema.written import ConfigExecution, ConfigRuntime
from steelyard.config.source import Node, plain, read_file
from steelyard.config.validation import FieldFault, conform, in_order, nearest
from steelyard.evalset.keys import san

SCHEMA: Final = "evalset/v1"


def _not_blank(value: str) -> str:
    if not value.strip():
        raise FieldFault("blank text", remedy="write a name")
    return value


def _one_folder(value: str) -> str:
    if any(char in value for char in "/\\\0") or not normalise(value):
        raise FieldFault(
            f"{value!r} cannot be a folder's name",
            remedy="results lie in a folder of that name: no / and no \\, and letters or digits",
        )
    return value


Name = Annotated[str, AfterValidator(_not_blank)]
Seed = Annotated[int, Field(gt=0, le=MAX_SEED)]


class Agent(Strict):
    """Who works on the packs."""

    deployment: Name
    """A deployment of the project: its UUID or exact name."""
    label: Name | None = None
    """Stands in matrix keys in place of the deployment; unique after normalisation."""


class Seeds(Strict):
    """Where the seeds of repeats come from."""

    strategy: Literal["auto", "explicit"] = "auto"
    """`auto`: one a repeat, from the set's name and the repeat; `explicit`: those of `seeds`."""
    seeds: list[Seed] | None = None
    """With `explicit` only: the seed of repeat 1, of repeat 2, …; unique, as many as repeats."""

    @model_validator(mode="after")
    def _fits_its_strategy(self) -> Self:
        if self.strategy == "auto" and self.seeds is not None:
            raise FieldFault(
                "seeds.seeds is given, and seeds.strategy is auto",
                "seeds",
                remedy="write `strategy: explicit`, or take seeds.seeds out",
            )
        if self.strategy == "explicit" and not self.seeds:
            raise FieldFault("seeds.strategy is explicit, and seeds.seeds is missing",
                             remedy="list one seed for each repeat under seeds.seeds")  # fmt: skip
        for seed, times in Counter(self.seeds or ()).items():
            if times > 1:
                raise FieldFault(
                    f"the seed {seed} stands {times} times in seeds.seeds: repeats would be alike",
                    "seeds",
                    remedy="give each repeat a seed of its own",
                )
        return self


class SetLimits(Strict):
    """What the whole set may take."""

    max_concurrent_runs: PositiveInt | None = None
    """Cells that have started and not ended, over the whole set; by default no limit."""
    budget_usd: NonNegativeNumber | None = None
    """Dollars that the whole set may spend, kept by reservation."""


class SetGates(Strict):
    """What the set is held to: each is a gate of `submit` and `report`."""

    min_score: float | None = None
    """The least mean score of each agent."""
    max_regression: Annotated[float, Field(ge=0)] | None = None
    """How far the score of a pair may lie below the baseline's."""
    max_cost_usd: NonNegativeNumber | None = None
    """Dollars that the set may have cost."""


class Manifest(Strict):
    """An eval set: packs x agents x models x repeats."""

    schema_: Annotated[Literal["evalset/v1"], Field(alias="schema")]
    """The format: `evalset/v1`."""
    name: Annotated[Name, AfterValidator(_one_folder)]
    """What people call the set; names its results' folder, so it holds no slash."""
    packs: Annotated[list[Name], Field(min_length=1)]
    """Pack refs: a version's UUID, `slug`, `slug@N`, `catalog/<slug>`, or a pack's folder."""
    agents: Annotated[list[Agent], Field(min_length=1)]
    """Who works on them."""
    models: list[Name] | None = None
    """Model ids that take the place of the deployments' own; none: one implicit slot."""
    repeats: PositiveInt | None = None
    """How often each combination is run; 1 by default."""
    seeds: Seeds = Seeds.model_construct()
    """Where the seeds of repeats come from."""
    limits: SetLimits = SetLimits.model_construct()
    """What the whole set may take."""
    case_fanout: bool = False
    """Let each case of a cell start by itself; otherwise one after the other."""
    scanners: list[Name] = Field(default_factory=list)
    """What reads the trajectories after the set completes."""
    include: list[Name] | None = None
    """Only cells whose matrix key one of these patterns matches (`*` crosses slashes)."""
    exclude: list[Name] = Field(default_factory=list)
    """No cell whose matrix key one of these patterns matches."""
    execution: ConfigExecution = ConfigExecution.model_construct()
    """How attempts are executed, as in an orchestration."""
    runtime: ConfigRuntime = ConfigRuntime.model_construct()
    """Controls of the whole, as in an orchestration."""
    output: Output = Output.model_construct()
    """How results are organised; `run_id` names the set."""
    gates: SetGates = SetGates.model_construct()
    """What the set is held to."""
    baseline: Name | None = None
    """An earlier eval set to compare with: its id or folder."""

    @field_validator("scanners")
    @classmethod
    def _scanners_are_known(cls, names: list[str]) -> list[str]:
        for index, name in enumerate(names):
            if not is_known(Kind.SCANNER, name):
                known = known_ids(Kind.SCANNER)
                near = nearest(name, known)
                hint = f"did you mean {near}? " if near else ""
                raise FieldFault(
                    f"unknown scanner {name!r}",
                    index,
                    remedy=f"{hint}known: {', '.join(known)}",
                )
        if twice := [name for name, times in Counter(names).items() if times > 1]:
            raise FieldFault(f"the scanner {twice[0]!r} is named twice", remedy="name it once")
        return names

    @model_validator(mode="after")
    def _seeds_are_as_many_as_repeats(self) -> Self:
        seeds, repeats = self.seeds.seeds, self.repeats or 1
        if self.seeds.strategy == "explicit" and seeds and len(seeds) != repeats:
            raise FieldFault(
                f"{len(seeds)} seeds for {repeats} repeats: seeds.seeds must hold {repeats}",
                "seeds",
                "seeds",
                remedy="give one seed for each repeat",
            )
        return self

    @model_validator(mode="after")
    def _labels_are_unique(self) -> Self:
        seen: dict[str, int] = {}
        for index, agent in enumerate(self.agents):
            if agent.label is None:
                continue
            first = seen.setdefault(san(agent.label), index)
            if first != index:
                raise FieldFault(
                    f"the label {agent.label!r} of agents[{index}] and the label "
                    f"{self.agents[first].label!r} of agents[{first}] are one in matrix keys",
                    "agents", index, "label",
                    remedy="give each agent a label that differs by more than spaces",
                )  # fmt: skip
        return self

    @property
    def repeat_count(self) -> int:
        """How often each combination is run."""
        return self.repeats or 1

    @property
    def scanner_ids(self) -> tuple[str, ...]:
        """The scanners, aliases resolved."""
        return tuple(canonical_id(Kind.SCANNER, name) for name in self.scanners)


@dataclass(frozen=True, slots=True)
class ReadManifest:
    """A manifest and the document it was read from, for the places of later faults."""

    manifest: Manifest
    root: Node


def read_manifest(path: Path, *, shown: str | None = None) -> ReadManifest:
    """Read a manifest, YAML or JSON by its suffix. Nothing but the file is read.

    Raises:
        BadInput: everything that is wrong with it, at once.
    """
    root = read_file(path, layer="manifest", shown=shown)
    return checked_manifest(root)


def checked_manifest(root: Node) -> ReadManifest:
    """Hold a document against the format.

    Raises:
        BadInput: everything that is wrong with it, at once.
    """
    if not isinstance(root.value, dict):
        problem = Problem(
            "the manifest must be a mapping", root.origin.where, remedy="write `schema: evalset/v1`"
        )
        raise InvalidSettings.of([problem])
    problems: list[Problem] = []
    conform(root, Manifest, problems)
    if problems:
        raise InvalidSettings.of(in_order(problems))
    return ReadManifest(Manifest.model_validate(plain(root), strict=True), root)
