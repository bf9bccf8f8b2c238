"""A row for each case of a set, made from its record the moment it is there.

Nothing is stored twice: rows are what the cells' records say, with the cell's parts beside them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from steelyard.components.issues import Outcome
from steelyard.evalset.set_document import SetCell
from steelyard.evalset.set_reader import OpenedSet
from steelyard.results.records import AttemptRecord


@dataclass(frozen=True, slots=True)
class Row:
    """One attempt at one case of one cell."""

    set_id: str
    set_name: str
    cell: int
    matrix_key: str
    pack: str
    """The pack's slug."""
    pack_ref: str
    pack_version: int
    agent: str
    """The label, else the deployment as the manifest has it."""
    agent_name: str
    """The deployment's name."""
    model_ref: str | None
    """Of the manifest's axis; None without one."""
    model: str
    """What was sent to the endpoint; `none` where no model was called."""
    repeat: int
    seed: int
    case: str
    attempt: int
    score: float | None
    """The primary metric; None where it was not scored."""
    correct: bool | None
    """Of a benchmark whose primary metric is binary."""
    metrics: Mapping[str, float | bool]
    outcome: Outcome
    issue_codes: tuple[str, ...]
    cost_usd: float | None
    input_tokens: int
    output_tokens: int
    requests: int
    agent_s: float
    elapsed_s: float | None
    """From start to end of its last execution."""
    trust: str | None
    category: str | None
    cluster: str | None
    executions: int
    is_reused: bool
    trace_path: str | None
    """The trajectory, relative to the set's folder."""
    started_at: str | None
    finished_at: str | None


def rows_of(opened: OpenedSet) -> Iterator[Row]:
    """Iterate over the rows of a set, cell by cell; what has no record has no row."""
    for cell in opened.cells:
        yield from cell_rows(opened, cell)


def cell_rows(opened: OpenedSet, cell: SetCell) -> Iterator[Row]:
    """Iterate over the rows of a cell; none where nothing of it has begun.

    Raises:
        RunUnreadable: its newest run cannot be read.
    """
    reader = opened.reader(cell)
    if reader is None:
        return
    context = RowContext.of(opened, cell, reader.document, str(reader.root))
    for record in reader.records():
        yield context.row(record)


@dataclass(frozen=True, slots=True)
class RowContext:
    """What all rows of a cell share."""

    opened: OpenedSet
    cell: SetCell
    primary: str
    model: str
    run: str
    """The run directory, relative to the set's folder."""

    @classmethod
    def of(
        cls, opened: OpenedSet, cell: SetCell, document: Mapping[str, Any], root: str
    ) -> RowContext:
        """Take it from a run's `run.json`."""
        info = document.get("benchmark_info") or {}
        request = document.get("request") or {}
        model = (request.get("model") or {}).get("id", "none")
        run = root.removeprefix(str(opened.root)).lstrip("/")
        return cls(opened, cell, str(info.get("primary", "score")), str(model), run)

    def row(self, record: AttemptRecord) -> Row:
        """Make the row of a record."""
        cell, timing = self.cell, record.timing
        value = record.metrics.get(self.primary)
        trajectory = record.trajectory or {}
        path = trajectory.get("path")
        return Row(
            set_id=self.opened.set_id,
            set_name=self.opened.name,
            cell=cell.index,
            matrix_key=cell.matrix_key,
            pack=cell.pack.slug,
            pack_ref=cell.pack.ref,
            pack_version=cell.pack.version,
            agent=cell.agent.shown,
            agent_name=cell.agent.name,
            model_ref=cell.cell.model_ref,
            model=self.model,
            repeat=cell.cell.repeat,
            seed=cell.cell.seed,
            case=record.task_id,
            attempt=record.attempt,
            score=None if value is None else float(value),
            correct=value if isinstance(value, bool) else None,
            metrics=record.metrics,
            outcome=record.outcome,
            issue_codes=tuple(dict.fromkeys(issue.code for issue in record.issues)),
            cost_usd=record.usage.cost_usd,
            input_tokens=record.usage.input_tokens,
            output_tokens=record.usage.output_tokens,
            requests=record.usage.requests,
            agent_s=timing.agent_s,
            elapsed_s=_elapsed(timing.started_at, timing.finished_at),
            trust=record.trust,
            category=record.category,
            cluster=record.cluster,
            executions=record.executions,
            is_reused=record.reused_from is not None,
            trace_path=None if path is None else f"{self.run}/{path}",
            started_at=timing.started_at,
            finished_at=timing.finished_at,
        )


def _elapsed(began: str | None, ended: str | None) -> float | None:
    if began is None or ended is None:
        return None
    from datetime import datetime

    try:
        return (datetime.fromisoformat(ended) - datetime.fromisoformat(began)).total_seconds()
    except ValueError:
        return None
