"""What `pack check` finds: every prompt renders, the reference passes, doing nothing does not.

Pure but for `play`, which the caller brings: it runs one harness on one case.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from steelyard.benchmarks.pack.benchmark import PackBenchmark
from steelyard.benchmarks.pack.cases import listed
from steelyard.benchmarks.pack.template import compile_template
from steelyard.components.benchmark import Task
from steelyard.components.issues import AttemptFault
from steelyard.config.errors import Problem, Where

Player = Literal["oracle", "nop"]


@dataclass(frozen=True, slots=True)
class Played:
    """How a harness fared on one case."""

    score: float | None
    """None where the attempt ended without one."""
    reason: str | None
    """Why it was not scored, or fell short."""
    judge_fault: str | None = None
    """Why its judge gave no verdict, which says nothing of the case."""


Play = Callable[[Player, Task], Awaitable[Played]]


@dataclass(frozen=True, slots=True)
class CaseReport:
    """What was found of one case."""

    id: str
    oracle: Played | None
    """None where the pack has no reference."""
    nop: Played
    findings: tuple[str, ...]
    """What is wrong; empty where nothing."""
    judge_fault: str | None = None
    """Why a judge gave no verdict: nothing is known of the case then."""

    def as_json(self) -> dict[str, Any]:
        """Give the form that `--json` prints."""
        return {
            "id": self.id,
            "oracle": None if self.oracle is None else self.oracle.score,
            "nop": self.nop.score,
            "findings": list(self.findings),
            "judge_fault": self.judge_fault,
        }


@dataclass(frozen=True, slots=True)
class PackReport:
    """What was found of a pack."""

    slug: str
    version: str
    cases: tuple[CaseReport, ...]

    @property
    def passed(self) -> bool:
        """True where every case was judged, and nothing is wrong with it."""
        return not any(case.findings or case.judge_fault for case in self.cases)

    def as_json(self) -> dict[str, Any]:
        """Give the document that `--json` prints."""
        return {
            "schema": "pack-check/1",
            "slug": self.slug,
            "version": self.version,
            "passed": self.passed,
            "cases": [case.as_json() for case in self.cases],
        }


def render_problems(benchmark: PackBenchmark, tasks: Sequence[Task]) -> list[Problem]:
    """Render every prompt and reference; give what fails, each fault once."""
    faulty: dict[str, list[str]] = {}
    for task in tasks:
        try:
            benchmark.task_input(task, attempt=1, seed=0)
            benchmark.reference(task)
        except AttemptFault as error:
            faulty.setdefault(f": {error.message}", []).append(task.id)
    texts, rest = listed(faulty)
    where = Where(benchmark.pack.document.where().file)
    problems = [Problem(text, where) for _, text in texts]
    if rest:
        problems.append(Problem(f"{rest} more cases cannot be rendered", where))
    return problems


def given_away(benchmark: PackBenchmark) -> list[Problem]:
    """Name the fields that a prompt shows and that an answer is compared with as they are.

    Where the task is to repeat a text that is right; where it is not, the answer is given away.
    """
    pack = benchmark.pack
    compared: dict[str, str] = {}
    if pack.reference is not None and pack.reference.answer is not None:
        compared[pack.reference.answer.field or ""] = "the reference is"
    for validator, spec in zip(pack.validators, pack.file.scoring.validators, strict=True):
        expected = getattr(spec, "expected", None)
        for source in expected if isinstance(expected, list) else [expected]:
            if isinstance(source, str):
                field = compile_template(source).field or ""
                compared[field] = f"the validator {validator.name} compares answers with"
    compared.pop("", None)
    return [
        pack.document.problem(
            f"the agent is shown {field!r}, which {compared[field]}",
            *_place_of(benchmark, number),
            remedy="take it out of what the agent is told, unless the task is to repeat it",
        )
        for number, (_, template) in enumerate(pack.messages)
        for field in sorted(compared.keys() & template.variables)
    ]


def _place_of(benchmark: PackBenchmark, number: int) -> tuple[str | int, ...]:
    """Say where the message of that number is written."""
    pack = benchmark.pack
    if pack.file.messages is not None:
        return ("messages", number, "content")
    return ("system" if pack.messages[number][0] == "system" else "prompt",)


def bar_of(benchmark: PackBenchmark) -> float:
    """Give the score that counts as passing: the threshold, else 1."""
    threshold = benchmark.pack.file.scoring.threshold
    return 1.0 if threshold is None else threshold


async def check_cases(
    benchmark: PackBenchmark, tasks: Sequence[Task], play: Play, *, at_once: int = 8
) -> PackReport:
    """Let `oracle` and `nop` play every case.

    Args:
        benchmark: the pack.
        tasks: its cases.
        play: runs a harness on a case; never raises for what happens to the attempt.
        at_once: how many are played at a time.
    """
    bar = bar_of(benchmark)
    has_reference = benchmark.pack.reference is not None
    reports: dict[str, CaseReport] = {}
    waiting = iter(tasks)

    async def work() -> None:
        for task in waiting:
            oracle = await play("oracle", task) if has_reference else None
            nop = await play("nop", task)
            findings = findings_of(oracle, nop, bar)
            judge_fault = (oracle and oracle.judge_fault) or nop.judge_fault
            reports[task.id] = CaseReport(task.id, oracle, nop, findings, judge_fault)

    async with asyncio.TaskGroup() as group:
        for _ in range(min(at_once, len(tasks))):
            group.create_task(work())
    info = benchmark.info()
    return PackReport(info.id, info.version, tuple(reports[task.id] for task in tasks))


def findings_of(oracle: Played | None, nop: Played, bar: float) -> tuple[str, ...]:
    """Say what is wrong with a case, by how ceiling and floor fared."""
    findings = []
    if oracle is not None and oracle.score is None and oracle.judge_fault is None:
        findings.append(f"oracle was not scored: {oracle.reason}")
    elif oracle is not None and oracle.score is not None and oracle.score < bar - 1e-9:
        findings.append(f"oracle scores {oracle.score:g}, below {bar:g}: {oracle.reason}")
    if nop.score is None and nop.judge_fault is None:
        findings.append(f"nop was not scored: {nop.reason}")
    elif nop.score is not None and nop.score >= bar - 1e-9 and nop.score > 0:
        findings.append(f"nop scores {nop.score:g}: doing nothing passes")
    return tuple(findings)


def played_from(
    metrics: Mapping[str, float | bool], details: Mapping[str, Any], failure: str | None
) -> Played:
    """Make a `Played` of an execution's figures; `failure` says why there are none."""
    if failure is not None or "score" not in metrics:
        return Played(None, failure or "it ended without a score")
    reasons = details.get("reasons", {})
    said = "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
    return Played(float(metrics["score"]), said or None)
