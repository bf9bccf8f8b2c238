"""Set-up and CI: what is missing is named, and nothing can hide."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.project.checkout import ROOT, run

pytestmark = pytest.mark.integration


def path_with_only(folder: Path, *commands: str) -> dict[str, str]:
    """Make an environment whose path holds these commands and no others."""
    folder.mkdir(exist_ok=True)
    for command in commands:
        real = shutil.which(command)
        assert real, command
        (folder / command).symlink_to(real)
    return {"PATH": str(folder)}


def packages(env: dict[str, str], *pairs: str) -> subprocess.CompletedProcess[str]:
    return run(["bash", ROOT / "scripts/system-packages.sh", *pairs], env=env)


def test_where_nothing_is_missing_nothing_is_said() -> None:
    answer = packages(dict(os.environ), "bash=bash", "git=git")
    assert (answer.returncode, answer.stdout) == (0, "")


def test_without_a_package_manager_what_is_missing_is_named(tmp_path: Path) -> None:
    env = path_with_only(tmp_path / "bin", "bash", "sort", "id")
    answer = packages(env, "bwrap=bubblewrap", "no-such=nothing", "sort=coreutils")
    assert answer.returncode == 1
    assert "missing: bubblewrap nothing" in answer.stdout


def test_an_ordinary_user_is_told_the_command(tmp_path: Path) -> None:
    env = path_with_only(tmp_path / "bin", "bash", "sort")
    for name, text in {"id": "echo 1000", "apt-get": "exit 9"}.items():
        fake = tmp_path / "bin" / name
        fake.write_text(f"#!/usr/bin/env bash\n{text}\n")
        fake.chmod(0o755)
    answer = packages(env, "no-such-command=bubblewrap")
    assert answer.returncode == 1
    assert "sudo apt-get install bubblewrap" in answer.stdout


def test_a_second_setup_installs_nothing(tmp_path: Path) -> None:
    for name in ("requirements.lock", "pyproject.toml", "scripts"):
        (shutil.copytree if name == "scripts" else shutil.copy)(ROOT / name, tmp_path / name)
    (tmp_path / "src").mkdir()
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / ".venv/bin/python").symlink_to(sys.executable)
    # No uv and no other Python on the path: whatever wanted to install would fail.
    env = path_with_only(tmp_path / "bin", "bash", "cat", "cut", "dirname", "sha256sum")
    (tmp_path / ".venv/.stamp").write_text(
        run(["bash", "scripts/setup.sh", "--digest"], cwd=tmp_path, env=env).stdout
    )
    answer = run(["bash", "scripts/setup.sh"], cwd=tmp_path, env=env)
    assert (answer.returncode, answer.stdout) == (0, "")
    (tmp_path / "requirements.lock").write_text("changed")
    assert run(["bash", "scripts/setup.sh"], cwd=tmp_path, env=env).returncode != 0


def test_ci_runs_make_test_and_counts_a_skip_as_a_failure() -> None:
    script = (ROOT / ".ci/run").read_text()
    assert "make --no-print-directory test" in script
    assert "--no-skips" in script
    assert os.access(ROOT / ".ci/run", os.X_OK)


@pytest.mark.parametrize("workers", ["0", "2"])
@pytest.mark.parametrize(("option", "status"), [("--no-skips", 1), (None, 0)])
def test_a_skipped_test_fails_the_run_under_no_skips(
    tmp_path: Path, workers: str, option: str | None, status: int
) -> None:
    shutil.copy(ROOT / "tests/conftest.py", tmp_path)
    (tmp_path / "test_it.py").write_text(
        "import pytest\n\n"
        "def test_runs() -> None: pass\n\n"
        "def test_skips() -> None: pytest.importorskip('no_such_module_anywhere')\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", workers]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}  # for the plug-ins that it names
    answer = run([*command, *([option] if option else [])], cwd=tmp_path, env=env)
    assert answer.returncode == status, answer.stdout
    assert ("a failure under --no-skips" in answer.stdout) == bool(option)
