"""The checks of a trial, and the proof that nothing changed what measures the candidate."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Final

from steelyard.fix.python_words import (
    PYTEST_NOTHING_PROVEN,
    PytestShield,
    is_pytest,
    pytest_shield,
)
from steelyard.fix.runner_values import StageEnd
from steelyard.fix.trial_course import (
    Course,
    Ended,
    how_it_fell_short,
    run_program,
    started,
    variables_of,
)
from steelyard.fix.trial_plan import CheckPlan, CheckResult, Outcome

_SHOWN: Final = 10


async def run_check(course: Course, check: CheckPlan) -> None:
    """Run a check and record what became of it.

    Raises:
        Ended: the trial is over by it.
    """
    name = f"check {check.id}"
    variables = variables_of(course)
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
        program = started(course, program, tests_path=str(inside / "tests.json"))
    end = await run_program(
        course, name, program, variables, shown_argv=check.program.argv, binds=binds
    )
    reason = _why_not_passed(name, check, end, report)
    passed = reason is None
    is_proof = not (is_pytest(check.program.argv) and end.exit_code in PYTEST_NOTHING_PROVEN)
    expected = check.baseline_expected if course.plan.is_baseline else "pass"
    as_expected = passed == (expected == "pass")
    course.checks.append(CheckResult(check.id, passed, as_expected and is_proof, reason))
    if not is_proof and expected == "fail":
        raise Ended(
            Outcome.ERROR,
            f"{name} did not run to a verdict, which is no proof that the defect is there: "
            f"{reason}",
        )
    if not as_expected:
        if passed:
            raise Ended(
                Outcome.FAILED,
                f"{name} passed on the baseline, though `baseline_expected` is `fail`",
            )
        raise Ended(Outcome.FAILED, reason or f"{name} failed")


def _why_not_passed(name: str, check: CheckPlan, end: StageEnd, report: Path | None) -> str | None:
    if end.exit_code != 0:
        return how_it_fell_short(name, end)
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


def _shielded(course: Course, check: CheckPlan, shield: PytestShield) -> str:
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


async def check_frozen(course: Course, outcome: Outcome, who: str) -> None:
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
        raise Ended(outcome, f"{who} changed what measures the candidate: {shown}")
    if outcome is Outcome.ERROR:
        course.changed_by_setup = tuple(
            sorted(path for path, kind in changed.items() if kind != "added")
        )


def _is_bytecode(path: str) -> bool:
    # It can say other things than the source beside it, and Python would believe it.
    return path.endswith(".pyc") or "__pycache__" in path.split("/")


async def check_afterwards(course: Course) -> None:
    """See that nothing changed the evaluation's files while the benchmark ran.

    Raises:
        Ended: something did.
    """
    changed = await asyncio.to_thread(course.made.changed)
    bad = sorted(
        path
        for path, kind in changed.items()
        if kind != "added" and course.plan.rules.is_protected(path)
    )
    if bad:
        shown = ", ".join(bad[:_SHOWN])
        raise Ended(Outcome.FAILED, f"files of the evaluation changed while it ran: {shown}")
