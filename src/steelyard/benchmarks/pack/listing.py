"""What `pack list` and `pack show` tell of packs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from steelyard.benchmarks.pack.benchmark import PackBenchmark
from steelyard.benchmarks.pack.document import Document, parse_pack, shown_path
from steelyard.benchmarks.pack.paths import SKIPPED_NAMES
from steelyard.benchmarks.pack.schema import PACK_FILE
from steelyard.config.errors import BadInput, Where
from steelyard.config.source import read_file
from steelyard.config.validation import nearest

_MAX_DEPTH: Final = 4


@dataclass(frozen=True, slots=True)
class ListedPack:
    """One pack of a listing; a malformed one is listed with what is wrong."""

    slug: str
    path: str
    summary: str
    is_valid: bool

    def as_json(self) -> dict[str, Any]:
        """Give the form that `--json` prints."""
        return {
            "slug": self.slug,
            "path": self.path,
            "summary": self.summary,
            "valid": self.is_valid,
        }


def listed_packs(folder: Path) -> list[ListedPack]:
    """List the packs in a folder and at most four levels below it, by path.

    Raises:
        BadInput: there is no such folder.
    """
    if not folder.is_dir():
        raise BadInput(f"there is no folder {folder}", where=Where(str(folder)))
    return [_listed(root) for root in sorted(_pack_roots(folder))]


def _pack_roots(folder: Path) -> Iterator[Path]:
    start = len(folder.parts)
    for root, folders, files in os.walk(folder):
        path = Path(root)
        if PACK_FILE in files:
            folders.clear()
            yield path
        elif len(path.parts) - start >= _MAX_DEPTH:
            folders.clear()
        folders[:] = [n for n in folders if n not in SKIPPED_NAMES and not n.startswith(".")]


def _listed(root: Path) -> ListedPack:
    shown = shown_path(root)
    try:
        found, problems = parse_pack(Document(read_file(root / PACK_FILE)))
    except BadInput as error:
        return ListedPack("?", shown, error.problems[0].message, is_valid=False)
    if found is None or problems:
        return ListedPack("?", shown, problems[0].message, is_valid=False)
    file = found.file
    summary = file.name or (file.description or "").strip().split("\n")[0]
    return ListedPack(file.slug, shown, summary, is_valid=True)


def description_of(benchmark: PackBenchmark, case_id: str | None) -> dict[str, Any]:
    """Describe a pack, with one case's prompt.

    Raises:
        BadInput: the pack is malformed, or has no such case.
    """
    info, pack, tasks = benchmark.info(), benchmark.pack, benchmark.load_tasks()
    by_id = {task.id: task for task in tasks}
    task = tasks[0] if case_id is None else by_id.get(case_id)
    if task is None:
        near = nearest(str(case_id), by_id)
        raise BadInput(
            f"there is no case {case_id!r}",
            remedy=f"did you mean {near}?" if near else f"there are {len(tasks)} cases",
        )
    shown = benchmark.task_input(task, attempt=1, seed=0)
    file = pack.file
    return {
        "schema": "pack-show/1",
        "slug": info.id,
        "version": info.version,
        "name": file.name,
        "description": file.description,
        "cases": len(tasks),
        "categories": sorted({task.category for task in tasks if task.category is not None}),
        "primary": info.primary,
        "validators": [
            {"name": made.name, "type": spec.type, "weight": spec.weight, "gate": spec.gate}
            for made, spec in zip(pack.validators, file.scoring.validators, strict=True)
        ],
        "strategy": file.scoring.strategy,
        "threshold": file.scoring.threshold,
        "has_reference": pack.reference is not None,
        "runs_code": info.runs_model_code,
        "case": task.id,
        "messages": [
            {"role": message.role, "content": message.content} for message in shown.messages
        ],
    }


def described_lines(description: Mapping[str, Any]) -> Iterator[str]:
    """Write a description for people."""
    yield f"{description['slug']} {description['version']}"
    for field in ("name", "description"):
        if description[field]:
            yield f"  {description[field].strip()}"
    for field in ("path", "digest", "id"):
        if field in description:
            yield f"  {field}: {description[field]}"
    yield f"  cases: {description['cases']}"
    if description["categories"]:
        yield f"  categories: {', '.join(description['categories'])}"
    threshold = description["threshold"]
    bar = "" if threshold is None else f", correct from a score of {threshold:g}"
    yield f"  primary metric: {description['primary']} (strategy {description['strategy']}{bar})"
    for validator in description["validators"]:
        gate = ", gate" if validator["gate"] else ""
        yield (
            f"  validator {validator['name']}: {validator['type']}, "
            f"weight {validator['weight']:g}{gate}"
        )
    yield f"  reference: {'yes' if description['has_reference'] else 'no'}"
    yield f"\nthe prompt of case {description['case']}:"
    for message in description["messages"]:
        yield f"\n[{message['role']}]\n{_harmless(message['content'])}"


def _harmless(text: str) -> str:
    """Escape what would move a terminal's cursor or paint it; lines and tabs stay."""
    return "".join(c if c.isprintable() or c in "\n\t" else repr(c)[1:-1] for c in text)
