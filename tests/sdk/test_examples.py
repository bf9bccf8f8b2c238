"""Every example of the SDK runs as it stands."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "sdk"
LAST_LINE = {
    "compare.py": " model calls in ",
    "follow.py": "stopped: cancelled, ",
    "own_harness.py": "agreement: 1.00",
}


@pytest.mark.integration
@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.name)
def test_an_example_runs(path: Path, model_url: str, own_folder: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-W", "error", path, model_url],
        cwd=own_folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr == ""
    assert LAST_LINE[path.name] in ended.stdout.splitlines()[-1]
