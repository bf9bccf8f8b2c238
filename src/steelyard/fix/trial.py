"""One trial: set-up, checks, benchmark, the end of every process, and only then the result.

A plan goes in and a result comes out; nothing here knows a ledger, so that a remote runner can take
this one's place. Where a trial goes wrong its result says how: nothing is raised but cancellation.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from steelyard.components.values import Trust
from steelyard.config.errors import Fault
from steelyard.fix import python_start
from steelyard.fix.local_runner import LocalRunner
from steelyard.fix.python_words import own_modules, python_command
from steelyard.fix.result_file import ResultFile, ResultRefused, read_result
from steelyard.fix.runner_values import UnknownEnd
from steelyard.fix.sealed_tree import SealedTree, lay_out_files
from steelyard.fix.subject import SOCKET, Subjects
from steelyard.fix.trial_checks import check_afterwards, check_frozen, run_check
from steelyard.fix.trial_course import (
    RESULT,
    Course,
    Ended,
    how_it_fell_short,
    redactor_of,
    report_of,
    run_program,
    started,
    variables_of,
    without_secrets,
)
from steelyard.fix.trial_plan import (
    CheckPlan,
    CheckResult,
    Limits,
    Outcome,
    PlacedFile,
    Program,
    StageReport,
    Times,
    TrialPlan,
    TrialResult,
)
from steelyard.fix.trial_tree import TrialTree, make_tree

__all__ = [
    "CheckPlan",
    "CheckResult",
    "Limits",
    "Outcome",
    "PlacedFile",
    "Program",
    "StageReport",
    "Times",
    "TrialPlan",
    "TrialResult",
    "run_trial",
]

OWN: Final = ("STEELYARD_", "AGENTAGON_")
_SHOWN: Final = 10


async def run_trial(
    plan: TrialPlan, runner: LocalRunner, *, stop: asyncio.Event | None = None
) -> TrialResult:
    """Run a trial to its end; its folder is gone afterwards.

    Args:
        plan: what to run.
        runner: prepared.
        stop: set by whoever wants it ended: then its outcome is `cancelled`.
    """
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    course = Course(plan, runner, stop or asyncio.Event(), redactor_of(plan.environment))
    result: ResultFile | None = None
    outcome, reason = Outcome.COMPLETED, None
    try:
        try:
            result = await _play(course)
        finally:
            if course.tree is not None:
                with suppress(OSError):
                    await asyncio.to_thread(course.tree.remove)
    except Ended as end:
        outcome, reason = end.outcome, end.reason
    except UnknownEnd as error:
        outcome, reason = Outcome.INCONCLUSIVE, str(error)
    except Fault as error:
        outcome, reason = Outcome.ERROR, str(error)
    times = replace(course.times, whole_s=loop.time() - began_s)
    return TrialResult(
        plan.trial,
        outcome,
        runner.trust(has_subject=plan.subject is not None),
        None if reason is None else course.redactor.text(reason),
        metrics=result.metrics if result else {},
        tasks=without_secrets(course.redactor, result.tasks) if result else {},
        checks=tuple(course.checks),
        stages=tuple(course.stages),
        times=times,
        tree_id=plan.sealed.tree_id,
        manifest_digest=plan.sealed.manifest.digest,
        result_sha256=result.sha256 if result else None,
        tree_method=str(course.tree.method) if course.tree else "",
        is_marked=course.is_marked,
        undeclared=tuple(map(course.redactor.text, result.undeclared)) if result else (),
        changed_by_setup=course.changed_by_setup,
        details=runner.details(),
    )


async def _play(course: Course) -> ResultFile:
    loop = asyncio.get_running_loop()
    plan = course.plan
    at = loop.time()
    await asyncio.to_thread(_lay_out, course)
    course.times = replace(course.times, tree_s=loop.time() - at)
    at = loop.time()
    course.deadline_s = at + plan.limits.timeout_s
    for number, program in enumerate(plan.setup, 1):
        await _set_up(course, f"setup {number}", program)
    if plan.setup:
        await check_frozen(course, Outcome.ERROR, "set-up")
    course.times = replace(course.times, setup_s=loop.time() - at)
    at = loop.time()
    for check in plan.checks:
        await run_check(course, check)
    if plan.checks:
        await check_frozen(course, Outcome.FAILED, "a check")
    course.times = replace(course.times, checks_s=loop.time() - at)
    mark = await _benchmark(course)
    at = loop.time()
    await asyncio.to_thread(course.made.check_layers)
    await check_afterwards(course)
    course.times = replace(course.times, tree_s=course.times.tree_s + loop.time() - at)
    try:
        result = await asyncio.to_thread(
            read_result, course.made.result, RESULT, metrics=plan.metrics
        )
    except ResultRefused as error:
        raise Ended(Outcome.FAILED, str(error)) from error
    if mark is not None:
        if mark != result.sha256:
            raise Ended(
                Outcome.FAILED,
                "the result is not the one that was there when the benchmark's own program ended: "
                "something wrote it later",
            )
        course.is_marked = True
    return result


def _lay_out(course: Course) -> None:
    """Make the trial's tree and what we bring along. Blocking."""
    plan, runner = course.plan, course.runner
    layers: list[SealedTree] = [plan.sealed]
    base = runner.base / "layers"
    if plan.placed:
        files = {one.path: (one.source, one.is_executable) for one in plan.placed}
        layers.append(_checked(lay_out_files(files, base, owner=runner.owner), plan))
    inputs = {one.path: (one.source, one.is_executable) for one in plan.placed if one.is_input}
    if inputs:
        course.inputs = lay_out_files(inputs, base, owner=runner.owner).folder
    course.tree = make_tree(runner.base, plan.trial, layers, runner.method, owner=runner.owner)
    (course.tree.kit / "start.py").write_bytes(Path(python_start.__file__).read_bytes())
    course.modules = own_modules([layer.manifest for layer in layers], plan.rules)
    if runner.trust(has_subject=False) is Trust.HOST:
        _show_inputs(course.tree, course.inputs)


def _checked(layer: SealedTree, plan: TrialPlan) -> SealedTree:
    for one in plan.placed:
        if layer.manifest.by_path[one.path].sha256 != one.sha256:
            raise Fault(f"{one.path}: its frozen content is not what it was when the run began")
    return layer


def _show_inputs(tree: TrialTree, inputs: Path | None) -> None:
    (tree.folder / "inputs").symlink_to(inputs if inputs is not None else tree.tmp)


async def _set_up(course: Course, name: str, program: Program) -> None:
    end = await run_program(course, name, program, variables_of(course))
    if end.exit_code != 0:
        raise Ended(Outcome.ERROR, how_it_fell_short(name, end))


async def _benchmark(course: Course) -> str | None:
    """Run the benchmark; the result's digest at its own end, None where nothing can tell it."""
    plan = course.plan
    places = course.runner.places(course.made)
    variables = variables_of(course)
    for prefix in ("STEELYARD", "AGENTAGON"):
        variables[f"{prefix}_RESULT_PATH"] = str(places.result / RESULT)
        variables[f"{prefix}_SEED"] = str(plan.seed)
    if plan.subject is None:
        return await _scored(course, variables)
    common = {
        name: value for name, value in variables_of(course).items() if "INPUTS_DIR" not in name
    }
    async with Subjects(plan, course.runner, course.stop, common) as subjects:
        is_host = course.runner.trust(has_subject=True) is Trust.HOST
        at = subjects.folder if is_host else places.kit.parent / "subject"
        variables["STEELYARD_SUBJECT"] = str(at / SOCKET)
        mark = None
        try:
            mark = await _scored(course, variables, binds=((subjects.folder, "subject", False),))
        finally:
            for number, end in enumerate(subjects.ends[:_SHOWN], 1):
                argv = plan.subject.argv
                course.stages.append(report_of(course, f"subject {number}", argv, end))
        if subjects.fault is not None:
            raise subjects.fault
        return mark


async def _scored(
    course: Course,
    variables: Mapping[str, str],
    *,
    binds: tuple[tuple[Path, str, bool], ...] = (),
) -> str | None:
    program = course.plan.benchmark
    is_python = python_command(program.argv) is not None
    token = secrets.token_hex(16)
    token_read, token_write = os.pipe2(os.O_CLOEXEC)
    mark_read, mark_write = os.pipe2(os.O_CLOEXEC)
    ours = [token_read, token_write, mark_read, mark_write]
    try:
        os.write(token_write, token.encode())
        os.close(token_write)
        ours.remove(token_write)
        end = await run_program(
            course,
            "benchmark",
            started(course, program, has_mark=True) if is_python else program,
            variables,
            shown_argv=program.argv,
            binds=binds,
            fds=(token_read, mark_write) if is_python else (),
            sees_result=True,
        )
        os.close(mark_write)
        ours.remove(mark_write)
        os.set_blocking(mark_read, False)
        said = b""
        with suppress(BlockingIOError):
            said = os.read(mark_read, 4096)
    finally:
        for fd in ours:
            os.close(fd)
    course.times = replace(course.times, benchmark_s=end.duration_s)
    if end.exit_code != 0:
        raise Ended(Outcome.FAILED, how_it_fell_short("the benchmark", end))
    if not is_python:
        return None
    words = said.decode("ascii", "replace").split()
    if len(words) != 2 or not secrets.compare_digest(words[0], token):
        raise Ended(
            Outcome.FAILED,
            "the benchmark's own program did not come to its end with a result: code that it ran "
            "left by `os._exit`, or the result was not there when its last line had run",
        )
    return words[1]
