"""A finding's evidence where it stands: the step, with what surrounds the span."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from steelyard.components.analyzer import TrajectoryUnreadable
from steelyard.components.steps import Step
from steelyard.config.errors import SteelyardError
from steelyard.evalset.finding_values import KeptFinding, work_digest
from steelyard.evalset.set_reader import OpenedSet
from steelyard.results.reader import RunReader
from steelyard.results.records_io import MalformedRecord

AROUND_CHARS: Final = 400
_CUT: Final = "…"


@dataclass(frozen=True, slots=True)
class EvidenceContext:
    """Where a finding's evidence stands; or why that cannot be shown."""

    place: str | None = None
    """What of the step it stands in: `message`, `call of bash`, `result`, …"""
    before: str = ""
    span: str = ""
    after: str = ""
    source: str | None = None
    """The step's source: `agent`, `user` or `system`."""
    missing: str | None = None
    """Why there is nothing to show."""

    def as_json(self) -> dict[str, Any]:
        """Give the form of documents."""
        return {
            "place": self.place,
            "source": self.source,
            "before": self.before,
            "span": self.span,
            "after": self.after,
            "missing": self.missing,
        }


def evidence_context(opened: OpenedSet, finding: KeptFinding) -> EvidenceContext:
    """Look a finding's evidence up in its trajectory. Never raises for what lies there."""
    if finding.step is None:
        return EvidenceContext(missing="its evidence is of no step")
    cell = next((one for one in opened.cells if one.index == finding.cell), None)
    if cell is None:
        return EvidenceContext(missing="its cell is not in the set any more")
    try:
        # Its own run first: the attempt may have been executed again since.
        for root in sorted(opened.run_dirs(cell), key=lambda root: root.name != finding.run):
            reader = RunReader(root)
            record = reader.record(finding.case, finding.attempt)
            if record is not None and work_digest(record) == finding.digest:
                break
        else:
            return EvidenceContext(missing="the run that was read is gone")
        assert record is not None  # noqa: S101 — the loop was left by `break`
        for number, step in enumerate(reader.steps(record)):
            if number == finding.step:
                return _in_step(step, finding.evidence)
    except (SteelyardError, TrajectoryUnreadable, MalformedRecord, OSError) as error:
        return EvidenceContext(missing=f"its trajectory cannot be read: {error}")
    return EvidenceContext(missing=f"its trajectory has no step {finding.step}")


def _in_step(step: Step, evidence: str) -> EvidenceContext:
    wanted = evidence.removesuffix(_CUT)
    for place, text in _texts(step):
        at = text.find(wanted) if wanted else -1
        if at >= 0:
            end = at + len(wanted)
            start = max(0, at - AROUND_CHARS)
            stop = min(len(text), end + AROUND_CHARS)
            return EvidenceContext(
                place,
                f"{_CUT if start else ''}{text[start:at]}",
                wanted,
                f"{text[end:stop]}{_CUT if stop < len(text) else ''}",
                step.source,
            )
    return EvidenceContext(source=step.source, missing="the span is not in its step as it stands")


def _texts(step: Step) -> Iterator[tuple[str, str]]:
    for call in step.tool_calls:
        yield f"call of {call.name}", call.arguments
    yield "message", step.message
    yield "reasoning", step.reasoning or ""
    for result in step.results:
        yield "result", result.content
