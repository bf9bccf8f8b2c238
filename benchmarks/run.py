"""Run the measures, print bound, measured and floor, and keep the figures as JSON.

Exits 1 where a bound is missed or a measured command failed. `--scale` below 1 shrinks the work
to try a measure out; its figures are not kept.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks import (
    analysis,
    calls,
    containers,
    evalset_report,
    expansion,
    fairness,
    fix_aa,
    fix_trials,
    gateway,
    overhead,
    resume,
    scale,
    scanners,
    startup,
    stopping,
    sweep,
)
from benchmarks.measures import Measure, shown, table
from benchmarks.processes import CommandFailed

MEASURES: dict[str, Measure] = {
    "startup": startup.measure,
    "overhead": overhead.measure,
    "calls": calls.measure,
    "gateway": gateway.measure,
    "containers": containers.measure,
    "fairness": fairness.measure,
    "scale": scale.measure,
    "resume": resume.measure,
    "stopping": stopping.measure,
    "analysis": analysis.measure,
    "fix_trials": fix_trials.measure,
    "evalset_report": evalset_report.measure,
    "expansion": expansion.measure,
    "sweep": sweep.measure,
    "scanners": scanners.measure,
    "fix_aa": fix_aa.measure,
}
LATEST = Path(__file__).parent / "results" / "latest.json"


def machine() -> dict[str, Any]:
    """Say on what the figures were taken."""
    cpu = platform.processor() or platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            cpu = line.partition(":")[2].strip()
            break
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "python": platform.python_version(),
    }


def main() -> int:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    names = ", ".join(MEASURES)
    parser.add_argument("measures", nargs="*", metavar="MEASURE", help=f"{names}; all by default")
    parser.add_argument("--scale", type=float, default=1.0)
    arguments = parser.parse_args()
    chosen = arguments.measures or list(MEASURES)
    if unknown := set(chosen) - set(MEASURES):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; known: {names}")

    kept: dict[str, list[dict[str, Any]]] = {}
    if LATEST.exists():
        kept = json.loads(LATEST.read_text())["measures"]
    failed = False
    for name in chosen:
        print(f"== {name}", flush=True)
        kept[name] = []
        try:
            for figure in MEASURES[name](scale=arguments.scale):
                print(f"  {figure.name}: {shown(figure.measured)} {figure.unit}", flush=True)
                kept[name].append(figure.as_json())
        except CommandFailed as error:
            print(f"  FAILED: {error}", flush=True)
            failed = True
    taken = [figure for name in chosen for figure in kept[name]]
    print("\n" + table(taken))
    if arguments.scale == 1.0 and not failed:
        document = {
            "schema": "benchmark-results/1",
            "taken_on": datetime.now(UTC).date().isoformat(),
            "machine": machine(),
            "measures": kept,
        }
        LATEST.parent.mkdir(exist_ok=True)
        LATEST.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
        print(f"\nkept in {LATEST.relative_to(Path.cwd())}; scripts/readme_figures.py shows them")
    missed = [figure["name"] for figure in taken if not figure["is_met"]]
    if missed:
        print("bounds missed: " + "; ".join(missed), file=sys.stderr)
    return 1 if missed or failed else 0


if __name__ == "__main__":
    sys.exit(main())
