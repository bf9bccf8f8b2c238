"""Every row once more where user namespaces are off: trust `host`, and honest results."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.environments.people import ordinary_user, without_namespaces

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


@pytest.mark.integration
@pytest.mark.parametrize(
    "names",
    [("test_attacks.py",), ("test_attacks_on_walls.py", "test_trials_in_walls.py")],
    ids=str,
)
def test_every_row_holds_with_namespaces_off(names: tuple[str, ...], tmp_path: Path) -> None:
    done = subprocess.run(
        [
            *without_namespaces(),
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider"),
            *("--basetemp", str(tmp_path / "again"), *(str(HERE / name) for name in names)),
        ],
        env={**os.environ, "STEELYARD_ROWS_AGAIN": "1"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=570,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:]
    counted = re.search(r"(\d+) passed", done.stdout)
    assert counted, done.stdout[-2000:]
    assert int(counted[1]) >= 20


@pytest.mark.integration
def test_every_row_holds_for_an_ordinary_user() -> None:
    with ordinary_user() as (prefix, variables):
        done = subprocess.run(
            [
                *(*prefix, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
                *("-p", "no:xdist", "--basetemp", f"{variables['HOME']}/rows"),
                *(str(HERE / "test_attacks_on_walls.py"), str(HERE / "test_trials_in_walls.py")),
                str(HERE / "test_subject.py"),
            ],
            env={**variables, "PYTHONPATH": str(ROOT / "src")},
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=570,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    counted = re.search(r"(\d+) passed", done.stdout)
    assert counted
    assert int(counted[1]) >= 20
