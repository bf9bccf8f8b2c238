"""The specification of a fix run: what is measured, how, and what may be changed.

Written by people, frozen before the baseline. Rules over several fields are in `spec_rules.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from steelyard.config.schema.request import Strict
from steelyard.config.source import Node
from steelyard.config.validation import FieldFault
from steelyard.fix.schema.reading import checked_document, read_document
from steelyard.fix.schema.words import (
    Argv,
    CheckId,
    DestinationPath,
    Integer,
    MetricName,
    RelativePath,
    TreePath,
    Words,
)

MAX_REPETITIONS: Final = 1000
DEFAULT_REPETITIONS: Final = 3
MIN_CONFIRMING: Final = 6
"""Below six pairs no exact test reaches 5% two-sided."""

Direction = Literal["min", "max"]
Reference = Literal["absolute", "baseline_delta", "baseline_ratio"]
Repetitions = Annotated[int, Field(ge=1, le=MAX_REPETITIONS)]


class Command(Strict):
    """A program that runs in a trial's tree."""

    argv: Argv
    """The program and its arguments; no shell."""
    cwd: TreePath = "."
    """Where it starts, relative to the tree."""


class Benchmark(Strict):
    """What measures: a command, or an evaluation of ours."""

    argv: Argv | None = None
    """The program and its arguments; writes the result to $STEELYARD_RESULT_PATH."""
    cwd: TreePath | None = None
    """Where the command starts, relative to the tree; `.` by default."""
    evaluation: TreePath | None = None
    """Instead of a command: an orchestration or eval set among the evaluation paths."""

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.argv is None) == (self.evaluation is None):
            raise FieldFault(
                "a benchmark is either a command or an evaluation",
                remedy='write {"argv": ["python3", "benchmark.py"]}, or {"evaluation": "FILE"}',
            )
        if self.evaluation is not None and self.cwd is not None:
            raise FieldFault("an evaluation has no cwd", "cwd", remedy="take cwd out")
        return self

    @property
    def command(self) -> Command | None:
        """The command; None where the benchmark is an evaluation."""
        return None if self.argv is None else Command(argv=self.argv, cwd=self.cwd or ".")


class Metric(Strict):
    """A number that every repetition gives."""

    direction: Direction
    """Whether less (`min`) or more (`max`) is better."""
    unit: Words
    """What it is counted in; shown beside every value."""


class Constraint(Strict):
    """What every candidate must keep to."""

    metric: MetricName
    """A declared metric."""
    op: Literal["gte", "lte"]
    """At least (`gte`) or at most (`lte`) the bound."""
    bound: float
    """In the metric's unit, or a factor for `baseline_ratio`."""
    reference: Reference = "absolute"
    """What the bound is relative to: nothing, or the original baseline's median."""


class Check(Strict):
    """A command that must succeed; no metric comes of it."""

    id: CheckId
    """Names it in reviews and reports."""
    argv: Argv
    """The program and its arguments; no shell."""
    cwd: TreePath = "."
    """Where it starts, relative to the tree."""
    baseline_expected: Literal["pass", "fail"] = "pass"
    """`fail` where the defect should reproduce on the baseline; on candidates it must pass."""
    issue_ids: list[Words] = Field(default_factory=list)
    """Issues of the run that this check speaks for."""
    expected_tests: list[Words] = Field(default_factory=list)
    """`python -m pytest` only: ids of tests that must have passed."""
    expected_count: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """`python -m pytest` only: how many tests must have passed at least."""
    pytest_config: RelativePath | None = None
    """`python -m pytest` only: the file of the checkout that configures it, whatever a candidate
    writes."""


class Overlay(Strict):
    """A file that is laid over the baseline and every candidate alike."""

    source: RelativePath
    """The file, relative to the checkout; it may be an ignored one."""
    path: DestinationPath
    """Where it stands in a trial's tree."""
    deliver: bool = True
    """Whether it is part of the delivered branch."""


class Input(Strict):
    """A file of frozen data that a trial may read."""

    source: RelativePath
    """The file, relative to the checkout; it may be an ignored one."""
    path: DestinationPath
    """Where it stands in a trial's tree."""


class Confirmation(Strict):
    """How finalists are measured again, on seeds no decision has seen."""

    repetitions: Annotated[int, Field(ge=MIN_CONFIRMING, le=MAX_REPETITIONS)] = 10
    """Repetitions of each finalist, and of the baseline beside them; at least 6."""
    alpha: Annotated[float, Field(gt=0, lt=0.5)] = 0.05
    """How often a run may confirm what is no improvement."""
    min_effect: dict[MetricName, Annotated[float, Field(ge=0)]] = Field(default_factory=dict)
    """By metric, in its unit: the improvement that must be exceeded; 0 by default."""


class Spec(Strict):
    """What a fix run measures and protects."""

    goal: Words | None = None
    """What is to become better; `start --goal` can give it."""
    issue_ids: list[Words] = Field(default_factory=list)
    """Issues that the run is about; `start --issue` adds to them."""
    editable_paths: Annotated[list[TreePath], Field(min_length=1)]
    """Files and folders that candidates may change."""
    evaluation_paths: Annotated[list[TreePath], Field(min_length=1)]
    """Files and folders of the benchmark, which no candidate may change."""
    benchmark: Benchmark
    """What measures."""
    subject: Command | None = None
    """Candidate code that is started apart from the benchmark; makes a trial `isolated`."""
    metrics: Annotated[dict[MetricName, Metric], Field(min_length=1)]
    """What is measured; every one is an objective."""
    task_metrics: dict[MetricName, Metric] = Field(default_factory=dict)
    """Values by task, for `pareto_per_task`; every repetition must give all of them."""
    constraints: list[Constraint] = Field(default_factory=list)
    """What every candidate must keep to."""
    checks: list[Check] = Field(default_factory=list)
    """Commands that must succeed on every candidate."""
    overlays: list[Overlay] = Field(default_factory=list)
    """Files laid over the baseline and every candidate alike."""
    inputs: list[Input] = Field(default_factory=list)
    """Frozen data that trials may read."""
    repetitions: Repetitions | None = None
    """Trials of each candidate; else the profile's, else 3."""
    seeds: Annotated[list[Integer], Field(min_length=1, max_length=MAX_REPETITIONS)] | None = None
    """One for each repetition; else 0, 1, 2, …"""
    rigor: Literal["standard", "high"] = "standard"
    """`high` adds A/A calibration, interleaved blocks, racing and confirmation of finalists."""
    confirmation: Confirmation = Confirmation.model_construct()
    """How finalists are measured again."""


def read_spec(path: Path, *, shown: str | None = None) -> tuple[Spec, Node]:
    """Read a spec, JSON or YAML by its suffix, and the document it was read from.

    Raises:
        BadInput: everything that is wrong with it, at once, with places.
    """
    root = read_document(path, layer="fix spec", shown=shown)
    return checked_spec(root), root


def checked_spec(root: Node) -> Spec:
    """Hold a document against the spec's schema and rules.

    Raises:
        InvalidFixFile: everything that is wrong with it, at once, with places.
    """
    from steelyard.fix.schema.spec_rules import spec_breaches

    return checked_document(root, Spec, spec_breaches, called="the spec")
