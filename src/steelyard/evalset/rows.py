"""A row for each attempt at a case of a set, made from its record the moment it is there.

Nothing is stored twice: rows are what the cells' records say, with the cell's parts beside them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from steelyard.components.benchmark import MetricSpec
from steelyard.components.issues import Outcome
from steelyard.evalset.set_document import SetCell
from steelyard.evalset.set_reader import OpenedSet
from steelyard.results.documents import part
from steelyard.results.records import AttemptRecord
from steelyard.results.tallies import counted_value, metric_specs

PASSED: Final = "pass"
FAILED: Final = "fail"


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
    """What it counts as in the primary metric, by the benchmark's rule for failures; None where it
    does not count."""
    verdict: str | None
    """`pass` or `fail` where the primary metric is binary; None where it does not count."""
    metrics: Mapping[str, float | bool]
    """Every metric, as scoring gave it."""
    outcome: Outcome
    issue_codes: tuple[str, ...]
    """Of all executions."""
    cost_usd: float | None
    """None where a call had no known price."""
    input_tokens: int
    output_tokens: int
    requests: int
    queued_s: float
    setup_s: float
    agent_s: float
    waited_s: float
    collect_s: float
    evaluate_s: float
    duration_s: float
    """Its phases together, by a clock that does not step; waiting for a start is not in it."""
    trust: str | None
    category: str | None
    cluster: str | None
    executions: int
    is_reused: bool
    """Taken over from an earlier run, which paid for it."""
    is_flagged: bool
    """A secret stands in one of its kept files."""
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


def metric_names(opened: OpenedSet) -> list[str]:
    """List the metrics of all packs, each once, in the order of the cells."""
    found: dict[str, None] = {}
    packs = set()
    for cell in opened.cells:
        key = cell.pack.slug, cell.pack.version, cell.pack.digest
        if key not in packs and (reader := opened.reader(cell)) is not None:
            packs.add(key)
            info = part(reader.document, "benchmark_info")
            found |= dict.fromkeys(spec.name for spec in metric_specs(info))
    return list(found)


@dataclass(frozen=True, slots=True)
class RowContext:
    """What all rows of a cell share."""

    opened: OpenedSet
    cell: SetCell
    primary: MetricSpec | None
    model: str
    run: str
    """The run directory, relative to the set's folder."""

    @classmethod
    def of(
        cls, opened: OpenedSet, cell: SetCell, document: Mapping[str, Any], root: str
    ) -> RowContext:
        """Take it from a run's `run.json`."""
        info = part(dict(document), "benchmark_info")
        primary = str(info.get("primary"))
        spec = next((spec for spec in metric_specs(info) if spec.name == primary), None)
        model = part(part(dict(document), "request"), "model").get("id", "none")
        run = root.removeprefix(str(opened.root)).lstrip("/")
        return cls(opened, cell, spec, str(model), run)

    def row(self, record: AttemptRecord) -> Row:
        """Make the row of a record."""
        cell, timing, spec = self.cell, record.timing, self.primary
        score = None if spec is None else counted_value(spec, record.outcome, record.metrics)
        path = (record.trajectory or {}).get("path")
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
            score=score,
            verdict=_verdict(spec, score),
            metrics=record.metrics,
            outcome=record.outcome,
            issue_codes=tuple(dict.fromkeys(issue.code.value for issue in record.issues)),
            cost_usd=record.usage.cost_usd,
            input_tokens=record.usage.input_tokens,
            output_tokens=record.usage.output_tokens,
            requests=record.usage.requests,
            queued_s=timing.queued_s,
            setup_s=timing.setup_s,
            agent_s=timing.agent_s,
            waited_s=timing.waited_s,
            collect_s=timing.collect_s,
            evaluate_s=timing.evaluate_s,
            duration_s=round(
                timing.setup_s
                + timing.agent_s
                + timing.waited_s
                + timing.collect_s
                + timing.evaluate_s,
                6,
            ),
            trust=None if record.trust is None else record.trust.value,
            category=record.category,
            cluster=record.cluster,
            executions=record.executions,
            is_reused=record.reused_from is not None,
            is_flagged=any(one.get("flagged") for one in record.artifacts),
            trace_path=None if path is None else f"{self.run}/{path}",
            started_at=timing.started_at,
            finished_at=timing.finished_at,
        )


def _verdict(spec: MetricSpec | None, score: float | None) -> str | None:
    if spec is None or score is None or spec.kind != "binary":
        return None
    return PASSED if bool(score) == spec.higher_is_better else FAILED
