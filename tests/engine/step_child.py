"""The launch whose driver is killed: `step_child.py FOLDER AGENT_URL JUDGE_URL SCENARIO KILL`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.engine.steps import Kill, play

if __name__ == "__main__":
    folder, agent_url, judge_url, scenario, *kills = sys.argv[1:]
    due = map(Kill.parse, kills)
    result = play(Path(folder), agent_url, judge_url, scenario, *due, retries=1)
    raise SystemExit(result.exit_status)
