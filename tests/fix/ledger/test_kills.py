"""Killed at any point of any transition, and asked the same again: as if it had not been killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from steelyard.fix.ledger.faults import LedgerPoint

CHILD = Path(__file__).with_name("kill_child.py")
ROOT = Path(__file__).parents[3]
OF_UPGRADES = {LedgerPoint.BACKUP_WRITTEN, LedgerPoint.BACKUP_RENAMED}
"""`test_upgrade.py` has those."""


@pytest.mark.integration
def test_a_kill_anywhere_changes_nothing_of_where_the_same_calls_end() -> None:
    child = subprocess.run(
        [sys.executable, str(CHILD)],
        capture_output=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert child.returncode == 0, child.stderr.decode()
    told = json.loads(child.stdout)
    assert told["unlike"] == []
    assert set(told["seen"]) == set(LedgerPoint) - OF_UPGRADES
    assert told["points"] > 200
