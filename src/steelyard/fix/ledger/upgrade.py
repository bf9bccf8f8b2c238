"""Bring an older ledger.db forward, after a backup; refuse a newer or a strange one."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from steelyard.fix.ledger.errors import LedgerDamaged, LedgerNewer
from steelyard.fix.ledger.faults import LedgerFaults, LedgerPoint
from steelyard.fix.ledger.steps import Step

APPLICATION_ID: Final = 0x53544C59
"""Written into the file: `STLY`."""


def application_id(connection: sqlite3.Connection) -> int:
    """Give whose file it is: ours, or 0 where it is empty.

    Raises:
        LedgerDamaged: another program's.
    """
    found = int(connection.execute("PRAGMA application_id").fetchone()[0])
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if found == APPLICATION_ID or (found == 0 and tables == 0):
        return found
    raise LedgerDamaged(
        "ledger.db is another program's database",
        remedy="move it away; `steelyard init` makes a new one",
    )


def bring_up_to_date(
    connection: sqlite3.Connection, path: Path, steps: Sequence[Step], faults: LedgerFaults
) -> None:
    """Take the steps that the file lacks, all in one transaction.

    Raises:
        LedgerNewer: it has taken more steps than we know.
    """
    version = _version(connection)
    if version > len(steps):
        raise LedgerNewer(
            f"ledger.db is of version {version}, this Steelyard knows {len(steps)}",
            remedy="use the newer Steelyard that wrote it, or put back the backup it made before",
        )
    if version == len(steps):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        if 0 < _version(connection) < len(steps):
            _backup(path, version, faults)
        # Another process may have taken them while we waited.
        for step in steps[_version(connection) :]:
            for statement in step.statements:
                connection.execute(statement)
                faults.reached(LedgerPoint.STATEMENT_DONE)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(steps)}")
        faults.reached(LedgerPoint.BEFORE_COMMIT)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    faults.reached(LedgerPoint.COMMITTED)


def require_schema(connection: sqlite3.Connection, steps: Sequence[Step]) -> None:
    """Compare tables, indexes and triggers with those that the steps make.

    Raises:
        LedgerDamaged: one is missing, added or changed.
    """
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as model:
        for step in steps:
            for statement in step.statements:
                model.execute(statement)
        wanted = _schema(model)
    found = _schema(connection)
    if found != wanted:
        names = sorted(name for name, _ in set(found.items()) ^ set(wanted.items()))
        raise LedgerDamaged(
            f"ledger.db has tables of another kind: {', '.join(dict.fromkeys(names))}",
            remedy="put a backup in its place, or move it away and start anew",
        )


def backup_path(path: Path, version: int) -> Path:
    """Say where the file is kept as it was before it was brought forward."""
    return path.with_name(f"{path.name}.v{version}.backup")


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _schema(connection: sqlite3.Connection) -> dict[str, str | None]:
    rows = connection.execute("SELECT type || ' ' || name, sql FROM sqlite_master")
    return dict(tuple(row) for row in rows)


def _backup(path: Path, version: int, faults: LedgerFaults) -> None:
    """Copy the file while nobody else may write to it; an older copy is replaced."""
    kept = backup_path(path, version)
    temporary = kept.with_name(f"{kept.name}.new")
    temporary.unlink(missing_ok=True)
    os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    # A connection of its own: one that holds the lock for writing cannot be the source.
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(temporary)) as target:
        source.backup(target)
    _sync(temporary)
    faults.reached(LedgerPoint.BACKUP_WRITTEN)
    temporary.replace(kept)
    _sync(path.parent)
    faults.reached(LedgerPoint.BACKUP_RENAMED)


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
