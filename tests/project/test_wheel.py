"""What users install: the package, its types and its licence, and nothing of the checkout."""

from __future__ import annotations

import shutil
import sys
import zipfile
from pathlib import Path

import pytest

from steelyard import __version__
from tests.project.checkout import ROOT, run

pytestmark = pytest.mark.integration


def test_the_wheel_holds_the_package_and_nothing_else(tmp_path: Path) -> None:
    # From a copy: a build must not leave anything in the checkout.
    source = tmp_path / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", ".gitignore"):
        shutil.copy(ROOT / name, source)
    for name in ("src", "catalog"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))

    built = run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path], cwd=source
    )

    assert built.returncode == 0, built.stdout
    wheel = tmp_path / f"steelyard-{__version__}-py3-none-any.whl"
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.partition("/")[0] for name in names}
    assert tops == {"steelyard", f"steelyard-{__version__}.dist-info"}
    assert "steelyard/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    modules = {str(p.relative_to(ROOT / "src")) for p in (ROOT / "src").rglob("*.py")}
    assert modules <= set(names)
