"""The retrying launch that is killed: `python retry_kill_child.py FOLDER PLAN [reuse]`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from steelyard.models.backoff import Backoff
from steelyard.results.files import NO_FAULTS, Faults
from steelyard.testing.faults import KillAt
from tests.engine.flaky import flaky, run_flaky

WAIT = Backoff(base_s=0.01, cap_s=0.01)


def main() -> int:
    folder, text = Path(sys.argv[1]), sys.argv[2]
    faults: Faults = NO_FAULTS if text == "-" else KillAt.parse(text)
    one = flaky(
        folder,
        tasks=2,
        fails={"t0": 2, "t1": 0},
        script={"large": 70_000},
        runtime={"reuse": "reuse" in sys.argv[3:]},
    )
    return run_flaky(folder, one, backoff=WAIT, faults=faults, task_concurrency=1).exit_status


if __name__ == "__main__":
    raise SystemExit(main())
