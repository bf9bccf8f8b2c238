"""SQL over the rows of a set, by DuckDB in memory: it reaches no file and no network.

A query is the user's, and yet case ids and a pasted query are others' texts: files, extensions,
attached databases and Python's own variables are shut off before it runs, and settings are locked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from steelyard.config.errors import BadInput, Problem
from steelyard.evalset.exporting import Export, arrow_batches, arrow_schema
from steelyard.evalset.rows import metric_names

_SHUT: Final = (
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET allow_community_extensions = false",
    "SET python_enable_replacements = false",
    "SET temp_directory = ''",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)


class WarehouseMissing(BadInput):
    """SQL was asked for, and DuckDB is not installed."""

    def __init__(self) -> None:
        from steelyard.components.extras import install_command

        super().__init__("asking rows in SQL needs duckdb")
        self.problems = (
            Problem(
                "asking rows in SQL needs duckdb",
                remedy=f"install it: {install_command('warehouse')}; without it, "
                "`steelyard evalset export` writes what any database reads",
                extra="warehouse",
            ),
        )


class QueryRefused(BadInput):
    """DuckDB did not take a query, or it asked for what is shut off."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a query gave."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]


def ask(export: Export, query: str) -> Answer:
    """Ask the rows of a set. Blocking.

    Args:
        export: the rows; they are all held in memory, some 300 bytes each.
        query: SQL; the view is `rows`.

    Raises:
        WarehouseMissing: DuckDB or pyarrow is not installed.
        QueryRefused: the query is wrong, or asks for files, a network or settings.
    """
    try:
        import duckdb
        import pyarrow as pa  # type: ignore[import-untyped]  # it has no stubs
    except ImportError as error:
        raise WarehouseMissing from error
    metrics = metric_names(export.opened)
    table = pa.Table.from_batches(arrow_batches(export, metrics), schema=arrow_schema(metrics))
    with duckdb.connect(":memory:") as connection:
        connection.register("given", table)
        connection.execute("CREATE TABLE rows AS SELECT * FROM given")
        connection.unregister("given")
        for setting in _SHUT:
            connection.execute(setting)
        try:
            if not connection.extract_statements(query):
                raise QueryRefused("there is no query", remedy="`SELECT * FROM rows`, for one")
            found = connection.execute(query)
            columns = _told_apart([column[0] for column in found.description or ()])
            return Answer(columns, found.fetchall() if columns else [])
        except duckdb.Error as error:
            raise QueryRefused(
                str(error).strip(), remedy="the view is `rows`; `DESCRIBE rows` lists its columns"
            ) from error


def _told_apart(names: Sequence[str]) -> tuple[str, ...]:
    """Number columns of one name: as JSON, the last would hide the others."""
    found: list[str] = []
    for name in names:
        chosen, number = name, 1
        while chosen in found:
            number += 1
            chosen = f"{name}_{number}"
        found.append(chosen)
    return tuple(found)
