"""What it costs to start: CPU seconds of the commands that people and completions call often."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measures import Figure
from benchmarks.processes import STEELYARD, median_cpu_s, run
from benchmarks.work import write_orchestration

HEAVY = ("pydantic", "rich", "httpx2", "openai", "anthropic", "scipy", "numpy", "jinja2")

LOADED = """
import sys
sys.argv = ["steelyard", {option!r}]
from steelyard.__main__ import main
try:
    main()
except SystemExit:
    pass
print("\\nloaded:", *sorted(set({heavy!r}) & set(sys.modules)))
"""


def heavy_modules(option: str) -> list[str]:
    """Name the heavy modules that `steelyard OPTION` has imported at its end."""
    code = LOADED.format(option=option, heavy=HEAVY)
    last = run([sys.executable, "-c", code]).stdout.strip().splitlines()[-1]
    return last.removeprefix("loaded:").split()


def measure(*, scale: float) -> Iterator[Figure]:
    """Start-up against the bare interpreter and the bounds of the project."""
    times = max(3, int(15 * scale))
    bare_s = median_cpu_s([sys.executable, "-c", "pass"], times=times)
    bounds = {
        "--version": (3 * bare_s + 0.060, "3 × python -c pass + 60 ms"),
        "--help": (0.25, ""),
        "list benchmarks": (0.35, ""),
    }
    for arguments, (bound_s, note) in bounds.items():
        command = [*STEELYARD, *arguments.split()]
        cpu_s = median_cpu_s(command, times=times)
        yield Figure(f"{arguments}: CPU", cpu_s, "s", bound_s, floor=bare_s, note=note)
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        file = write_orchestration(
            folder / "two.yaml",
            pack="humaneval",
            harness="chat",
            environment="sandbox",
            concurrency=32,
            results=folder / "results",
            model={"id": "m", "base_url": "http://127.0.0.1:9/v1", "api_key": "EMPTY"},
            requests=2,
        )
        command = [*STEELYARD, "launch", str(file), "--dry-run"]
        cpu_s = median_cpu_s(command, times=times, cwd=folder)
    yield Figure("launch --dry-run of two requests: CPU", cpu_s, "s", 0.5, floor=bare_s)
    for option in ("--version", "--help"):
        loaded = heavy_modules(option)
        note = ", ".join(loaded)
        yield Figure(f"{option}: heavy modules imported", len(loaded), "modules", 0, note=note)
