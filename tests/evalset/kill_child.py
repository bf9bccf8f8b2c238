"""The submission that is killed: `python kill_child.py FOLDER PLAN submit|resume`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from steelyard.evalset.find_set import find_set
from steelyard.evalset.resuming import NothingToDo, plan_resume
from steelyard.results.files import NO_FAULTS, Faults
from steelyard.testing.faults import KillAt
from tests.evalset.projects import around, planned, ran


def main() -> int:
    folder, text, kind = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    faults: Faults = NO_FAULTS if text == "-" else KillAt.parse(text)
    if kind == "submit":
        plan = planned(folder, "paying", repeats=3, limits={"max_concurrent_runs": 2})
    else:
        try:
            plan = plan_resume(find_set("latest", folder / "results"), around(folder))
        except NothingToDo:
            return 0
    return ran(plan, faults=faults).exit_status


if __name__ == "__main__":
    raise SystemExit(main())
