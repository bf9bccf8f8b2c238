"""The launch that is killed: `python kill_child.py FOLDER PLAN [reuse] [large]`.

Every execution pays: it appends a line to `paid` when its agent begins, and to `done` when it ends.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from steelyard.engine import checkpointing
from steelyard.results.files import NO_FAULTS, Faults, WritePoint
from steelyard.testing.faults import All, FailAt, KillAt
from tests.engine.launching import run_all
from tests.engine.paying import paying_request


def main() -> int:
    folder, text = Path(sys.argv[1]), sys.argv[2]
    faults: Faults = NO_FAULTS
    if text != "-":
        plan = KillAt.parse(text)
        faults = plan
        if plan.point is WritePoint.TAIL_CUT:
            faults = All(FailAt(WritePoint.ATTEMPTS_APPENDED, nth=3, bytes_taken=50), plan)
    if "large" in sys.argv[3:]:
        checkpointing.MAX_KEPT_BYTES = -1  # type: ignore[misc]  # all inputs are too large then
    one = paying_request(folder, reuse="reuse" in sys.argv[3:])
    result = run_all(folder, one, faults=faults, task_concurrency=2)
    return result.exit_status


if __name__ == "__main__":
    raise SystemExit(main())
