"""Every row once more where user namespaces are off: trust `host`, and honest results."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.environments.people import ordinary_user, run_python, without_namespaces

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


@pytest.mark.integration
@pytest.mark.parametrize("name", ["test_attacks.py", "test_attacks_on_walls.py"])
def test_every_row_holds_with_namespaces_off(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [
            *without_namespaces(),
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider"),
            *("--basetemp", str(tmp_path / "again"), str(HERE / name)),
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


PROGRAM = """
import sys, tempfile
from pathlib import Path
from tests.fix.world import World, try_out
world = World(Path(tempfile.mkdtemp()))
result = try_out(world, {"src/app.py": "def answer():\\n    return 5\\n"})
print(result.outcome, result.trust, result.tree_method, dict(result.metrics), result.is_marked)
spy = "import os\\ndef answer():\\n    return len(os.listdir(%r))\\n" % str(world.state)
result = try_out(world, {"src/app.py": spy})
print(result.outcome)
"""


@pytest.mark.integration
def test_an_ordinary_user_has_the_same_walls() -> None:
    with ordinary_user() as (prefix, variables):
        code = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n" + PROGRAM
        done = run_python(["-c", code], prefix=prefix, env=variables)
    lines = done.stdout.splitlines()
    assert lines[:1] == ["completed contained overlay {'answer': 5.0} True"], done
    assert lines[1:] == ["failed"], "the user's checkout and state are not to be seen"
