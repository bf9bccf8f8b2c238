"""A trial under way: what is known of it, and one program of it run and reported."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from steelyard.config.redaction import Redactor
from steelyard.config.secrets import SecretStore
from steelyard.fix.local_runner import LocalRunner
from steelyard.fix.python_words import python_command
from steelyard.fix.runner_values import Stage, StageEnd
from steelyard.fix.trial_plan import (
    CheckResult,
    Outcome,
    Program,
    StageReport,
    Times,
    TrialPlan,
)
from steelyard.fix.trial_tree import TrialTree

RESULT: Final = "result.json"
_TAIL: Final = 400


class Ended(Exception):
    """The trial is over before its result: how, and why."""

    def __init__(self, outcome: Outcome, reason: str) -> None:
        super().__init__(reason)
        self.outcome = outcome
        self.reason = reason


@dataclass
class Course:
    """A trial under way: what is known of it so far."""

    plan: TrialPlan
    runner: LocalRunner
    stop: asyncio.Event
    redactor: Redactor
    deadline_s: float = math.inf
    """By the loop's clock; set once the tree is made."""
    tree: TrialTree | None = None
    inputs: Path | None = None
    checks: list[CheckResult] = field(default_factory=list)
    stages: list[StageReport] = field(default_factory=list)
    times: Times = field(default_factory=Times)
    is_marked: bool = False
    changed_by_setup: tuple[str, ...] = ()
    modules: list[str] = field(default_factory=list)

    @property
    def made(self) -> TrialTree:
        """The tree, once it is made."""
        if self.tree is None:
            raise RuntimeError("no tree yet")
        return self.tree


def started(
    course: Course, program: Program, *, tests_path: str | None = None, has_mark: bool = False
) -> Program:
    """Put our own program in front of a Python command; others stay as they are."""
    command = python_command(program.argv)
    if command is None:
        return program
    places = course.runner.places(course.made)
    first = course.runner.first_fd
    told = {
        "own_modules": course.modules,
        "tests_path": tests_path,
        "token_fd": first if has_mark else None,
        "mark_fd": first + 1 if has_mark else None,
        "result_path": str(places.result / RESULT),
    }
    name = f"start-{len(course.stages)}.json"
    (course.made.kit / name).write_text(json.dumps(told))
    return replace(
        program, argv=command.started_by(str(places.kit / "start.py"), str(places.kit / name))
    )


async def run_program(
    course: Course,
    name: str,
    program: Program,
    variables: Mapping[str, str],
    *,
    shown_argv: tuple[str, ...] | None = None,
    binds: tuple[tuple[Path, str, bool], ...] = (),
    fds: tuple[int, ...] = (),
    sees_result: bool = False,
) -> StageEnd:
    """Run one program of the trial within what is left of its time; its output is redacted.

    Raises:
        Ended: the trial's time is over, somebody stopped it, a limit ended the program, or it
            could not be started.
    """
    limits = course.plan.limits
    left_s = course.deadline_s - asyncio.get_running_loop().time()
    if course.stop.is_set():
        raise Ended(Outcome.CANCELLED, f"stopped before {name}")
    if left_s <= 0:
        raise Ended(Outcome.TIMED_OUT, f"the trial took longer than {limits.timeout_s:g} s")
    # A secret that the cut goes through could not be told from other text.
    margin = course.redactor.tail_bytes
    stage = Stage(
        program.argv,
        program.cwd,
        variables,
        left_s,
        replace(limits, output_bytes=limits.output_bytes + margin),
        sees_result=sees_result,
        fds=fds,
        more_binds=binds,
    )
    end = await course.runner.run(stage, course.made, inputs=course.inputs, stop=course.stop)
    end = _redacted(course, end)
    course.stages.append(report_of(course, name, shown_argv or program.argv, end))
    if end.timed_out:
        raise Ended(
            Outcome.TIMED_OUT,
            f"the trial took longer than {limits.timeout_s:g} s; {name} was running",
        )
    if end.stopped_by == "stopped":
        raise Ended(Outcome.CANCELLED, f"stopped during {name}")
    if end.stopped_by is not None:
        raise Ended(Outcome.FAILED, f"{name} was ended at its limit: {end.stopped_by}")
    if end.refusal is not None:
        raise Ended(Outcome.ERROR, f"{name} cannot be started: {end.refusal}")
    return end


def _redacted(course: Course, end: StageEnd) -> StageEnd:
    kept = course.plan.limits.output_bytes
    raw = course.redactor.raw
    return replace(end, stdout=raw(end.stdout)[-kept:], stderr=raw(end.stderr)[-kept:])


def report_of(course: Course, name: str, argv: tuple[str, ...], end: StageEnd) -> StageReport:
    """Give a program's end as people are shown it."""
    redact = course.redactor
    return StageReport(
        name,
        tuple(map(redact.text, argv)),
        end.exit_code,
        end.duration_s,
        redact.raw(end.stdout),
        redact.raw(end.stderr),
        end.timed_out,
        end.stopped_by,
    )


def how_it_fell_short(name: str, end: StageEnd) -> str:
    """Say how a program ended, and what it said last."""
    code = end.exit_code
    how = f"by signal {-code}" if code is not None and code < 0 else f"with {code}"
    said = (end.stderr or end.stdout).decode("utf-8", "replace").strip()[-_TAIL:]
    return f"{name} ended {how}" + (f"; it said last: {said}" if said else "")


def variables_of(course: Course) -> dict[str, str]:
    """Give all that a program's environment holds, but for what only the benchmark gets."""
    places = course.runner.places(course.made)
    variables = {
        **course.plan.environment,
        "PATH": course.runner.path,
        "HOME": str(places.home),
        "TMPDIR": str(places.tmp),
        "LANG": "C.UTF-8",
        "USER": "steelyard",
        "LOGNAME": "steelyard",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONNOUSERSITE": "1",
        # Without namespaces the tree lies below the user's checkout, where Git would look next.
        "GIT_CEILING_DIRECTORIES": str(places.tree.parent),
    }
    for prefix in ("STEELYARD", "AGENTAGON"):
        variables[f"{prefix}_INPUTS_DIR"] = str(places.inputs)
    return variables


def redactor_of(environment: Mapping[str, str]) -> Redactor:
    """Make what hides the values of a profile's variables."""
    store = SecretStore({})
    for name, value in environment.items():
        store.put(f"trial:{name}", value)
    return Redactor(store)


def without_secrets(redactor: Redactor, tasks: Mapping[str, float]) -> dict[str, float]:
    """Give tasks with no secret in their names."""
    return {redactor.text(name): value for name, value in tasks.items()}
