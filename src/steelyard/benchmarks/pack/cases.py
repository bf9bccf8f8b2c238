"""Read a pack's cases: JSON Lines, CSV, YAML, Parquet, or written out in `pack.yaml`.

A case is a mapping. Every fault of every file is found before any is reported; a hundred
thousand cases are read in one pass over plain dicts.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import orjson

from steelyard.benchmarks.pack.document import Document, shown_path
from steelyard.benchmarks.pack.paths import PathProblem, file_in
from steelyard.benchmarks.pack.schema import PackFile
from steelyard.benchmarks.pack.template import ATTEMPT_VARIABLES
from steelyard.components.benchmark import Task
from steelyard.components.extras import install_command
from steelyard.config.errors import BadInput, Problem, Where
from steelyard.config.source import Malformed, Unreadable, plain, read_file
from steelyard.config.validation import in_order

MAX_PROBLEMS: Final = 100
"""More are counted, not listed."""

MAX_LISTED: Final = 10
"""Cases with one kind of fault; more are counted, not listed."""

Row = tuple[Any, Where]


class Problems:
    """What is wrong, in the order found; the first hundred are kept."""

    def __init__(self) -> None:
        self.listed: list[Problem] = []
        self.count = 0

    def add(self, problem: Problem) -> None:
        """Add a problem; beyond `MAX_PROBLEMS` it is only counted."""
        self.count += 1
        if self.count <= MAX_PROBLEMS:
            self.listed.append(problem)

    def raise_if_any(self) -> None:
        """Raise all of them as one error."""
        self.listed = in_order(self.listed)
        if self.count > MAX_PROBLEMS:
            more = self.count - MAX_PROBLEMS
            self.listed.append(Problem(f"and {more} more problems of the same pack"))
        if self.listed:
            raise BadInput.of(self.listed)


def listed(faults: Mapping[str, Sequence[str]]) -> tuple[list[tuple[str, str]], int]:
    """Say each fault once, of the first cases that have it.

    Args:
        faults: by what is wrong, the ids of the cases.

    Returns:
        The id of the first case with its fault's text, for `MAX_LISTED` faults; and how many cases
        have others.
    """
    texts = []
    for fault, ids in list(faults.items())[:MAX_LISTED]:
        more = f" and {len(ids) - 1} more" if len(ids) > 1 else ""
        texts.append((ids[0], f"case {ids[0]!r}{more}{fault}"))
    return texts, sum(map(len, list(faults.values())[MAX_LISTED:]))


def read_cases(
    root: Path, document: Document, pack: PackFile, problems: Problems
) -> tuple[list[Task], dict[str, Where]]:
    """Read every case, in order, with its place.

    Args:
        root: the pack's folder.
        document: for the places of what `pack.yaml` holds.
        pack: names the files and the fields.
        problems: gets all that is wrong, each with its file and line.
    """
    tasks: list[Task] = []
    places: dict[str, Where] = {}
    numbered = 0
    for row, where in _rows(root, document, pack, problems):
        fault = _row_fault(row)
        if fault is not None:
            problems.add(Problem(fault, where))
            continue
        found = row.get(pack.id or "id")
        if found is None and pack.id is None:
            numbered += 1
            found = len(tasks) + 1
        name = _name(found)
        if name is None:
            problems.add(_bad_id(pack.id or "id", found, where))
        elif name in places:
            problems.add(_duplicate(name, where, places[name]))
        else:
            places[name] = where
            row.setdefault("id", name)
            category, cluster = _group(row, pack.category), _group(row, pack.cluster)
            tasks.append(Task(name, row, category, cluster))
    if numbered and numbered != len(tasks):
        problems.add(
            document.problem(
                f"{numbered} of {len(tasks)} cases have no id",
                "cases",
                remedy="give every case an id, or none (they are then numbered)",
            )
        )
    if not tasks and not problems.count:
        problems.add(
            document.problem("the pack has no cases", "cases", remedy="add at least one case")
        )
    return tasks, places


def _rows(root: Path, document: Document, pack: PackFile, problems: Problems) -> Iterator[Row]:
    named: Sequence[Any] = [pack.cases] if isinstance(pack.cases, str) else pack.cases
    for number, item in enumerate(named):
        path = ("cases",) if isinstance(pack.cases, str) else ("cases", number)
        if not isinstance(item, str):
            yield dict(item), document.where(*path)
            continue
        try:
            file = file_in(root, item)
        except PathProblem as error:
            problems.add(document.problem(str(error), *path, remedy=_near_files(root)))
            continue
        reader = READERS.get(file.suffix.lower())
        if reader is None:
            known = ", ".join(READERS)
            problems.add(
                document.problem(
                    f"{item!r} is of no known format", *path, remedy=f"name it {known}"
                )
            )
            continue
        try:
            yield from reader(file, problems)
        except BadInput as error:
            for problem in error.problems:
                problems.add(problem)
        except OSError as error:
            problems.add(document.problem(f"{item!r} cannot be read: {error.strerror}", *path))


def _near_files(root: Path) -> str | None:
    names = sorted(p.name for p in root.iterdir() if p.suffix.lower() in READERS)
    names = [name for name in names if name != "pack.yaml"]
    return f"there are: {', '.join(names[:5])}" if names else None


def _json_lines(file: Path, problems: Problems) -> Iterator[Row]:
    shown = shown_path(file)
    with file.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if line.isspace():
                continue
            try:
                yield orjson.loads(line), Where(shown, number)
            except orjson.JSONDecodeError as error:
                where = Where(shown, number, error.colno)
                problems.add(Problem(f"not well-formed JSON: {error.msg}", where))


def _csv(file: Path, problems: Problems) -> Iterator[Row]:
    shown = shown_path(file)
    try:
        text = file.read_text("utf-8-sig")
    except UnicodeDecodeError:
        problems.add(Problem("not UTF-8 text", Where(shown), remedy="save it as UTF-8"))
        return
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    header: list[str] | None = None
    try:
        for row in reader:
            where = Where(shown, reader.line_num)
            if not row:
                continue
            if header is None:
                header = row
                if len(set(header)) != len(header) or "" in header:
                    problems.add(Problem("the columns need different names", where))
                    return
            elif len(row) != len(header):
                problems.add(Problem(f"{len(row)} values under {len(header)} columns", where))
            else:
                yield dict(zip(header, row, strict=True)), where
    except csv.Error as error:
        problems.add(Problem(f"not well-formed CSV: {error}", Where(shown, reader.line_num)))


def _yaml(file: Path, problems: Problems) -> Iterator[Row]:
    try:
        node = read_file(file, shown=shown_path(file))
    except (Malformed, Unreadable) as error:
        for problem in error.problems:
            problems.add(problem)
        return
    if not isinstance(node.value, list):
        problems.add(Problem("cases in YAML or JSON are a list", node.origin.where))
        return
    for item in node.value:
        yield plain(item), item.origin.where


def _parquet(file: Path, problems: Problems) -> Iterator[Row]:
    shown = shown_path(file)
    try:
        # Imported here: an optional dependency, and a slow one.
        from pyarrow import (  # type: ignore[import-untyped]  # it has no stubs
            ArrowException,
            parquet,
        )
    except ImportError:
        problems.add(
            Problem(
                "reading Parquet needs pyarrow",
                Where(shown),
                remedy=install_command("parquet"),
                extra="parquet",
            )
        )
        return
    try:
        with parquet.ParquetFile(file) as table:
            number = 0
            for batch in table.iter_batches(batch_size=4096):
                for row in batch.to_pylist():
                    number += 1
                    where = Where(shown, field=f"row {number}")
                    try:
                        # Dates and the like become what JSON makes of them: tasks travel as JSON.
                        yield orjson.loads(orjson.dumps(row)), where
                    except TypeError as error:
                        problems.add(Problem(f"a value that JSON cannot hold: {error}", where))
    except (ArrowException, OSError) as error:
        problems.add(Problem(f"not well-formed Parquet: {error}", Where(shown)))


READERS: Final[Mapping[str, Callable[[Path, Problems], Iterator[Row]]]] = MappingProxyType(
    {
        ".jsonl": _json_lines,
        ".csv": _csv,
        ".yaml": _yaml,
        ".yml": _yaml,
        ".json": _yaml,
        ".parquet": _parquet,
    }
)


def _row_fault(row: Any) -> str | None:
    if not isinstance(row, dict):
        return "a case is a mapping of fields"
    for name in row:
        if not isinstance(name, str):
            return f"a field's name is text, found {name!r}"
        if name in ATTEMPT_VARIABLES:
            return f"the field {name!r} has the name of something that templates see already"
    return None


def _name(found: Any) -> str | None:
    if isinstance(found, bool) or not isinstance(found, str | int):
        return None
    return str(found) or None


def _bad_id(field: str, found: Any, where: Where) -> Problem:
    if found is None:
        return Problem(f"the case has no {field!r}, which names it", where, f"add {field}")
    return Problem(
        f"{field} is {found!r}; an id is text that is not empty, or a whole number", where
    )


def _duplicate(name: str, where: Where, first: Where) -> Problem:
    return Problem(
        f"the id {name!r} is taken by an earlier case ({first})", where, "ids are unique"
    )


def _group(row: Mapping[str, Any], field: str | None) -> str | None:
    if field is None:
        return None
    value = row.get(field)
    return None if value is None else str(value)
