"""Write the figures of the last `make bench` into README.md and docs/performance.md.

The text between the two BENCHMARKS marks is replaced; `--check` only says whether it is current.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.measures import table  # noqa: E402 — the checkout is not installed as a package

BEGIN, END = "<!-- BENCHMARKS -->", "<!-- /BENCHMARKS -->"
FILES = ("README.md", "docs/performance.md")


def figures_text(results: Path) -> str:
    """Draw the figures, with their date and machine."""
    document = json.loads(results.read_text())
    on = document["machine"]
    figures = [figure for measure in document["measures"].values() for figure in measure]
    return (
        f"Taken on {document['taken_on']} by `make bench`: {on['cpu']}, {on['cores']} cores, "
        f"Linux {on['kernel']}, Python {on['python']}.\n\n{table(figures)}"
    )


def with_figures(text: str, figures: str) -> str:
    """Put the figures between the marks."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{figures}\n{END}{after}"


def main() -> int:
    """Fill or check both files."""
    results = ROOT / "benchmarks" / "results" / "latest.json"
    if not results.exists():
        sys.stderr.write("no figures yet: run `make bench` first\n")
        return 1
    figures, stale = figures_text(results), []
    for name in FILES:
        path = ROOT / name
        filled = with_figures(path.read_text(), figures)
        if filled != path.read_text():
            stale.append(name)
            if "--check" not in sys.argv:
                path.write_text(filled)
    sys.stdout.write(f"{'stale' if '--check' in sys.argv else 'filled'}: {stale or 'none'}\n")
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
