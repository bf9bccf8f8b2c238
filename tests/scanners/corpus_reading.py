"""The labelled corpus: snippets of trajectories, and how a scanner does on them.

Homes of people and hosts of registries stand in it with a character written by its number, since
no tracked file may name one.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from steelyard.components.scanner import Finding, Scanner
from steelyard.components.steps import Step
from steelyard.testing.fake_run import FakeScannedAttempt

FOLDER = Path(__file__).with_name("corpus")
SALT = "scanners-1"
HELD_OUT, OPEN = "held-out", "open"


@dataclass(frozen=True, slots=True)
class Snippet:
    """One labelled piece of a trajectory."""

    id: str
    is_finding: bool
    category: str | None
    split: str
    source: str
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Score:
    """How a scanner did on a split."""

    positives: int
    negatives: int
    missed: tuple[str, ...]
    wrong: tuple[str, ...]
    other_category: tuple[str, ...]

    @property
    def hits(self) -> int:
        return self.positives - len(self.missed)

    @property
    def precision(self) -> float:
        return self.hits / (self.hits + len(self.wrong))

    @property
    def recall(self) -> float:
        return self.hits / self.positives


def split_of(snippet_id: str) -> str:
    """A third is held out, by a hash of the id: nobody chooses which.

    What was written after the rules, to see how they do on what they were not made for, was looked
    at and is open.
    """
    if "/later-" in snippet_id:
        return OPEN
    digest = hashlib.sha256(f"{SALT}:{snippet_id}".encode()).hexdigest()
    return HELD_OUT if int(digest, 16) % 3 == 0 else OPEN


@cache
def snippets(scanner_id: str) -> tuple[Snippet, ...]:
    return tuple(_read(FOLDER / f"{scanner_id}.jsonl"))


def _read(file: Path) -> Iterator[Snippet]:
    for line in file.read_text("utf-8").splitlines():
        row = json.loads(line)
        steps = tuple(Step.from_json(step) for step in row["steps"])
        yield Snippet(
            row["id"],
            row["label"] == "finding",
            row["category"],
            row["split"],
            row["source"],
            steps,
        )


def found(scanner: Scanner, steps: Sequence[Step]) -> Sequence[Finding]:
    return asyncio.run(scanner.scan(FakeScannedAttempt(steps)))


def scored(scanner: Scanner, split: str) -> Score:
    missed, wrong, other = [], [], []
    chosen = [one for one in snippets(scanner.id) if one.split == split]
    for one in chosen:
        findings = found(scanner, one.steps)
        if one.is_finding and not findings:
            missed.append(one.id)
        elif findings and not one.is_finding:
            wrong.append(one.id)
        elif one.is_finding and one.category not in {finding.category for finding in findings}:
            other.append(one.id)
    positives = sum(one.is_finding for one in chosen)
    return Score(positives, len(chosen) - positives, tuple(missed), tuple(wrong), tuple(other))
