"""The process that is killed: plays the scripted run under a fault plan from its arguments.

    python kill_child.py RESULTS_DIR PLAN

PLAN is a `KillAt` in its text form; one for `tail_cut` comes with a disk that fills up.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from steelyard.results.files import Faults, WritePoint
from steelyard.testing.faults import All, FailAt, KillAt

sys.path.insert(0, str(Path(__file__).parent))
from workload import play, tell_parent

plan = KillAt.parse(sys.argv[2])
faults: Faults = plan
if plan.point is WritePoint.TAIL_CUT:
    faults = All(FailAt(WritePoint.ATTEMPTS_APPENDED, nth=3, bytes_taken=50), plan)
asyncio.run(play(Path(sys.argv[1]), faults, tell_parent))
