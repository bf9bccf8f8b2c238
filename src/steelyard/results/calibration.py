"""What ceiling and floor say of a benchmark's tasks: `calibration.json` beside a run's records.

A task that its own reference fails measures the task; one that doing nothing passes measures
nothing. They are named always, and left out of the score only where that was asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import orjson

from steelyard.components.benchmark import MetricSpec
from steelyard.components.issues import IssueCode, Outcome
from steelyard.results.documents import part
from steelyard.results.files import write_beside
from steelyard.results.layout import RunFiles
from steelyard.results.plain_files import MAX_DOCUMENT_BYTES, read_plain
from steelyard.results.reader import RunReader
from steelyard.results.records import AttemptRecord
from steelyard.results.tallies import metric_specs

CALIBRATION_SCHEMA: Final = "calibration/1"
NO_REFERENCE: Final = "has no reference to play"
"""In the words of the harness `oracle`; a test compares them."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A task, and what was seen at it."""

    task_id: str
    said: str


@dataclass(frozen=True, slots=True)
class CalibrationReport:
    """What both runs found."""

    oracle_run: Path
    nop_run: Path
    tasks: int
    """That at least one of both has a record of."""
    oracle_failed: tuple[Finding, ...]
    nop_passed: tuple[Finding, ...]
    no_reference: tuple[str, ...]
    """Tasks that name no reference: their ceiling is not known."""
    not_calibrated: tuple[Finding, ...]
    """Tasks at which something else broke: nothing is known of them."""

    @property
    def doubtful(self) -> tuple[str, ...]:
        """Tasks whose reference fails or that doing nothing passes, in their order."""
        return tuple(dict.fromkeys(f.task_id for f in (*self.oracle_failed, *self.nop_passed)))

    def as_json(self, *, is_applied: bool) -> dict[str, Any]:
        """Give the document; `is_applied` says whether doubtful tasks are left out."""
        return {
            "schema": CALIBRATION_SCHEMA,
            "oracle_run_id": self.oracle_run.name,
            "nop_run_id": self.nop_run.name,
            "tasks": self.tasks,
            "oracle_failed": [_finding_json(each) for each in self.oracle_failed],
            "nop_passed": [_finding_json(each) for each in self.nop_passed],
            "no_reference": list(self.no_reference),
            "not_calibrated": [_finding_json(each) for each in self.not_calibrated],
            "is_applied": is_applied,
            "left_out": list(self.doubtful) if is_applied else [],
        }


def calibrated(oracle_run: Path, nop_run: Path) -> CalibrationReport:
    """Read what a run of `oracle` and one of `nop` on the same tasks found.

    Raises:
        RunUnreadable: one of them is no run, or cannot be read.
    """
    failed: list[Finding] = []
    passed: list[Finding] = []
    broken: list[Finding] = []
    bare: list[str] = []
    seen: dict[str, None] = {}
    for record, metric in _records(oracle_run):
        seen[record.task_id] = None
        invalid = [i.message for i in record.last_issues if i.code is IssueCode.TASK_INVALID]
        if any(NO_REFERENCE in message for message in invalid):
            bare.append(record.task_id)
        elif record.outcome is Outcome.SCORED or record.outcome in _FELL_SHORT or invalid:
            if not _is_best(record, metric):
                failed.append(Finding(record.task_id, _said(record, metric)))
        elif record.outcome is Outcome.FAILED_FATAL:
            broken.append(Finding(record.task_id, f"oracle: {_said(record, metric)}"))
    for record, metric in _records(nop_run):
        seen[record.task_id] = None
        if _is_best(record, metric):
            passed.append(Finding(record.task_id, _said(record, metric)))
        elif record.outcome is Outcome.FAILED_FATAL:
            broken.append(Finding(record.task_id, f"nop: {_said(record, metric)}"))
    return CalibrationReport(
        oracle_run,
        nop_run,
        len(seen),
        tuple(failed),
        tuple(passed),
        tuple(bare),
        tuple(broken),
    )


_FELL_SHORT: Final = frozenset({Outcome.FAILED_ERROR, Outcome.TIMED_OUT})


def write_calibration(root: Path, document: Mapping[str, Any]) -> None:
    """Keep what a calibration found beside a run's records.

    Raises:
        StorageFailed: it could not be written.
    """
    name = RunFiles(root).calibration.name
    write_beside(root, name, orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n")


def read_calibration(root: Path) -> tuple[dict[str, Any] | None, str | None]:
    """Give what was kept of a run's calibration, or what is wrong with it."""
    path = RunFiles(root).calibration
    try:
        document = orjson.loads(read_plain(path, MAX_DOCUMENT_BYTES))
    except FileNotFoundError:
        return None, None
    except (OSError, orjson.JSONDecodeError) as error:
        return None, f"{path.name}: {error}; it is not used"
    if not _is_sound(document):
        return None, f"{path.name} is not of {CALIBRATION_SCHEMA}; it is not used"
    return document, None


def _is_sound(document: object) -> bool:
    if not isinstance(document, dict) or document.get("schema") != CALIBRATION_SCHEMA:
        return False
    if not all(isinstance(document.get(name), list) for name in _LISTS):
        return False
    findings = [*document["oracle_failed"], *document["nop_passed"], *document["not_calibrated"]]
    texts = [*document["left_out"], *document["no_reference"]]
    return all(isinstance(text, str) for text in texts) and all(
        isinstance(each, dict) and {"task_id", "said"} <= set(each) for each in findings
    )


_LISTS: Final = ("oracle_failed", "nop_passed", "no_reference", "not_calibrated", "left_out")


def _records(root: Path) -> Iterator[tuple[AttemptRecord, MetricSpec | None]]:
    reader = RunReader(root)
    info = part(reader.document, "benchmark_info")
    metric = next((s for s in metric_specs(info) if s.name == info.get("primary")), None)
    for record in reader.records():
        yield record, metric


def _is_best(record: AttemptRecord, metric: MetricSpec | None) -> bool:
    """True where the primary metric is as good as it can be.

    Where a metric has no bounds nobody can say: then whatever was scored above 0 passes.
    """
    value = None if metric is None else record.metrics.get(metric.name)
    if record.outcome is not Outcome.SCORED or value is None or metric is None:
        return False
    if metric.bounds is None:
        return bool(value > 0) if metric.higher_is_better else False
    best = metric.bounds[1] if metric.higher_is_better else metric.bounds[0]
    return bool(value >= best) if metric.higher_is_better else bool(value <= best)


def _said(record: AttemptRecord, metric: MetricSpec | None) -> str:
    if record.last_issues:
        return f"{record.last_issues[0].code}: {record.last_issues[0].message}"
    value = None if metric is None else record.metrics.get(metric.name)
    return record.outcome.value if metric is None or value is None else f"{metric.name} {value:g}"


def _finding_json(finding: Finding) -> dict[str, str]:
    return {"task_id": finding.task_id, "said": finding.said}
