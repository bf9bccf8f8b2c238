"""The rows of a set as CSV, JSON Lines or Parquet, streaming: memory does not grow with the set.

Rows of attempts with a kept file that holds a secret are left out unless asked for: their
trajectory is what an export leads to. How many were left out is said.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final

import orjson

from steelyard.config.errors import BadInput, Problem
from steelyard.evalset.row_columns import cells_of, column_types, row_json
from steelyard.evalset.rows import Row, cell_rows, metric_names
from steelyard.evalset.safe_csv import safe_cell
from steelyard.evalset.set_reader import OpenedSet
from steelyard.results.documents import RunUnreadable

BATCH_ROWS: Final = 5_000


@dataclass(slots=True)
class Export:
    """Rows on their way out, and what was left out of them."""

    opened: OpenedSet
    with_flagged: bool = False
    """Whether rows of attempts whose files hold a secret are written, too."""
    rows: int = 0
    flagged: int = 0
    """Left out, for a secret stands in one of their kept files."""
    unreadable: list[str] = field(default_factory=list)

    def __iter__(self) -> Iterator[Row]:
        for cell in self.opened.cells:
            try:
                for row in cell_rows(self.opened, cell):
                    if row.is_flagged and not self.with_flagged:
                        self.flagged += 1
                        continue
                    self.rows += 1
                    yield row
            except RunUnreadable as error:
                self.unreadable.append(f"{cell.matrix_key}: {error.reason}")

    def warnings(self) -> list[str]:
        """Say what was left out; complete when all rows have been taken."""
        found = [f"left out, cannot be read: {each}" for each in self.unreadable]
        if self.flagged:
            found.append(
                f"{self.flagged} rows left out: a secret stands in a kept file of each; "
                "--with-flagged writes them, too"
            )
        return found


class ParquetMissing(BadInput):
    """Parquet was asked for, and what writes it is not installed."""

    def __init__(self) -> None:
        from steelyard.components.extras import install_command

        super().__init__("writing Parquet needs pyarrow")
        self.problems = (
            Problem(
                "writing Parquet needs pyarrow",
                remedy=f"install it: {install_command('parquet')}",
                extra="parquet",
            ),
        )


def csv_parts(export: Export) -> Iterator[bytes]:
    """Give CSV (RFC 4180, UTF-8, `\\n`), texts made safe for spreadsheets."""
    metrics = metric_names(export.opened)
    cells = cells_of(metrics)
    yield csv_text([list(column_types(metrics))]).encode("utf-8", "replace")
    rows = iter(export)
    while batch := [cells(row) for row in islice(rows, BATCH_ROWS)]:
        yield csv_text(batch).encode("utf-8", "replace")


def csv_text(rows: Sequence[Sequence[Any]]) -> str:
    """Write rows as CSV, texts made safe for spreadsheets."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerows([safe_cell(cell) for cell in row] for row in rows)
    return buffer.getvalue()


def jsonl_parts(export: Export) -> Iterator[bytes]:
    """Give JSON Lines: an object a row, texts as they are."""
    rows = iter(export)
    while batch := list(islice(rows, BATCH_ROWS)):
        yield b"".join(orjson.dumps(row_json(row)) + b"\n" for row in batch)


def write_parquet(export: Export, file: Path) -> None:
    """Write a Parquet file, zstd, a row group for each `BATCH_ROWS` rows.

    Raises:
        ParquetMissing: pyarrow is not installed.
        OSError: the file cannot be written.
    """
    try:
        import pyarrow.parquet as pq  # type: ignore[import-untyped]  # it has no stubs
    except ImportError as error:
        raise ParquetMissing from error
    metrics = metric_names(export.opened)
    batches = arrow_batches(export, metrics)
    with pq.ParquetWriter(file, arrow_schema(metrics), compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(batch)


def arrow_schema(metrics: Sequence[str]) -> Any:
    """Give the columns as an Arrow schema; pyarrow must be there."""
    import pyarrow as pa

    types = {"text": pa.string(), "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_()}
    return pa.schema([(name, types[kind]) for name, kind in column_types(metrics).items()])


def arrow_batches(export: Export, metrics: Sequence[str]) -> Iterator[Any]:
    """Give the rows as Arrow record batches; pyarrow must be there."""
    import pyarrow as pa

    schema, cells = arrow_schema(metrics), cells_of(metrics)
    rows = iter(export)
    while batch := [cells(row) for row in islice(rows, BATCH_ROWS)]:
        columns = zip(*batch, strict=True)
        arrays = [
            pa.array(map(_whole_text, column) if kind == "text" else column, type=schema.types[n])
            for n, (column, kind) in enumerate(
                zip(columns, column_types(metrics).values(), strict=True)
            )
        ]
        yield pa.record_batch(arrays, schema=schema)


def _whole_text(value: str | None) -> str | None:
    """Replace lone surrogates, which UTF-8 cannot hold."""
    return None if value is None else value.encode("utf-8", "replace").decode()
