"""Evidence: found by its digest, never believed without it."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from steelyard.fix.evidence import MAX_BYTES, Evidence, EvidenceDamaged, EvidenceFailed
from steelyard.fix.ledger.errors import TooLarge
from steelyard.fix.ledger.faults import LedgerPoint


def file_of(folder: Path, digest: str) -> Path:
    return folder / digest[:2] / digest[2:]


def test_what_is_kept_is_found_by_its_digest(tmp_path: Path) -> None:
    evidence = Evidence(tmp_path / "evidence")
    digest = evidence.put(b"output")
    assert digest == hashlib.sha256(b"output").hexdigest()
    assert evidence.get(digest) == b"output"
    assert evidence.put(b"output") == digest
    assert list(evidence.digests()) == [digest]
    assert file_of(tmp_path / "evidence", digest).stat().st_mode & 0o777 == 0o600


def test_content_that_was_changed_is_not_read_and_is_mended_by_keeping_it_again(
    tmp_path: Path,
) -> None:
    evidence = Evidence(tmp_path)
    digest = evidence.put(b"output")
    file_of(tmp_path, digest).write_bytes(b"Output")
    with pytest.raises(EvidenceDamaged, match="not what was kept"):
        evidence.get(digest)
    evidence.put(b"output")
    assert evidence.get(digest) == b"output"


def test_a_missing_file_a_link_and_a_name_that_is_no_digest_are_refused(tmp_path: Path) -> None:
    evidence = Evidence(tmp_path)
    digest = evidence.put(b"output")
    path = file_of(tmp_path, digest)
    other = tmp_path / "other"
    path.rename(other)
    with pytest.raises(EvidenceDamaged):
        evidence.get(digest)
    path.symlink_to(other)
    with pytest.raises(EvidenceDamaged):
        evidence.get(digest)
    with pytest.raises(EvidenceDamaged, match="no SHA-256"):
        evidence.get("../../etc/passwd")


def test_more_than_is_asked_for_is_not_read_and_more_than_may_be_not_kept(tmp_path: Path) -> None:
    evidence = Evidence(tmp_path)
    digest = evidence.put(b"x" * 100)
    with pytest.raises(EvidenceDamaged, match="more than 99"):
        evidence.get(digest, max_bytes=99)
    with pytest.raises(TooLarge):
        evidence.put(b"\0" * (MAX_BYTES + 1))


@pytest.mark.parametrize("point", [LedgerPoint.EVIDENCE_WRITTEN, LedgerPoint.EVIDENCE_SYNCED])
def test_a_disk_that_fails_leaves_nothing_behind(point: LedgerPoint, tmp_path: Path) -> None:
    class Failing:
        def reached(self, at: LedgerPoint) -> None:
            if at is point:
                raise OSError(28, "no space")

    with pytest.raises(EvidenceFailed, match="no space"):
        Evidence(tmp_path, faults=Failing()).put(b"output")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_what_nothing_rests_on_can_be_removed(tmp_path: Path) -> None:
    evidence = Evidence(tmp_path)
    digest = evidence.put(b"output")
    assert evidence.remove(digest) == 6
    assert evidence.remove(digest) == 0
    assert list(evidence.digests()) == []


def test_what_was_kept_again_is_not_old(tmp_path: Path) -> None:
    evidence = Evidence(tmp_path)
    old, again = evidence.put(b"old"), evidence.put(b"again")
    for digest in (old, again):
        os.utime(file_of(tmp_path, digest), (1000, 1000))
    evidence.put(b"again")
    assert list(evidence.digests(kept_before=2000)) == [old]
    assert set(evidence.digests()) == {old, again}
