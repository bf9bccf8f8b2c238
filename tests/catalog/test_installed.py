"""The catalog of an installed package: the same packs, found by the same names."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from steelyard.benchmarks.pack.digest import folder_digest
from steelyard.components.catalog import CATALOG
from tests.project.checkout import ROOT, run

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds what the wheel holds."""
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md", "LICENSE", ".gitignore"):
        shutil.copy(ROOT / name, source)
    for name in ("src", "catalog"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    made = tmp_path_factory.mktemp("wheel")
    built = run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", made], cwd=source)
    assert built.returncode == 0, built.stdout
    [wheel] = made.glob("*.whl")
    folder = tmp_path_factory.mktemp("installed")
    with zipfile.ZipFile(wheel) as file:
        file.extractall(folder)
    return folder


def test_every_file_of_every_pack_is_in_the_wheel(installed: Path) -> None:
    for name in CATALOG:
        there = installed / "steelyard" / "_catalog" / name
        assert folder_digest(there) == folder_digest(ROOT / "catalog" / name), name


def test_an_installed_product_runs_a_pack_by_its_name(installed: Path, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "steelyard", "run", "paper-trail", "oracle", "none", "--json"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(installed), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr
    [request] = json.loads(ran.stdout)["requests"]
    assert (request["outcome"], request["outcomes"]["scored"]) == ("completed", request["planned"])
    headline = next(one for one in request["metrics"]["scores"] if one["is_headline"])
    assert headline["official"] == 1.0
    # Where the pack lies is nothing that a record or an identity may hold.
    [run_file] = tmp_path.glob("results/*/*/run.json")
    assert "_catalog" not in run_file.read_text("utf-8")
