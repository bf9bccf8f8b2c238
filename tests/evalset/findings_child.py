"""Processes that add findings: `python findings_child.py ROOT PLAN|- add NUMBER` or `judge ID`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from steelyard.components.clock import SystemClock
from steelyard.components.scanner import Finding, FindingSeverity
from steelyard.evalset.finding_store import FindingStore, Scanned
from steelyard.evalset.finding_values import Scan, TriageState
from steelyard.evalset.layout import SetFiles
from steelyard.results.files import NO_FAULTS, Faults
from steelyard.testing.faults import KillAt


def scanned(case: str, *evidence: str) -> Scanned:
    found = tuple(("s", Finding("c", FindingSeverity.LOW, "m", one, 0)) for one in evidence)
    return Scanned(Scan(0, case, 1, f"digest-{case}", {"s": "1"}), "p/a/1", "run", found)


def main() -> int:
    root, text, what, argument = Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
    faults: Faults = NO_FAULTS if text == "-" else KillAt.parse(text)
    store = FindingStore(SetFiles(root), clock=SystemClock(), faults=faults)
    if what == "judge":
        store.judge(argument, TriageState.DISMISSED, by="me", why="as asked")
        print("judged", flush=True)
        return 0
    for number in range(int(argument)):
        store.add([scanned(f"case-{number}", f"first {number}", f"second {number}")])
        print(f"case-{number}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
