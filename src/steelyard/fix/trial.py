"""One trial: set-up, checks, benchmark, the end of every process, and only then the result.

A plan goes in and a result comes out; nothing here knows a ledger, so that a remote runner can take
this one's place. Where a trial goes wrong its result says how: nothing is raised but cancellation.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from steelyard.components.values import Trust
from steelyard.config.errors import Fault
from steelyard.config.redaction import Redactor
from steelyard.config.secrets import SecretStore
from steelyard.fix import python_start
from steelyard.fix.local_runner import LocalRunner
from steelyard.fix.python_words import (
    PYTEST_NOTHING_PROVEN,
    PytestShield,
    is_pytest,
    own_modules,
    pytest_shield,
    python_command,
)
from steelyard.fix.result_file import ResultFile, ResultRefused, read_result
from steelyard.fix.runner_values import Stage, StageEnd, UnknownEnd
from steelyard.fix.sealed_tree import SealedTree, lay_out_files
from steelyard.fix.subject import SOCKET, Subjects
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

RESULT: Final = "result.json"
_SHOWN: Final = 10
_TAIL: Final = 400


class _Ended(Exception):
    """The trial is over before its result: how, and why."""

    def __init__(self, outcome: Outcome, reason: str) -> None:
        super().__init__(reason)
        self.outcome = outcome
        self.reason = reason


@dataclass
class _Course:
    """A trial under way: what is known of it so far."""

    plan: TrialPlan
    runner: LocalRunner
    stop: asyncio.Event
    redactor: Redactor
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
    course = _Course(plan, runner, stop or asyncio.Event(), _redactor(plan.environment))
    result: ResultFile | None = None
    outcome, reason = Outcome.COMPLETED, None
    try:
        try:
            result = await _play(course)
        finally:
            if course.tree is not None:
                with suppress(OSError):
                    await asyncio.to_thread(course.tree.remove)
    except _Ended as end:
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
        tasks=_without_secrets(course.redactor, result.tasks) if result else {},
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


async def _play(course: _Course) -> ResultFile:
    loop = asyncio.get_running_loop()
    plan = course.plan
    at = loop.time()
    await asyncio.to_thread(_lay_out, course)
    course.times = replace(course.times, tree_s=loop.time() - at)
    at = loop.time()
    for number, program in enumerate(plan.setup, 1):
        await _set_up(course, f"setup {number}", program)
    if plan.setup:
        await _check_frozen(course, Outcome.ERROR, "set-up")
    course.times = replace(course.times, setup_s=loop.time() - at)
    at = loop.time()
    for check in plan.checks:
        await _check(course, check)
    if plan.checks:
        await _check_frozen(course, Outcome.FAILED, "a check")
    course.times = replace(course.times, checks_s=loop.time() - at)
    mark = await _benchmark(course)
    at = loop.time()
    await asyncio.to_thread(course.made.check_layers)
    await _check_afterwards(course)
    course.times = replace(course.times, tree_s=course.times.tree_s + loop.time() - at)
    try:
        result = await asyncio.to_thread(
            read_result, course.made.result, RESULT, metrics=plan.metrics
        )
    except ResultRefused as error:
        raise _Ended(Outcome.FAILED, str(error)) from error
    if mark is not None:
        if mark != result.sha256:
            raise _Ended(
                Outcome.FAILED,
                "the result is not the one that was there when the benchmark's own program ended: "
                "something wrote it later",
            )
        course.is_marked = True
    return result


def _lay_out(course: _Course) -> None:
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
    folder = runner.base / f"{plan.trial}-{secrets.token_hex(4)}"
    course.tree = make_tree(folder, layers, runner.method, owner=runner.owner)
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


async def _set_up(course: _Course, name: str, program: Program) -> None:
    end = await _run(course, name, program, _variables(course))
    if end.timed_out:
        raise _Ended(Outcome.ERROR, f"{name} took longer than {course.plan.limits.timeout_s:g} s")
    _stopped(name, end)
    if end.exit_code != 0:
        raise _Ended(Outcome.ERROR, _fell_short(name, end))


async def _check(course: _Course, check: CheckPlan) -> None:
    name = f"check {check.id}"
    variables = _variables(course)
    program = check.program
    report: Path | None = None
    binds: tuple[tuple[Path, str, bool], ...] = ()
    tree = course.made
    places = course.runner.places(tree)
    if is_pytest(program.argv):
        paths = frozenset(path for layer in tree.layers for path in layer.manifest.by_path)
        shield = pytest_shield(program.argv, program.cwd, paths, course.plan.rules)
        variables["PYTEST_ADDOPTS"] = await asyncio.to_thread(_shielded, course, check, shield)
    if check.expected_tests or check.expected_count is not None:
        report = tree.folder / f"report-{len(course.checks)}"
        await asyncio.to_thread(_make_report, report, course.runner.owner)
        inside = places.kit.parent / "report" if places.kit != tree.kit else report
        binds = ((report, "report", True),)
        program = _started(course, program, tests_path=str(inside / "tests.json"))
    end = await _run(course, name, program, variables, shown_argv=check.program.argv, binds=binds)
    _stopped(name, end)
    reason = _why_not_passed(course, name, check, end, report)
    passed = reason is None
    is_proof = not end.timed_out and end.refusal is None
    if is_pytest(check.program.argv) and end.exit_code in PYTEST_NOTHING_PROVEN:
        is_proof = False
    expected = check.baseline_expected if course.plan.is_baseline else "pass"
    as_expected = passed == (expected == "pass")
    course.checks.append(CheckResult(check.id, passed, as_expected and is_proof, reason))
    if not is_proof and expected == "fail":
        raise _Ended(
            Outcome.ERROR,
            f"{name} did not run to a verdict, which is no proof that the defect is there: "
            f"{reason}",
        )
    if not as_expected:
        if passed:
            raise _Ended(
                Outcome.FAILED,
                f"{name} passed on the baseline, though `baseline_expected` is `fail`",
            )
        outcome = Outcome.TIMED_OUT if end.timed_out else Outcome.FAILED
        raise _Ended(outcome, reason or f"{name} failed")


def _why_not_passed(
    course: _Course, name: str, check: CheckPlan, end: StageEnd, report: Path | None
) -> str | None:
    if end.timed_out:
        return f"{name} took longer than {course.plan.limits.timeout_s:g} s"
    if end.exit_code != 0:
        return _fell_short(name, end)
    if report is None:
        return None
    try:
        passed = set(json.loads((report / "tests.json").read_bytes()[:16_000_000])["passed"])
    except (OSError, ValueError, KeyError, TypeError):
        return f"{name} left no account of which tests passed"
    if missing := sorted(set(check.expected_tests) - passed):
        return f"{name}: expected tests did not pass: {', '.join(missing[:_SHOWN])}"
    if check.expected_count is not None and len(passed) < check.expected_count:
        return f"{name}: {len(passed)} tests passed, {check.expected_count} were expected"
    return None


def _shielded(course: _Course, check: CheckPlan, shield: PytestShield) -> str:
    """Write the configuration that holds; `PYTEST_ADDOPTS`."""
    places = course.runner.places(course.made)
    name = f"check-{len(course.checks)}.ini"
    if shield.wants_config:
        (course.made.kit / name).write_bytes(check.pytest_config or b"[pytest]\n")
    return shield.options(config=str(places.kit / name), root=str(places.tree))


def _make_report(folder: Path, owner: int | None) -> None:
    folder.mkdir(mode=0o755)
    if owner is not None:
        os.chown(folder, owner, owner)


def _started(
    course: _Course, program: Program, *, tests_path: str | None = None, has_mark: bool = False
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


async def _benchmark(course: _Course) -> str | None:
    """Run the benchmark; the result's digest at its own end, None where nothing can tell it."""
    plan = course.plan
    places = course.runner.places(course.made)
    variables = _variables(course)
    for prefix in ("STEELYARD", "AGENTAGON"):
        variables[f"{prefix}_RESULT_PATH"] = str(places.result / RESULT)
        variables[f"{prefix}_SEED"] = str(plan.seed)
    if plan.subject is None:
        return await _scored(course, variables)
    common = {name: value for name, value in _variables(course).items() if "INPUTS_DIR" not in name}
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
                course.stages.append(_report(course, f"subject {number}", argv, end))
        if subjects.fault is not None:
            raise subjects.fault
        return mark


async def _scored(
    course: _Course,
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
        end = await _run(
            course,
            "benchmark",
            _started(course, program, has_mark=True) if is_python else program,
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
    if end.timed_out:
        limit = course.plan.limits.timeout_s
        raise _Ended(Outcome.TIMED_OUT, f"the benchmark took longer than {limit:g} s")
    _stopped("the benchmark", end)
    if end.exit_code != 0:
        raise _Ended(Outcome.FAILED, _fell_short("the benchmark", end))
    if not is_python:
        return None
    words = said.decode("ascii", "replace").split()
    if len(words) != 2 or not secrets.compare_digest(words[0], token):
        raise _Ended(
            Outcome.FAILED,
            "the benchmark's own program did not come to its end with a result: code that it ran "
            "left by `os._exit`, or the result was not there when its last line had run",
        )
    return words[1]


async def _run(
    course: _Course,
    name: str,
    program: Program,
    variables: Mapping[str, str],
    *,
    shown_argv: tuple[str, ...] | None = None,
    binds: tuple[tuple[Path, str, bool], ...] = (),
    fds: tuple[int, ...] = (),
    sees_result: bool = False,
) -> StageEnd:
    if course.stop.is_set():
        raise _Ended(Outcome.CANCELLED, f"stopped before {name}")
    limits = course.plan.limits
    stage = Stage(
        program.argv,
        program.cwd,
        variables,
        limits.timeout_s,
        limits,
        sees_result=sees_result,
        fds=fds,
        more_binds=binds,
    )
    end = await course.runner.run(stage, course.made, inputs=course.inputs, stop=course.stop)
    course.stages.append(_report(course, name, shown_argv or program.argv, end))
    return end


def _report(course: _Course, name: str, argv: tuple[str, ...], end: StageEnd) -> StageReport:
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


def _stopped(name: str, end: StageEnd) -> None:
    if end.stopped_by == "stopped":
        raise _Ended(Outcome.CANCELLED, f"stopped during {name}")
    if end.stopped_by is not None:
        raise _Ended(Outcome.FAILED, f"{name} was ended at its limit: {end.stopped_by}")
    if end.refusal is not None:
        raise _Ended(Outcome.ERROR, f"{name} cannot be started: {end.refusal}")


def _fell_short(name: str, end: StageEnd) -> str:
    code = end.exit_code
    how = f"by signal {-code}" if code is not None and code < 0 else f"with {code}"
    said = (end.stderr or end.stdout).decode("utf-8", "replace").strip()[-_TAIL:]
    return f"{name} ended {how}" + (f"; it said last: {said}" if said else "")


async def _check_frozen(course: _Course, outcome: Outcome, who: str) -> None:
    """See that nothing changed what the benchmark is before it starts."""
    changed = await asyncio.to_thread(course.made.changed)
    rules = course.plan.rules
    bad = sorted(
        path
        for path, kind in changed.items()
        if rules.is_protected(path) or (kind == "added" and _is_bytecode(path))
    )
    if bad:
        shown = ", ".join(f"{path} ({changed[path]})" for path in bad[:_SHOWN])
        raise _Ended(outcome, f"{who} changed what measures the candidate: {shown}")
    if outcome is Outcome.ERROR:
        course.changed_by_setup = tuple(
            sorted(path for path, kind in changed.items() if kind != "added")
        )


def _is_bytecode(path: str) -> bool:
    # It can say other things than the source beside it, and Python would believe it.
    return path.endswith(".pyc") or "__pycache__" in path.split("/")


async def _check_afterwards(course: _Course) -> None:
    changed = await asyncio.to_thread(course.made.changed)
    bad = sorted(
        path
        for path, kind in changed.items()
        if kind != "added" and course.plan.rules.is_protected(path)
    )
    if bad:
        shown = ", ".join(bad[:_SHOWN])
        raise _Ended(Outcome.FAILED, f"files of the evaluation changed while it ran: {shown}")


def _variables(course: _Course) -> dict[str, str]:
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


def _redactor(environment: Mapping[str, str]) -> Redactor:
    store = SecretStore({})
    for name, value in environment.items():
        store.put(f"trial:{name}", value)
    return Redactor(store)


def _without_secrets(redactor: Redactor, tasks: Mapping[str, float]) -> dict[str, float]:
    return {redactor.text(name): value for name, value in tasks.items()}


def last_lines(stages: Sequence[StageReport], *, lines: int = 20) -> str:
    """Give the last lines of the last program that said anything; for people."""
    for stage in reversed(stages):
        said = (stage.stderr or stage.stdout).decode("utf-8", "replace").rstrip("\n")
        if said:
            return "\n".join(said.split("\n")[-lines:])
    return ""
