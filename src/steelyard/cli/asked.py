"""What `run` and `launch` are asked for beside running: gates, reports, calibration, leftovers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from steelyard.config.errors import BadInput, Problem, SteelyardError, Where

if TYPE_CHECKING:
    from steelyard.config.calibration import Calibration
    from steelyard.config.resolve import Resolution
    from steelyard.engine.events import LaunchResult, RequestResult
    from steelyard.engine.plan import Plan
    from steelyard.results.gates import Gate, GateResult

FIELDS: Final = (
    "fail_under", "confident", "require_official", "junit_file", "markdown_file", "calibrate",
    "calibrated_score", "reap",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Asked:
    """The options, as they were given."""

    fail_under: tuple[str, ...] = ()
    confident: bool = False
    require_official: bool = False
    junit_file: Path | None = None
    markdown_file: Path | None = None
    calibrate: bool = False
    calibrated_score: bool = False
    reap: bool = False
    calibrations: tuple[Calibration, ...] = ()
    """What `--calibrate` added to the requests."""

    def expanded(self, resolution: Resolution) -> tuple[Resolution, Asked]:
        """Add the requests of a calibration, where one was asked for.

        Raises:
            BadInput: options that need others, files that cannot be written; all at once.
        """
        from steelyard.cli.report_files import check_writable

        problems = [
            Problem(f"there is no {other} to go with it", Where(field=flag), f"give {other}, too")
            for flag, is_given, other, has_other in (
                ("--confident", self.confident, "--fail-under METRIC=VALUE", bool(self.fail_under)),
                ("--calibrated-score", self.calibrated_score, "--calibrate", self.calibrate),
            )
            if is_given and not has_other
        ]
        try:
            check_writable({"--junit": self.junit_file, "--markdown": self.markdown_file})
        except BadInput as error:
            problems += error.problems
        if problems:
            raise BadInput.of(problems)
        if not self.calibrate:
            return resolution, self
        from steelyard.config.calibration import with_calibration

        larger, calibrations = with_calibration(resolution)
        return larger, replace(self, calibrations=calibrations)

    @property
    def added(self) -> frozenset[str]:
        """The names of requests that calibrate."""
        return frozenset(name for c in self.calibrations for name in (c.oracle, c.nop))

    def gates(self, plan: Plan) -> list[Gate]:
        """Read the gates against what is planned.

        Raises:
            BadInput: unknown metrics, texts of another form; all at once.
        """
        if not (self.fail_under or self.require_official):
            return []
        from steelyard.results.gates import fail_under_gates

        metrics = {
            planned.request.name: [metric.name for metric in planned.info.metrics]
            for planned in plan.requests
            if planned.request.name not in self.added
        }
        return fail_under_gates(
            self.fail_under,
            metrics,
            is_confident=self.confident,
            needs_official=self.require_official,
        )


NOTHING: Final = Asked()
_ENDED: Final = ("completed", "failed")
"""Outcomes of a request whose attempts all ended, or that says itself why they did not."""


def asked_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of `Asked` to a command; `Asked(**picked(given))` reads them."""
    file = click.Path(path_type=Path)
    options = (
        click.option("--fail-under", "fail_under", metavar="[REQUEST:]METRIC=VALUE", multiple=True,
                     help="Exit with 3 where a score is worse than VALUE; may be repeated."),
        click.option("--confident", is_flag=True,
                     help="Hold the worse end of the 95% interval against --fail-under."),
        click.option("--require-official", is_flag=True,
                     help="Exit with 3 where planned attempts do not count."),
        click.option("--calibrate", is_flag=True,
                     help="Run oracle and nop on the same tasks, and name the doubtful ones."),
        click.option("--calibrated-score", is_flag=True,
                     help="Leave what --calibrate finds doubtful out of the scores."),
        click.option("--reap", is_flag=True,
                     help="First end what dead runs of these requests left running or lying."),
        click.option("--junit", "junit_file", metavar="FILE", type=file,
                     help="Write JUnit XML: a test for each task."),
        click.option("--markdown", "markdown_file", metavar="FILE", type=file,
                     help="Write Markdown for a pull request's comment."),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def picked(given: dict[str, Any]) -> Asked:
    """Take the options of `Asked` out of what a command was given."""
    return Asked(**{name: given.pop(name) for name in FIELDS})


# -- afterwards --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ending:
    """A launch as it is reported: what calibrates told apart, gates judged."""

    result: LaunchResult
    """Of the requests that were asked for; its exit status is of gates, too."""
    calibrating: tuple[RequestResult, ...]
    calibrations: tuple[Mapping[str, Any], ...]
    """The documents `calibration/1`, with the requests that each is for."""
    gates: tuple[GateResult, ...]
    notes: tuple[str, ...]
    """What could not be done."""


def concluded(result: LaunchResult, asked: Asked, gates: Sequence[Gate]) -> Ending:
    """Judge a launch that has ended: calibrations first, since scores may depend on them."""
    from steelyard.results.gates import GATE_NOT_MET, judge_run

    notes: list[str] = []
    requests = {request.name: request for request in result.requests}
    calibrations = list(_calibrated(requests, asked, notes))
    own = tuple(requests[r.name] for r in result.requests if r.name not in asked.added)
    others = tuple(r for r in result.requests if r.name in asked.added)
    result = _of_own(result, own, has_others=bool(others))
    judged = tuple(judge_run(gate, requests[gate.request].metrics) for gate in gates)
    if result.exit_status == 0 and not all(each.is_met for each in judged):
        result = replace(result, exit_status=GATE_NOT_MET)
    return Ending(result, others, tuple(calibrations), judged, tuple(notes))


def _of_own(
    result: LaunchResult, own: tuple[RequestResult, ...], *, has_others: bool
) -> LaunchResult:
    """Give the launch without what calibrates: it ended as the requests did that were asked for.

    A broken reference is no failure of theirs, and neither is a budget or a time that they left
    nothing of. Only who cancelled it, cancelled it.
    """
    from steelyard.engine.events import RunOutcome
    from steelyard.engine.outcomes import EXIT_STATUS, orchestration_outcome

    if not has_others or result.outcome is RunOutcome.CANCELLED:
        return replace(result, requests=own)
    outcome = orchestration_outcome([request.outcome for request in own])
    return replace(result, requests=own, outcome=outcome, exit_status=EXIT_STATUS[outcome])


def _calibrated(
    requests: dict[str, RequestResult], asked: Asked, notes: list[str]
) -> Iterator[dict[str, Any]]:
    """Read what calibrations found, and keep it with the runs that they are for."""
    from steelyard.results.calibration import calibrated, write_calibration
    from steelyard.results.summary import write_summary

    for group in asked.calibrations:
        notes += [
            f"{request.name}: {request.outcome}; the calibration is not complete"
            for request in (requests[group.oracle], requests[group.nop])
            if request.outcome not in _ENDED
        ]
        roots = {name: requests[name].run_dir for name in (group.oracle, group.nop, *group.of)}
        oracle, nop = roots[group.oracle], roots[group.nop]
        if oracle is None or nop is None:
            notes.append(f"no calibration of {', '.join(group.of)}: it never began")
            continue
        try:
            report = calibrated(oracle, nop)
        except SteelyardError as error:
            notes.append(f"no calibration of {', '.join(group.of)}: {error}")
            continue
        document = report.as_json(is_applied=asked.calibrated_score)
        for name in group.of:
            if (root := roots[name]) is None:
                continue  # it has no scores
            try:
                write_calibration(root, document)
                metrics = write_summary(root)
            except SteelyardError as error:
                notes.append(f"{name}: its calibration is not in its scores: {error}")
            else:
                requests[name] = replace(requests[name], metrics=metrics)
        yield {"requests": list(group.of), **document}


def ending_lines(ending: Ending) -> list[str]:
    """Say what calibrations found and which gates were met, for people."""
    from steelyard.cli.output import table_lines
    from steelyard.config import printable
    from steelyard.results.summary_text import calibration_lines

    lines: list[str] = []
    for document in ending.calibrations:
        names = ", ".join(document["requests"])
        lines += ["", printable.one_line(f"calibration of {names}: {document['tasks']} tasks")]
        lines += [
            f"  {printable.one_line(line)}" for line in calibration_lines({"calibration": document})
        ]
    lines += [f"  {r.run_dir}" for r in ending.calibrating if r.run_dir is not None]
    if ending.gates:
        rows = [
            (each.gate.option, each.gate.request, "met" if each.is_met else "NOT MET", each.said)
            for each in ending.gates
        ]
        lines += ["", *table_lines(("gate", "request", "", "what was found"), rows)]
    return lines + [f"warning: {printable.one_line(note)}" for note in ending.notes]


def write_files(ending: Ending, asked: Asked, redact: Callable[[str], str]) -> int:
    """Write the reports that were asked for, and give the exit status."""
    from steelyard.cli.report_files import status_with, write_reports
    from steelyard.results.junit import launch_junit
    from steelyard.results.launch_markdown import RunLine, launch_markdown

    own = ending.result.requests
    runs = [(request.name, request.run_dir) for request in own if request.run_dir is not None]
    lines = [
        RunLine(r.name, r.outcome.value, None if r.reason is None else redact(r.reason), r.metrics)
        for r in own
    ]
    problems = write_reports(
        asked.junit_file,
        lambda: map(redact, launch_junit(runs, ending.gates)),
        asked.markdown_file,
        lambda: redact(launch_markdown(lines, ending.gates)),
    )
    return status_with(ending.result.exit_status, problems)
