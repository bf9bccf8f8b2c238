"""A copy of Python runs from any folder, with its packages and libraries, and tells nobody."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from steelyard.harnesses.cli_agent import pypi

PROGRAM = """
import json, os, ssl, sqlite3, sys, thing
print(json.dumps({"prefix": sys.prefix, "thing": thing.__file__, "variables": dict(os.environ)}))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy without packages, moved after it was made."""
    made = tmp_path_factory.mktemp("copy") / "made"
    site = pypi._copy_python(made / "python")
    loader = pypi._copy_libraries(made / "python", made / "libraries")
    (made / "run-python").write_text(pypi._LAUNCHER.format(loader=loader))
    (made / "run-python").chmod(0o755)
    (site / "thing.py").write_text("")
    moved = made.rename(made.with_name("moved"))
    return Path(moved)


@pytest.mark.integration
def test_it_runs_where_it_was_moved_to_with_its_packages_and_no_variable(folder: Path) -> None:
    ended = subprocess.run(
        [folder / "run-python", "-c", PROGRAM], capture_output=True, text=True, check=False,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": "/nowhere", "PYTHONHOME": "/nowhere"},
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    told = json.loads(ended.stdout)
    assert Path(told["prefix"]) == folder / "python"
    assert Path(told["thing"]).is_relative_to(folder / "python")
    assert not any(name.startswith("LD_") for name in told["variables"])


def test_packages_of_this_environment_are_not_copied(folder: Path) -> None:
    (site,) = folder.glob("python/lib/*/site-packages")
    assert [path.name for path in site.iterdir() if path.suffix == ".py"] == ["thing.py"]
    assert not list(folder.glob("**/pydantic"))


def test_no_library_of_glibc_is_copied(folder: Path) -> None:
    """They must be those of the environment, as its loader is."""
    names = {path.name.split(".")[0] for path in (folder / "libraries").iterdir()}
    assert not names & {"libc", "libm", "libpthread", "libdl", "ld-linux-x86-64"}
