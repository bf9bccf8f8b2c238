"""The architecture check holds, and does catch what it is there to catch."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.project.checkout import ROOT, run

pytestmark = pytest.mark.integration

LINT_IMPORTS = Path(sys.executable).with_name("lint-imports")

WRONG = [
    ("results", "import steelyard.engine", "arrows run one way"),
    ("components", "import steelyard.testing", "arrows run one way"),
    ("stats", "import steelyard.config.errors", "stats imports nothing of ours"),
    ("results", "import steelyard.harnesses", "results and the built-ins"),
    ("environments", "import steelyard.results", "do not know results"),
    ("benchmarks", "import steelyard.environments", "meet only in a request"),
    ("engine", "import steelyard.benchmarks", "only the registry's strings"),
    ("config", "import steelyard.components", "arrows run one way"),
]


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"PYTHONPATH": str(folder / "src")}
    return run([LINT_IMPORTS, "--no-cache"], cwd=folder, env=env)


def copy_of_source(folder: Path) -> Path:
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src", folder / "src", ignore=ignore)
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def test_the_arrows_run_one_way(tmp_path: Path) -> None:
    answer = lint(copy_of_source(tmp_path))
    assert answer.returncode == 0, answer.stdout


@pytest.mark.parametrize(("where", "wrong", "contract"), WRONG)
def test_a_wrong_import_breaks_its_contract(
    tmp_path: Path, where: str, wrong: str, contract: str
) -> None:
    package = copy_of_source(tmp_path) / "src" / "steelyard" / where / "__init__.py"
    package.write_text(f"{package.read_text()}\n{wrong}\n")
    answer = lint(tmp_path)
    assert answer.returncode != 0
    broken = [line for line in answer.stdout.splitlines() if " BROKEN" in line]
    assert any(contract in line for line in broken), answer.stdout
