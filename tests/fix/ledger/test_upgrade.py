"""Opening ledger.db: made whole, brought forward after a backup, refused where it is not ours."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from steelyard.fix.ledger import readings, trials
from steelyard.fix.ledger.database import NAME, Database, journal_mode
from steelyard.fix.ledger.errors import (
    LedgerBusy,
    LedgerDamaged,
    LedgerFault,
    LedgerFull,
    LedgerMisplaced,
    LedgerNewer,
)
from steelyard.fix.ledger.faults import LedgerPoint
from steelyard.fix.ledger.steps import STEPS, Step
from steelyard.fix.ledger.upgrade import backup_path
from steelyard.fix.ledger.values import Lease, Slot
from tests.fix.ledger.story import BASELINE, RUN, completed, measured, started

NEXT = Step(
    "a made-up second version",
    (
        "ALTER TABLE runs ADD COLUMN colour TEXT NOT NULL DEFAULT 'grey'",
        "CREATE INDEX runs_by_colour ON runs (colour)",
        "UPDATE runs SET colour = 'red' WHERE goal = 'faster'",
    ),
)
LATER = (*STEPS, NEXT)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A state folder with a run of one trial."""
    with Database.open(tmp_path) as database:
        lease = started(database)
        measured(database, lease, Slot(BASELINE, 0, 11), 3.0, completed())
    return tmp_path


class FailAt:
    """Fails the disk at the n-th time of a point."""

    def __init__(self, point: LedgerPoint, nth: int = 1) -> None:
        self.point, self.left = point, nth

    def reached(self, point: LedgerPoint) -> None:
        if point is self.point:
            self.left -= 1
            if self.left == 0:
                raise OSError(5, "the disk failed")


def colours(database: Database) -> list[str]:
    with database.reading() as reader:
        return [row["colour"] for row in reader.rows("SELECT colour FROM runs")]


def test_an_older_file_is_brought_forward_after_a_backup(folder: Path) -> None:
    before = (folder / NAME).read_bytes()
    with Database.open(folder, steps=LATER) as database:
        assert colours(database) == ["red"]
    kept = backup_path(folder / NAME, 1)
    assert kept.stat().st_mode & 0o777 == 0o600
    (folder / NAME).write_bytes(kept.read_bytes())
    with Database.open(folder) as database:
        assert len(readings.snapshot(database, RUN, 9.0).trials) == 1
    assert len(before) == kept.stat().st_size


def test_a_new_file_and_one_brought_forward_are_the_same(folder: Path, tmp_path: Path) -> None:
    with Database.open(folder, steps=LATER):
        pass
    with Database.open(folder, steps=LATER):  # compares what it finds with what a new one has
        pass


@pytest.mark.parametrize(
    ("point", "nth"),
    [
        (LedgerPoint.BACKUP_WRITTEN, 1),
        (LedgerPoint.BACKUP_RENAMED, 1),
        (LedgerPoint.STATEMENT_DONE, 1),
        (LedgerPoint.STATEMENT_DONE, 3),
        (LedgerPoint.BEFORE_COMMIT, 1),
    ],
    ids=str,
)
def test_a_migration_that_is_cut_off_leaves_the_old_file(
    point: LedgerPoint, nth: int, folder: Path
) -> None:
    with pytest.raises(OSError, match="the disk failed"):
        Database.open(folder, steps=LATER, faults=FailAt(point, nth))
    with Database.open(folder) as database:
        assert [row.run for row in readings.runs(database)] == [RUN]
    with Database.open(folder, steps=LATER) as database:
        assert colours(database) == ["red"]


def test_a_newer_file_is_refused_with_a_remedy(folder: Path) -> None:
    with Database.open(folder, steps=LATER):
        pass
    with pytest.raises(LedgerNewer, match="version 2, this Steelyard knows 1") as caught:
        Database.open(folder)
    assert "newer Steelyard" in str(caught.value)


def test_a_file_of_another_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / NAME)) as other:
        other.execute("CREATE TABLE theirs (a)")
    before = (tmp_path / NAME).read_bytes()
    with pytest.raises(LedgerDamaged, match="another program"):
        Database.open(tmp_path)
    assert (tmp_path / NAME).read_bytes() == before


@pytest.mark.parametrize("kept_bytes", [17, 4096, 9000])
def test_a_file_that_was_cut_off_is_refused_with_a_remedy(kept_bytes: int, folder: Path) -> None:
    os.truncate(folder / NAME, kept_bytes)
    with pytest.raises(LedgerDamaged) as caught:
        Database.open(folder)
    assert "backup" in str(caught.value)


def test_no_damaged_page_is_read_as_if_it_were_whole(folder: Path) -> None:
    whole = (folder / NAME).read_bytes()
    for page in range(len(whole) // 4096):
        harmed = bytearray(whole)
        harmed[page * 4096 : page * 4096 + 512] = b"\xa5" * 512
        (folder / NAME).write_bytes(harmed)
        with pytest.raises(LedgerFault):
            Database.open(folder)


@pytest.mark.parametrize(
    "harm",
    [
        "CREATE TRIGGER sly AFTER INSERT ON trials BEGIN DELETE FROM events; END",
        "DROP TRIGGER spent_stays",
        "DROP INDEX one_completion",
        "CREATE VIEW more AS SELECT 1",
    ],
)
def test_a_file_whose_tables_were_tampered_with_is_refused(harm: str, folder: Path) -> None:
    with closing(sqlite3.connect(folder / NAME)) as other:
        other.execute(harm)
    with pytest.raises(LedgerDamaged, match="tables of another kind"):
        Database.open(folder)


def test_a_row_that_names_one_that_is_not_there_is_refused(folder: Path) -> None:
    with closing(sqlite3.connect(folder / NAME)) as other:
        other.execute("UPDATE trials SET candidate = 'nobody'")
        other.commit()
    with pytest.raises(LedgerDamaged, match="not there"):
        Database.open(folder)


def test_a_link_a_second_name_and_a_pipe_are_refused(folder: Path, tmp_path: Path) -> None:
    elsewhere = folder / "moved"
    (folder / NAME).rename(elsewhere)
    (folder / NAME).symlink_to(elsewhere)
    with pytest.raises(LedgerMisplaced):
        Database.open(folder)
    (folder / NAME).unlink()
    (folder / NAME).hardlink_to(elsewhere)
    with pytest.raises(LedgerMisplaced, match="one name"):
        Database.open(folder)
    (folder / NAME).unlink()
    os.mkfifo(folder / NAME)
    with pytest.raises(LedgerMisplaced):
        Database.open(folder)


def test_a_network_file_system_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LedgerMisplaced, match="NFS"):
        Database.open(tmp_path, is_on_network=lambda folder: "NFS")
    assert not (tmp_path / NAME).exists()


def test_only_its_owner_may_read_the_file(folder: Path) -> None:
    assert (folder / NAME).stat().st_mode & 0o777 == 0o600


def test_the_file_names_no_place_of_this_machine(folder: Path) -> None:
    content = (folder / NAME).read_bytes()
    assert str(folder).encode() not in content
    assert str(Path.home()).encode() + b"/" not in content
    assert b"/tmp" not in content


def test_a_wal_is_used_only_where_it_is_sound() -> None:
    assert journal_mode((3, 51, 2)) == "DELETE"
    assert journal_mode((3, 51, 3)) == "WAL"
    assert journal_mode((3, 40, 1)) == "DELETE"


def test_every_commit_waits_for_the_disk(folder: Path) -> None:
    with Database.open(folder) as database, database.reading() as reader:
        assert reader.number("PRAGMA synchronous") == 2
        assert reader.number("PRAGMA foreign_keys") == 1


def fill(database: Database, lease: Lease) -> None:
    for repetition in range(1, 15):
        measured(database, lease, Slot(BASELINE, repetition, 0), 4.0, completed(tasks=40))


def test_a_full_disk_refuses_before_anything_is_launched_and_loses_nothing(folder: Path) -> None:
    with Database.open(folder) as database:
        lease = started(database)
        with database.reading() as reader:
            pages = reader.number("PRAGMA page_count")
            reader.rows(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(LedgerFull, match="free space"):
            fill(database, lease)
    with Database.open(folder) as database:
        found = readings.snapshot(database, RUN, 9.0)
        spent = next(line.spent for line in found.budget if line.name == "max_trials")
        assert spent == len(found.trials)


def test_a_file_that_another_process_keeps_locked_is_said_to_be_busy(folder: Path) -> None:
    with (
        Database.open(folder) as database,
        closing(sqlite3.connect(folder / NAME, isolation_level=None)) as other,
    ):
        lease = started(database)
        with database.reading() as reader:
            reader.rows("PRAGMA busy_timeout = 20")
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerBusy, match="another process"):
            trials.reserve(database, lease, Slot(BASELINE, 1, 0), 4.0)
        other.execute("ROLLBACK")
        trials.reserve(database, lease, Slot(BASELINE, 1, 0), 4.0)
