"""The file ledger.db: opened after it is checked, written in short transactions of one writer.

Not here: what the rows mean. Every statement of the ledger goes through a `Writer` or a reading,
and every fault of SQLite leaves as one of ours.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import Final

from steelyard.fix.evidence import Evidence
from steelyard.fix.ledger.errors import (
    LedgerBusy,
    LedgerDamaged,
    LedgerFault,
    LedgerFull,
    LedgerMisplaced,
)
from steelyard.fix.ledger.faults import NO_FAULTS, LedgerFaults, LedgerPoint
from steelyard.fix.ledger.steps import STEPS, Step
from steelyard.fix.ledger.upgrade import application_id, bring_up_to_date, require_schema
from steelyard.results.lock import network_file_system

NAME: Final = "ledger.db"
BUSY_MS: Final = 10_000
"""How long we wait for another process's transaction."""
_WAL_IS_SOUND_FROM: Final = (3, 51, 3)

Value = str | int | float | None
Row = sqlite3.Row


def journal_mode(version: tuple[int, ...]) -> str:
    """Give the journal mode for a version of SQLite.

    Before 3.51.3 a WAL file can be reset wrongly where several connections write.
    """
    return "WAL" if version >= _WAL_IS_SOUND_FROM else "DELETE"


class Database:
    """An open ledger; its calls block for a few milliseconds, and may come from any thread."""

    def __init__(self, connection: sqlite3.Connection, folder: Path, faults: LedgerFaults) -> None:
        """Use `Database.open`."""
        self.evidence = Evidence(folder / "evidence", faults=faults)
        self._connection = connection
        self._faults = faults
        self._lock = RLock()

    @classmethod
    def open(
        cls,
        folder: Path,
        *,
        faults: LedgerFaults = NO_FAULTS,
        steps: Sequence[Step] = STEPS,
        is_on_network: Callable[[Path], str | None] = network_file_system,
    ) -> Database:
        """Open the ledger of a state folder; made where there is none.

        Args:
            folder: `.steelyard` of a checkout; it is there.
            faults: what a test does.
            steps: of the tables.
            is_on_network: names the network file system a folder lies on, or says None.

        Raises:
            LedgerMisplaced: it lies on a network, or is no plain file of this user.
            LedgerNewer: a newer version wrote it.
            LedgerDamaged: it is not what was written.
            LedgerFault: it cannot be opened.
        """
        if network := is_on_network(folder):
            raise LedgerMisplaced(
                f"{NAME} lies on {network}, where locks and syncs may not hold",
                remedy="move the checkout to a disk of this machine",
            )
        path = folder / NAME
        with faults_of_sqlite():
            _require_own_file(path)
            faults.reached(LedgerPoint.DATABASE_CREATED)
            connection = _connect(path)
            try:
                bring_up_to_date(connection, path, steps, faults)
                _require_whole(connection)
                require_schema(connection, steps)
            except BaseException:
                connection.close()
                raise
        return cls(connection, folder, faults)

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._connection.close()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    @contextmanager
    def writing(self) -> Iterator[Writer]:
        """Write in one transaction: all of it is on the disk afterwards, or nothing is.

        Raises:
            LedgerBusy: another process writes for too long.
            LedgerFull: the disk took no more.
            LedgerFault: something else failed.
        """
        with self._lock, faults_of_sqlite():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                self._faults.reached(LedgerPoint.BEGUN)
                yield Writer(self._connection, self._faults, self.evidence)
                self._faults.reached(LedgerPoint.BEFORE_COMMIT)
                self._connection.execute("COMMIT")
            except BaseException:
                # A full disk may have rolled it back already.
                with suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
                raise
            self._faults.reached(LedgerPoint.COMMITTED)

    @contextmanager
    def reading(self) -> Iterator[Reader]:
        """Read what was true at one moment.

        Raises:
            LedgerBusy: another process writes for too long.
            LedgerFault: something else failed.
        """
        with self._lock, faults_of_sqlite():
            self._connection.execute("BEGIN")
            try:
                yield Reader(self._connection, self.evidence)
            finally:
                with suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")


class Reader:
    """Reads rows within a transaction."""

    def __init__(self, connection: sqlite3.Connection, evidence: Evidence) -> None:
        """Use `Database.reading`."""
        self.evidence = evidence
        self._connection = connection

    def rows(self, sql: str, *values: Value) -> list[Row]:
        """Give every row."""
        return self._connection.execute(sql, values).fetchall()

    def row(self, sql: str, *values: Value) -> Row | None:
        """Give the first row, None where there is none."""
        found: Row | None = self._connection.execute(sql, values).fetchone()
        return found

    def number(self, sql: str, *values: Value) -> int:
        """Give the only number of the only row."""
        return int(self._connection.execute(sql, values).fetchone()[0])


class Writer(Reader):
    """Reads and writes rows within a transaction."""

    def __init__(
        self, connection: sqlite3.Connection, faults: LedgerFaults, evidence: Evidence
    ) -> None:
        """Use `Database.writing`."""
        super().__init__(connection, evidence)
        self._faults = faults

    def execute(self, sql: str, *values: Value) -> int:
        """Execute a statement; give how many rows it changed."""
        changed = self._connection.execute(sql, values).rowcount
        self._faults.reached(LedgerPoint.STATEMENT_DONE)
        return changed

    def insert(self, table: str, **columns: Value) -> None:
        """Add a row; names are ours, never anybody's input."""
        names = ", ".join(columns)
        marks = ", ".join("?" * len(columns))
        sql = f"INSERT INTO {table} ({names}) VALUES ({marks})"  # noqa: S608 - our own names
        self.execute(sql, *columns.values())


@contextmanager
def faults_of_sqlite() -> Iterator[None]:
    """Say what SQLite means in a class of ours, with a remedy."""
    try:
        yield
    except sqlite3.Error as error:
        raise _translated(error) from error


def _translated(error: sqlite3.Error) -> LedgerFault:
    code = getattr(error, "sqlite_errorcode", None)
    primary = None if code is None else code & 0xFF
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return LedgerBusy(
            f"{NAME} is locked by another process",
            remedy="wait until its command has ended, then run yours again",
        )
    if primary == sqlite3.SQLITE_FULL:
        return LedgerFull(
            f"{NAME}: the disk is full",
            remedy="free space, then run the same command again: what is recorded is kept",
        )
    if primary in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return damaged(str(error))
    return LedgerFault(f"{NAME}: {error}", remedy="see that the disk is sound, then try again")


def damaged(why: str) -> LedgerDamaged:
    """Say that the file is not what was written, and what can be done."""
    return LedgerDamaged(
        f"{NAME} is damaged: {why}",
        remedy=f"put a backup in its place ({NAME}.v*.backup, or your own), or move it away: "
        "evidence and store.git are kept, the history of its runs is lost",
    )


def _require_own_file(path: Path) -> None:
    """Make the file where there is none; look at one that is there without opening it.

    Closing a descriptor drops every lock that the process has on the file: those of another
    connection, too, in the middle of its transaction.
    """
    try:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with suppress(FileExistsError):
            os.close(os.open(path, flags, 0o600))
        found = path.lstat()
        is_ours = (
            stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and found.st_nlink == 1
        )
        if is_ours and stat.S_IMODE(found.st_mode) != 0o600:
            path.chmod(0o600)
    except OSError as error:
        raise LedgerMisplaced(
            f"{NAME} cannot be opened: {error.strerror or error}",
            remedy="it must be a plain file in .steelyard/ that you may write to",
        ) from error
    if not is_ours:
        raise LedgerMisplaced(
            f"{NAME} is no plain file of yours with one name",
            remedy="move it away; a ledger is never taken over from somebody else",
        )


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, timeout=BUSY_MS / 1000, isolation_level=None, check_same_thread=False
    )
    try:
        connection.row_factory = sqlite3.Row
        # A file that came with a repository must not run anything by its views and triggers.
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA cell_size_check = ON")
        connection.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
        connection.execute("PRAGMA foreign_keys = ON")
        application_id(connection)
        connection.execute(f"PRAGMA journal_mode = {journal_mode(sqlite3.sqlite_version_info)}")
        connection.execute("PRAGMA synchronous = FULL")
    except BaseException:
        connection.close()
        raise
    return connection


def _require_whole(connection: sqlite3.Connection) -> None:
    found = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
    if found != "ok":
        raise damaged(found)
    if connection.execute("PRAGMA foreign_key_check").fetchone() is not None:
        raise damaged("a row names one that is not there")
