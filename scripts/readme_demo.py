"""Paste the output of `make demo` (on standard input) into README.md, progress lines left out."""

from __future__ import annotations

import re
import sys
from pathlib import Path

README = Path(__file__).resolve().parent.parent / "README.md"
BEGIN, END = "<!-- DEMO -->", "<!-- /DEMO -->"
PROGRESS = re.compile(r"^\S+: (loading tasks|\d+/\d+ ended|completed, \d+ attempts)")


def shortened(output: str) -> str:
    """Leave out progress lines, and blank lines next to each other."""
    kept = "\n".join(line for line in output.splitlines() if not PROGRESS.match(line))
    return re.sub(r"\n{3,}", "\n\n", kept).strip()


def main() -> None:
    """Replace what stands between the marks."""
    before, _, rest = README.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    block = f"```text\n{shortened(sys.stdin.read())}\n```"
    README.write_text(f"{before}{BEGIN}\n{block}\n{END}{after}")


if __name__ == "__main__":
    main()
