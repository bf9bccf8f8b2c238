"""Cut out of requirements.lock what each user-facing extra adds to the package's own dependencies.

`extras_lock.py LOCK FOLDER`; called by `lock.sh`. Versions and hashes are those of the lock.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def blocks(text: str) -> dict[str, str]:
    """Give each package's lines of a lock by its normalised name."""
    found = re.split(r"(?m)^(?=[A-Za-z0-9])", text)
    return {name_of(block): block for block in found if "==" in block}


def name_of(line: str) -> str:
    """Give a requirement's normalised name."""
    match = re.match(r"[A-Za-z0-9._-]+", line)
    return re.sub(r"[-_.]+", "-", match[0] if match else "").lower()


def resolved(lock: Path, *arguments: str) -> dict[str, str]:
    """Resolve the project with these arguments, held to the lock; each package's line by name."""
    shown = subprocess.run(
        ["uv", "pip", "compile", "pyproject.toml", "--quiet", "--no-config", "--universal",
         "--python-version", "3.11", "--no-header", "--no-annotate", "--no-strip-extras",
         "--constraint", str(lock), *arguments],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    return {name_of(line): line for line in shown.splitlines() if "==" in line}


def main(lock: Path, folder: Path) -> None:
    """Write a file for each extra."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    locked, base = blocks(lock.read_text()), resolved(lock)
    for extra in project["optional-dependencies"]:
        found = resolved(lock, "--extra", extra)
        # The lock's hashes under the extra's own markers: the lock serves developers, too.
        parts = [
            f"{found[name]} \\\n{locked[name].partition(chr(10))[2].rstrip()}\n"
            for name in sorted(found.keys() - base.keys())
        ]
        (folder / f"{extra}.txt").write_text("".join(parts))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
