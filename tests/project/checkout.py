"""What the tests of the checkout itself look at: its tracked files, and commands run in it."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@cache
def tracked_files() -> tuple[Path, ...]:
    """Every file that git tracks or would add, and that is there."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    paths = (ROOT / name for name in sorted(set(listed.split("\0"))) if name)
    return tuple(path for path in paths if path.is_file())


@cache
def tracked_texts() -> dict[Path, str]:
    """Their texts; what is not UTF-8 is left out."""
    texts = {}
    for path in tracked_files():
        try:
            texts[path] = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
    return texts


def run(command: Sequence[str | Path], **options: object) -> subprocess.CompletedProcess[str]:
    """Run a command without input; its output comes back as text."""
    return subprocess.run(  # type: ignore[call-overload, no-any-return]
        [str(part) for part in command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        **options,
    )
