"""Sets on the disk for tests: their documents and records are written as the product writes them.

Nothing runs: `write_set` takes what each cell's records are to be, and is fast enough for 200,000.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from steelyard.components.issues import Issue, IssueCode, Outcome, Phase
from steelyard.components.values import Trust, Usage
from steelyard.engine.events import RunOutcome
from steelyard.evalset.expansion import Cell, derived_seed
from steelyard.evalset.keys import matrix_key
from steelyard.evalset.layout import SetFiles, cell_folder
from steelyard.evalset.set_document import PinnedAgent, PinnedPack, SetCell, SetDocument
from steelyard.evalset.submissions import Submission
from steelyard.results.layout import RunFiles
from steelyard.results.lines import encode
from steelyard.results.records import AttemptRecord, Timing
from steelyard.results.records_io import record_to_json

CREATED_AT: Final = "2026-12-01T08:00:00.000Z"
PASSED: Final[Mapping[str, Any]] = {
    "name": "passed", "kind": "binary", "higher_is_better": True, "bounds": [0.0, 1.0],
    "on_failure": 0.0,
}  # fmt: skip
GRADE: Final[Mapping[str, Any]] = {
    "name": "grade", "kind": "scalar", "higher_is_better": True, "bounds": [0.0, 1.0],
    "on_failure": 0.0,
}  # fmt: skip
LATENCY: Final[Mapping[str, Any]] = {
    "name": "latency", "kind": "scalar", "higher_is_better": False, "bounds": None,
    "on_failure": None,
}  # fmt: skip

Records = Callable[[SetCell], "Iterable[AttemptRecord] | None"]


def a_record(
    case: str = "case-1",
    value: bool | float | None = True,
    *,
    metric: str = "passed",
    attempt: int = 1,
    cost_usd: float | None = 0.001,
    agent_s: float = 1.0,
    **changes: Any,
) -> AttemptRecord:
    """Give the record of an attempt; without a value say its outcome in `changes`."""
    fields: dict[str, Any] = {
        "task_id": case,
        "attempt": attempt,
        "outcome": Outcome.SCORED,
        "metrics": {} if value is None else {metric: value},
        "answer": "42",
        "executions": 1,
        "usage": Usage(100, 20, requests=1, cost_usd=cost_usd),
        "timing": Timing(
            setup_s=0.25,
            agent_s=agent_s,
            evaluate_s=0.25,
            started_at="2026-12-01T08:00:01.000Z",
            finished_at="2026-12-01T08:00:02.500Z",
        ),
        "trust": Trust.HOST,
        "evaluation": digest("evaluation", case),
        "content": digest("content", case),
    }
    return AttemptRecord(**{**fields, **changes})


def fatal(case: str, attempt: int = 1, code: IssueCode = IssueCode.SCORER_CRASHED) -> AttemptRecord:
    """Give the record of an attempt that says nothing of the agent."""
    issue = Issue.of(code, Phase.EVALUATE, "it broke")
    return a_record(
        case, None, attempt=attempt, outcome=Outcome.FAILED_FATAL, issues=(issue,)
    )  # fmt: skip


def failed(case: str, attempt: int = 1, code: IssueCode = IssueCode.TURN_LIMIT) -> AttemptRecord:
    """Give the record of an attempt in which the agent fell short."""
    issue = Issue.of(code, Phase.RUN, "too many turns")
    return a_record(
        case, None, attempt=attempt, outcome=Outcome.FAILED_ERROR, issues=(issue,)
    )  # fmt: skip


def digest(*parts: str) -> str:
    """Give 32 hex digits."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def write_set(
    root: Path,
    records: Records,
    *,
    name: str = "nightly",
    packs: Sequence[str] = ("refunds",),
    agents: Sequence[str] = ("base", "new"),
    models: Sequence[str] | None = None,
    repeats: int = 1,
    versions: Mapping[str, int] | None = None,
    metrics: Mapping[str, Sequence[Mapping[str, Any]]] | Sequence[Mapping[str, Any]] = (PASSED,),
    k: int = 1,
    cases: int | Callable[[SetCell], int] | None = None,
    plan: Mapping[str, Any] | None = None,
    set_id: str = "20261201-080000",
    outcome: str | None = "completed",
    manifest: Mapping[str, Any] | None = None,
    agent_digests: Mapping[str, str] | None = None,
    model: str = "m-1",
) -> Path:
    """Write a set below `root`, and give its folder.

    Args:
        root: what stands for the results folder.
        records: those of a cell; None where nothing of it has begun.
        name: the set's.
        packs: slugs; the ref is the slug.
        agents: labels, which are also the deployments' names.
        models: the axis; None for none.
        repeats: of each combination.
        versions: of packs, 1 where not named.
        metrics: of every pack, the primary first, or by slug.
        k: attempts at a case in one cell.
        cases: how many were planned; the records' own by default.
        plan: changes to `run.json`'s plan.
        set_id: the folder's name.
        outcome: of the one submission; None where its process died.
        manifest: changes to the manifest.
        agent_digests: of deployments.
        model: what a cell without an axis sends.
    """
    files = SetFiles(root / name / set_id)
    files.cells.mkdir(parents=True)
    pinned = {slug: a_pack(slug, (versions or {}).get(slug, 1)) for slug in packs}
    deployed = {
        label: PinnedAgent(label, label, digest("uuid", label), label,
                           (agent_digests or {}).get(label, digest("agent", label)))
        for label in agents
    }  # fmt: skip
    cells: list[SetCell] = []
    for slug in packs:
        for label in agents:
            for axis in models or (None,):
                for repeat in range(1, repeats + 1):
                    key = matrix_key(slug, label, axis, repeat)
                    seed = derived_seed(name, repeat)
                    index = len(cells)
                    one = Cell(index, key, slug, label, label, axis, repeat, seed)
                    folder = cell_folder(index, key)
                    cells.append(SetCell(index, folder, one, pinned[slug], deployed[label]))
    document = SetDocument(
        set_id=set_id,
        name=name,
        created_at=CREATED_AT,
        manifest={
            "schema": "evalset/v1",
            "name": name,
            "packs": list(packs),
            "agents": [{"deployment": label, "label": label} for label in agents],
            **({} if models is None else {"models": list(models)}),
            "repeats": repeats,
            **(manifest or {}),
        },
        manifest_file="steelyard.evalset.yaml",
        packs=tuple(pinned.values()),
        agents=tuple(deployed.values()),
        cells=tuple(cells),
    )
    files.document.write_text(json.dumps(document.as_json()))
    files.submissions.mkdir()
    submission = Submission(
        1,
        "submit",
        CREATED_AT,
        None,
        tuple(cell.index for cell in cells),
        None if outcome is None else RunOutcome(outcome),
        None if outcome is None else 0,
        None if outcome is None else CREATED_AT,
    )
    (files.submissions / "0001.json").write_text(json.dumps(submission.as_json()))
    for cell in cells:
        found = records(cell)
        if found is None:
            continue
        specs = metrics[cell.pack.slug] if isinstance(metrics, Mapping) else metrics
        write_cell_run(
            files.cell(cell.folder) / "20261201-080001",
            list(found),
            cell=cell,
            metrics=specs,
            k=k,
            cases=cases(cell) if callable(cases) else cases,
            plan=plan or {},
            model=cell.cell.model_ref or model,
        )
    return files.root


def a_pack(slug: str, version: int = 1) -> PinnedPack:
    """Give a pack as a set pins it."""
    content = digest("pack", slug, str(version)) * 2
    return PinnedPack(slug, slug, version, content, digest("pack-id", slug), f"packs/{slug}")


def write_cell_run(
    root: Path,
    records: Sequence[AttemptRecord],
    *,
    cell: SetCell,
    metrics: Sequence[Mapping[str, Any]],
    k: int,
    cases: int | None,
    plan: Mapping[str, Any],
    model: str,
    outcome: str | None = "completed",
    created_at: str = CREATED_AT,
) -> Path:
    """Write a run directory with these records, as a launch leaves it when it has ended."""
    root.mkdir(parents=True)
    files = RunFiles(root)
    planned = len({record.task_id for record in records}) if cases is None else cases
    version = f"{cell.pack.slug}@{cell.pack.version}"
    document = {
        "schema": "run/1",
        "run_id": root.name,
        "created_at": created_at,
        "name": cell.folder,
        "request": {"name": cell.folder, "model": {"id": model}},
        "benchmark_info": {
            "id": f"pack:{cell.pack.slug}",
            "version": version,
            "primary": metrics[0]["name"],
            "metrics": [dict(metric) for metric in metrics],
        },
        "plan": {"k": k, "strategy": "avg", "early_stop": False, **plan},
        "identities": {
            "evaluation": {
                "schema": "evaluation/1",
                "benchmark": {"id": cell.pack.slug, "version": version, "params": {}},
            }
        },
    }
    files.document.write_text(json.dumps(document))
    files.attempts.write_bytes(b"".join(encode(record_to_json(record)) for record in records))
    events: list[dict[str, Any]] = [{"kind": "planned", "tasks": planned, "k": k}]
    counts: dict[str, int] = {}
    for record in records:
        counts[record.outcome.value] = counts.get(record.outcome.value, 0) + 1
    if outcome is not None:
        events.append({"kind": "finished", "outcome": outcome, "counts": counts, "reason": None})
    files.events.write_bytes(
        b"".join(
            encode({"schema": "event/1", "seq": number, "at": created_at, **event})
            for number, event in enumerate(events, 1)
        )
    )
    if outcome is None:
        return root
    costs = [record.usage.cost_usd for record in records]
    known = sum(cost for cost in costs if cost is not None)
    spent = {
        "requests": sum(record.usage.requests for record in records),
        "input_tokens": sum(record.usage.input_tokens for record in records),
        "output_tokens": sum(record.usage.output_tokens for record in records),
        "cost_usd": None if None in costs else known,
        "known_cost_usd": known,
    }
    files.metrics.write_text(json.dumps({"schema": "metrics/1", "spent": spent}))
    files.progress.write_text(
        json.dumps(
            {
                "schema": "progress/1",
                "run_id": root.name,
                "outcome": outcome,
                "planned": planned * k,
                "outcomes": counts,
                "cost_usd": spent["cost_usd"],
                "elapsed_s": 60.0,
            }
        )
    )
    return root


def verdicts(values: Mapping[str, Mapping[str, Sequence[Any]]]) -> Records:
    """Give cells' records from `{agent: {case: [value of repeat 1, …]}}`, in any pack.

    A value is what the primary metric says, `fatal`, `failed`, or None for no record.
    """

    def records(cell: SetCell) -> list[AttemptRecord]:
        found = []
        for case, entries in values[cell.agent.shown].items():
            entry = entries[cell.cell.repeat - 1]
            if entry == "fatal":
                found.append(fatal(case))
            elif entry == "failed":
                found.append(failed(case))
            elif entry is not None:
                found.append(a_record(case, entry))
        return found

    return records
