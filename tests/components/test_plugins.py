"""Installed packages add components through entry points; two things with one id are refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.integration

MODULE = """
from steelyard.components.harness import Harness, HarnessResult, HarnessTraits

class Mine(Harness):
    api = {api}
    id = "mine"
    version = "1"
    traits = HarnessTraits(calls_model=False)

    async def run(self, context):
        return HarnessResult("x")
"""
FIND = """
import sys
from steelyard.components.registry import Kind, find
from steelyard.config.errors import BadInput
try:
    found = find(Kind.HARNESS, sys.argv[1])
except BadInput as error:
    print(type(error).__name__, error)
else:
    print("found", found.id, found.component.__module__, found.component.__name__)
"""


def _distribution(site: Path, name: str, entries: Mapping[str, str], module: str) -> None:
    """Lay out an installed package, as an installer would."""
    info = site / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = "".join(f"{key} = {value}\n" for key, value in entries.items())
    (info / "entry_points.txt").write_text(f"[steelyard.harnesses]\n{lines}")
    (site / f"{name}_module.py").write_text(module)


Python = Callable[..., str]


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return tmp_path / "site"


@pytest.fixture
def python(site: Path, tmp_path: Path) -> Python:
    """Run Python with the packages of `site`, in a process: entry points are read once a process.

    `python -m` puts the working folder first on the path; it is an empty one.
    """
    empty = tmp_path / "empty"
    empty.mkdir()

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, *arguments],
            env={**os.environ, "PYTHONPATH": str(site), "XDG_CONFIG_HOME": str(tmp_path / "xdg")},
            cwd=empty,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return done.stdout

    return run


def _listed(python: Python) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(
        python("-m", "steelyard", "list", "harnesses", "--json")
    )["components"]
    return found


def test_a_plug_in_is_listed_with_its_origin_and_found_by_its_id(
    site: Path, python: Python
) -> None:
    _distribution(site, "x", {"mine": "x_module:Mine"}, MODULE.format(api=1))
    (mine,) = [one for one in _listed(python) if one["id"] == "mine"]
    assert (mine["origin"], mine["problem"]) == ("x", None)
    assert python("-c", FIND, "mine") == "found mine x_module Mine\n"


def test_listing_imports_no_plug_in_and_one_that_raises_is_reported_when_used(
    site: Path, python: Python
) -> None:
    _distribution(site, "x", {"mine": "x_module:Mine"}, "raise RuntimeError('no licence')")
    assert any(one["id"] == "mine" for one in _listed(python))
    said = python("-c", FIND, "mine")
    assert said.startswith("UnusableComponent the harness 'mine' cannot be imported: ")
    assert "no licence" in said
    assert python("-c", FIND, "nop").startswith("found nop")


def test_a_plug_in_for_another_api_is_refused(site: Path, python: Python) -> None:
    _distribution(site, "x", {"mine": "x_module:Mine"}, MODULE.format(api=2))
    said = python("-c", FIND, "mine")
    assert said.startswith("UnusableComponent")
    assert "declares api = 2; this version supports 1" in said


def test_a_plug_in_with_the_id_of_a_built_in_is_refused_by_name_and_the_built_in_works(
    site: Path, python: Python
) -> None:
    _distribution(site, "x", {"nop": "x_module:Mine"}, MODULE.format(api=1))
    rows = [(one["origin"], one["problem"]) for one in _listed(python) if one["id"] == "nop"]
    assert rows == [("built-in", None), ("x", "refused: the id is built in")]
    shown = python("-m", "steelyard", "list", "harnesses")
    assert "x (refused: the id is built in)" in shown
    assert python("-c", FIND, "nop") == "found nop steelyard.harnesses.nop Nop\n"


def test_two_packages_with_one_id_are_both_named(site: Path, python: Python) -> None:
    for name in ("x", "y"):
        entries = {"mine": f"{name}_module:Mine"}
        _distribution(site, name, entries, MODULE.format(api=1))
    problems = {one["origin"]: one["problem"] for one in _listed(python) if one["id"] == "mine"}
    assert problems == {"x": "refused: also declared by y", "y": "refused: also declared by x"}
    said = python("-c", FIND, "mine")
    assert said.startswith("UnusableComponent the harness 'mine' of x is refused: ")
    assert "also declared by y" in said
