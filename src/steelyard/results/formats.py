"""The versions of the files of a run, and the steps from each to the next.

Every format is in its first version so far: there is no step yet, and nothing to write anew.
`steelyard upgrade` says so of each file, and names what a newer version wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import orjson

from steelyard.results.json_values import version_number
from steelyard.results.layout import RunFiles
from steelyard.results.lines import MAX_LINE_BYTES
from steelyard.results.plain_files import MAX_DOCUMENT_BYTES, open_plain, read_plain

Step = Callable[[dict[str, Any]], dict[str, Any]]
"""From a document of version N to one of N+1; pure."""

NEWEST: Final[Mapping[str, int]] = MappingProxyType(
    {
        "run": 1,
        "attempt": 1,
        "event": 1,
        "lock": 1,
        "progress": 1,
        "metrics": 1,
        "analysis": 1,
        "calibration": 1,
    }
)
STEPS: Final[Mapping[tuple[str, int], Step]] = MappingProxyType({})


class Standing(StrEnum):
    """How a file's version stands to ours."""

    CURRENT = "current"
    OLD = "old"
    """Readable, and can be written anew."""
    NEWER = "newer"
    UNKNOWN = "unknown"
    """No version of ours, or damaged."""


@dataclass(frozen=True, slots=True)
class FileFormat:
    """One file of a run with its format."""

    path: Path
    schema: str | None
    standing: Standing


def standing_of(
    schema: str | None,
    newest: Mapping[str, int] = NEWEST,
    steps: Mapping[tuple[str, int], Step] = STEPS,
) -> Standing:
    """Say how a schema, as `run/1`, stands to ours."""
    name, _, text = (schema or "").partition("/")
    version = version_number(text)
    if name not in newest or version is None:
        return Standing.UNKNOWN
    if version > newest[name]:
        return Standing.NEWER
    if version == newest[name]:
        return Standing.CURRENT
    known = all((name, number) in steps for number in range(version, newest[name]))
    return Standing.OLD if known else Standing.UNKNOWN


def formats_of(root: Path) -> list[FileFormat]:
    """List the files of a run that carry a version, those that are there. Blocking."""
    files = RunFiles(root)
    found = []
    derived = (files.progress, files.metrics, files.analysis, files.calibration)
    for path in (files.document, files.attempts, files.events, *derived):
        if path.is_file():
            schema = _schema(path)
            # A journal without a line has nothing that could be old.
            is_empty = path.suffix == ".jsonl" and path.stat().st_size == 0
            standing = Standing.CURRENT if is_empty else standing_of(schema)
            found.append(FileFormat(path, schema, standing))
    return found


def _schema(path: Path) -> str | None:
    try:
        if path.suffix == ".jsonl":
            with open_plain(path) as file:
                data = file.readline(MAX_LINE_BYTES).partition(b"\t")[0]
        else:
            data = read_plain(path, MAX_DOCUMENT_BYTES)
        document = orjson.loads(data)
    except (OSError, ValueError):
        return None
    schema = document.get("schema") if isinstance(document, dict) else None
    return schema if isinstance(schema, str) else None


def upgraded(
    document: dict[str, Any],
    newest: Mapping[str, int] = NEWEST,
    steps: Mapping[tuple[str, int], Step] = STEPS,
) -> dict[str, Any]:
    """Bring a document to the newest version, step by step. Pure.

    Raises:
        KeyError: there is no step from its version.
    """
    name, _, text = str(document["schema"]).partition("/")
    for version in range(int(text), newest[name]):
        document = {**steps[name, version](document), "schema": f"{name}/{version + 1}"}
    return document
