"""What goes into a trial and what comes out: plain values, for any runner.

A trial knows no ledger. It is told its seed and nothing else that could tell it from others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Literal

from steelyard.components.values import Trust
from steelyard.fix.sealed_tree import SealedTree
from steelyard.fix.sealing import PathRules


class Outcome(StrEnum):
    """How a trial ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    """Ran and fell short: exit code, missing metric, check."""
    ERROR = "error"
    """Set-up, the runner, a fault of ours."""
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    INCONCLUSIVE = "inconclusive"
    """Nobody can say how it ended."""
    LOST = "lost"
    """Its owner is provably gone and no result was written."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one trial may use; each is held where the system has means to."""

    timeout_s: float = 600.0
    """Of all its programs together, from the moment its tree is made."""
    memory_mb: int = 4096
    """Of all its processes together where there is a memory cgroup, else of each."""
    processes: int = 512
    """Processes and threads at once."""
    disk_mb: int = 4096
    """What it may write in all; one file is held exactly, the sum is watched."""
    output_bytes: int = 64 * 1024
    """The end of each stream that is kept."""


@dataclass(frozen=True, slots=True)
class Program:
    """A command of a trial."""

    argv: tuple[str, ...]
    cwd: str = "."
    """Within the tree."""


@dataclass(frozen=True, slots=True)
class CheckPlan:
    """A check, run before the benchmark."""

    id: str
    program: Program
    baseline_expected: Literal["pass", "fail"] = "pass"
    expected_tests: tuple[str, ...] = ()
    """Ids of tests that must have passed, for `python -m pytest`."""
    expected_count: int | None = None
    """How many tests must have passed at least."""
    pytest_config: bytes | None = None
    """The configuration file that holds for pytest where the candidate may edit its own."""


@dataclass(frozen=True, slots=True)
class PlacedFile:
    """An overlay or an input: a frozen file that is put into every tree of a run."""

    path: str
    """Where, within the tree."""
    source: Path
    """Its frozen content."""
    sha256: str
    is_executable: bool = False
    is_input: bool = False
    """True where it is data that `STEELYARD_INPUTS_DIR` shows as well."""


@dataclass(frozen=True, slots=True)
class TrialPlan:
    """One repetition of the frozen benchmark on one sealed tree."""

    trial: str
    """Its id: names its folder and its processes."""
    sealed: SealedTree
    rules: PathRules
    benchmark: Program
    metrics: tuple[str, ...]
    seed: int
    placed: tuple[PlacedFile, ...] = ()
    setup: tuple[Program, ...] = ()
    checks: tuple[CheckPlan, ...] = ()
    subject: Program | None = None
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The profile's variables with their values: secrets."""
    limits: Limits = Limits()
    is_baseline: bool = False


@dataclass(frozen=True, slots=True)
class StageReport:
    """One program of a trial, as people are shown it."""

    name: str
    """`setup 1`, `check regressions`, `benchmark`."""
    argv: tuple[str, ...]
    exit_code: int | None
    """Negative: the signal that ended it. None where it did not start or was ended by us."""
    duration_s: float
    """By our clock, from its start to its end."""
    stdout: bytes
    stderr: bytes
    """The ends of both, secrets redacted."""
    timed_out: bool = False
    stopped_by: str | None = None
    """The limit that ended it."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What became of a check."""

    id: str
    passed: bool
    as_expected: bool
    """On the baseline: as `baseline_expected` says. On a candidate: passed."""
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds by the parent's clock."""

    tree_s: float = 0.0
    """Making the tree and looking at it before and after."""
    setup_s: float = 0.0
    checks_s: float = 0.0
    benchmark_s: float = 0.0
    whole_s: float = 0.0


@dataclass(frozen=True, slots=True)
class TrialResult:
    """How a trial ended. Nothing in it was said by anyone but the result file and the runner."""

    trial: str
    outcome: Outcome
    trust: Trust
    reason: str | None = None
    """Why it is not `completed`, in a sentence."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    tasks: Mapping[str, float] = field(default_factory=dict)
    checks: tuple[CheckResult, ...] = ()
    stages: tuple[StageReport, ...] = ()
    times: Times = Times()
    tree_id: str = ""
    manifest_digest: str = ""
    """Of the sealed tree that ran."""
    result_sha256: str | None = None
    tree_method: str = ""
    """`overlay`, `reflink` or `copy`."""
    is_marked: bool = False
    """True where the benchmark's own process was seen to reach its end after its result."""
    undeclared: tuple[str, ...] = ()
    changed_by_setup: tuple[str, ...] = ()
    """Sealed files, none of the evaluation's, that set-up steps changed."""
    details: Mapping[str, str] = field(default_factory=dict)
    """How tightly each limit was held."""


def last_lines(stages: Sequence[StageReport], *, lines: int = 20) -> str:
    """Give the last lines of the last program that said anything; for people."""
    for stage in reversed(stages):
        said = (stage.stderr or stage.stdout).decode("utf-8", "replace").rstrip("\n")
        if said:
            return "\n".join(said.split("\n")[-lines:])
    return ""
