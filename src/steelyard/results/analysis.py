"""`analysis.json` and `analysis.md`: what analyzers found in a run, derived as its summary is.

The same run and the same analyzers give the same bytes. Nothing here depends on the present
moment; whoever runs the analyzers is `engine.analysis`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import orjson

from steelyard.components.analyzer import Analysis
from steelyard.results.documents import part
from steelyard.results.files import NO_FAULTS, Faults, WritePoint, replace_atomically
from steelyard.results.layout import RunFiles
from steelyard.results.lines import redacted_json
from steelyard.results.reader import RunReader

ANALYSIS_SCHEMA: Final = "analysis/1"


@dataclass(frozen=True, slots=True)
class AnalysisFault:
    """An analyzer that gave nothing, and why."""

    analyzer: str
    message: str


def analysis_document(
    reader: RunReader, analyses: Sequence[Analysis], faults: Sequence[AnalysisFault] = ()
) -> dict[str, Any]:
    """Give what `analysis.json` holds.

    Args:
        reader: the run that was analyzed.
        analyses: what the analyzers gave, in order.
        faults: the analyzers that gave nothing.
    """
    finished = reader.finished
    return {
        "schema": ANALYSIS_SCHEMA,
        "run_id": reader.run_id,
        "request": part(reader.document, "request").get("name"),
        "outcome": None if finished is None else finished.get("outcome"),
        "is_complete": finished is not None,
        "planned": reader.settled_ledger.planned,
        "analyses": [
            {"id": found.name, "version": found.version, "data": dict(found.data)}
            for found in analyses
        ],
        "faults": [{"id": fault.analyzer, "message": fault.message} for fault in faults],
        "warnings": list(reader.warnings),
    }


def analysis_text(
    document: Mapping[str, Any], analyses: Sequence[Analysis], faults: Sequence[AnalysisFault] = ()
) -> str:
    """Give what `analysis.md` holds."""
    pages = [found.markdown.strip() for found in analyses if found.markdown.strip()]
    if not document["is_complete"]:
        pages.insert(0, "> The run has not ended, or died: this is what it has recorded so far.")
    pages += [f"> The analyzer {one.analyzer} failed: {_line(one.message)}" for one in faults]
    return "\n\n".join(pages) + "\n"


def write_analysis(
    root: Path,
    document: Mapping[str, Any],
    text: str,
    *,
    redact: Callable[[bytes], bytes] | None = None,
    faults: Faults = NO_FAULTS,
) -> None:
    """Put both files in place, each whole.

    Raises:
        StorageFailed: one of the two could not be written.
    """
    files = RunFiles(root)
    option = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS
    replace_atomically(
        files.analysis,
        redacted_json(dict(document), redact, option) + b"\n",
        WritePoint.ANALYSIS_WRITTEN,
        WritePoint.ANALYSIS_RENAMED,
        faults,
    )
    page = text.encode("utf-8", "replace")
    replace_atomically(
        files.analysis_text,
        page if redact is None else redact(page),
        WritePoint.ANALYSIS_TEXT_WRITTEN,
        WritePoint.ANALYSIS_TEXT_RENAMED,
        faults,
    )


def _line(text: str) -> str:
    return " ".join(text.split())
