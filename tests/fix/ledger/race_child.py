"""A process that works on a run beside others: `race_child.py FOLDER NAME COUNT`."""

from __future__ import annotations

import sys
from pathlib import Path

from steelyard.fix.ledger import operations
from steelyard.fix.ledger.database import Database
from steelyard.fix.ledger.errors import BudgetExhausted, RevisionConflict
from tests.fix.ledger.story import RUN, control, revision


def main(folder: Path, name: str, count: int) -> None:
    with Database.open(folder) as database:
        for number in range(count):
            while True:
                try:
                    operations.record(
                        database,
                        RUN,
                        control(f"{name}{number}", "scan"),
                        [operations.SpendOne("max_scans")],
                        5.0,
                        expected_revision=revision(database),
                    )
                except RevisionConflict:
                    continue
                except BudgetExhausted:
                    print("exhausted")
                break


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
