"""Where Docker's daemon is not installed, what would run on it is not collected, nor skipped."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
TESTS = "tests/environments/dockerd"


@pytest.mark.integration
def test_without_dockerd_its_tests_are_not_there(tmp_path: Path) -> None:
    ran = _pytest(str(tmp_path), "--no-skips", TESTS)
    assert ran.returncode == pytest.ExitCode.NO_TESTS_COLLECTED, ran.stdout
    assert "skipped" not in ran.stdout


def _pytest(path: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a test run of its own, with this `PATH`."""
    kept = {name: value for name, value in os.environ.items() if "XDIST" not in name}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", *words],
        cwd=REPOSITORY, env={**kept, "PATH": path}, capture_output=True, text=True,
        timeout=180, check=False,
    )  # fmt: skip
