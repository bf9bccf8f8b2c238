"""Read `run.json`: what a run is, checked as far as others depend on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import orjson

from steelyard.config.errors import BadInput, Where
from steelyard.results.json_values import version_number
from steelyard.results.layout import RunFiles
from steelyard.results.plain_files import MAX_DOCUMENT_BYTES, read_plain
from steelyard.results.run_folder import RUN_SCHEMA

_NEWEST: Final = int(RUN_SCHEMA.partition("/")[2])


class RunUnreadable(BadInput):
    """A folder that is no run, or whose files cannot be used."""

    def __init__(self, path: Path, reason: str, remedy: str | None = None) -> None:
        self.reason = reason
        super().__init__(
            reason,
            where=Where(file=str(path)),
            remedy=remedy or "name a run directory: the folder that holds `run.json`",
        )


class FutureSchema(RunUnreadable):
    """A file was written by a newer version of the product."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(path, reason, remedy="read it with the version that wrote it, or a newer")


def read_run_document(root: Path) -> dict[str, Any]:
    """Read a run's `run.json`.

    Raises:
        RunUnreadable: there is none, or it is not one.
        FutureSchema: a newer version wrote it.
    """
    path = RunFiles(root).document
    try:
        document = orjson.loads(read_plain(path, MAX_DOCUMENT_BYTES))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise RunUnreadable(root, "there is no run here: no `run.json`") from error
    except OSError as error:
        raise RunUnreadable(path, f"cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise RunUnreadable(path, f"is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise RunUnreadable(path, "is not a JSON object")
    name, _, version = str(document.get("schema")).partition("/")
    number = version_number(version)
    if name != "run" or number is None:
        said = repr(document.get("schema"))[:80]
        raise RunUnreadable(path, f"says schema {said}, not {RUN_SCHEMA!r}")
    if number > _NEWEST:
        raise FutureSchema(
            path, f"the schema run/{version} is newer than {RUN_SCHEMA}, the newest known"
        )
    return document


def began_order(document: dict[str, Any], name: str) -> tuple[str, int, str]:
    """Give what runs of one folder are ordered by: when they began, then the number of their ids.

    A clock may have been set back between two runs: the later one then says in `ordered_at` where
    it belongs.
    """
    base, _, number = name.partition("-")
    moment = str(document.get("ordered_at") or document.get("created_at", ""))
    return moment, int(number) if number.isdecimal() and len(number) < 10 else 1, base


def holds_run(folder: Path) -> bool:
    """True where a folder holds a `run.json`; False where it cannot be looked into."""
    try:
        return RunFiles(folder).document.exists()
    except OSError:
        return False


def part(document: dict[str, Any], name: str) -> dict[str, Any]:
    """Give an object inside a document; an empty one where it is not there or no object."""
    value = document.get(name)
    return value if isinstance(value, dict) else {}
