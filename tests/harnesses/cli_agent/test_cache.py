"""An agent is installed once, whole or not at all, and what changed since is seen."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from steelyard.components.installed_agents import (
    MANIFEST,
    installed_agents,
    remove_agent,
)
from steelyard.harnesses.cli_agent.cache import DamagedInstall, Wanted, install, installed
from steelyard.harnesses.cli_agent.installer import NotInstalled
from steelyard.harnesses.cli_agent.sources import Files, Npm, PyPI
from tests.harnesses.cli_agent.stand_ins import STAND_IN

FAKE_NPM = """#!/bin/sh
echo "$@" >>"$CALLS"
sleep "${NAP:-0}"
[ -n "$FAIL" ] && { echo "npm error notarget No matching version" >&2; exit 1; }
mkdir -p node_modules/thing
echo program >node_modules/thing/run; chmod 700 node_modules/thing/run
cat >node_modules/.package-lock.json <<END
{"packages": {"node_modules/thing": {"version": "1.0.0", "integrity": "sha512-found"}}}
END
"""
THING = replace(STAND_IN, id="thing", source=Npm(("thing@{version}",)))


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package manager that notes its calls."""
    folder = tmp_path / "bin"
    folder.mkdir()
    npm = folder / "npm"
    npm.write_text(FAKE_NPM)
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    return tmp_path / "calls"


def wanted(tmp_path: Path, version: str = "1.0.0") -> Wanted:
    return Wanted(THING, version, tmp_path / "data")


def test_an_install_is_made_once_and_found_afterwards(calls: Path, tmp_path: Path) -> None:
    one = wanted(tmp_path)
    assert installed(one) is None
    folder = install(one, timeout_s=60)
    assert install(one, timeout_s=60) == installed(one) == folder
    assert len(calls.read_text().splitlines()) == 1
    assert "--ignore-scripts" in calls.read_text()
    assert folder.name.startswith("1.0.0-linux-")
    manifest = json.loads((folder / MANIFEST).read_bytes())
    assert manifest["packages"] == {"thing@1.0.0": "sha512-found"}


def test_every_user_can_read_and_run_what_was_installed(calls: Path, tmp_path: Path) -> None:
    old = os.umask(0o077)
    try:
        folder = install(wanted(tmp_path), timeout_s=60)
    finally:
        os.umask(old)
    for path in (folder, *folder.rglob("*")):
        needed = 0o555 if path.is_dir() or path.name == "run" else 0o444
        assert stat.S_IMODE(path.stat().st_mode) & needed == needed, path


def test_versions_lie_side_by_side(calls: Path, tmp_path: Path) -> None:
    folders = {install(wanted(tmp_path, version), timeout_s=60) for version in ("1.0.0", "1.1.0")}
    assert len(folders) == 2
    assert [one.version for one in installed_agents(tmp_path / "data")] == ["1.0.0", "1.1.0"]


def test_a_failed_install_leaves_nothing_and_says_why(
    calls: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIL", "1")
    with pytest.raises(NotInstalled, match="No matching version"):
        install(wanted(tmp_path), timeout_s=60)
    assert [path.name for path in wanted(tmp_path).home.iterdir()] == [".lock"]


def test_an_installer_that_takes_too_long_is_ended(
    calls: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NAP", "30")
    with pytest.raises(NotInstalled, match="timed out"):
        install(wanted(tmp_path), timeout_s=0.5)


def test_a_missing_npm_is_named_with_what_brings_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotInstalled, match=r"npm is not found[^$]*Node\.js"):
        install(wanted(tmp_path), timeout_s=60)


def test_a_package_with_another_sum_is_refused(calls: Path, tmp_path: Path) -> None:
    pinned = replace(
        THING, source=Npm(("thing@{version}",), integrity={"thing@1.0.0": "sha512-known"})
    )
    with pytest.raises(NotInstalled, match="is not the package"):
        install(Wanted(pinned, "1.0.0", tmp_path / "data"), timeout_s=60)
    assert not installed_agents(tmp_path / "data")
    right = replace(
        THING, source=Npm(("thing@{version}",), integrity={"thing@1.0.0": "sha512-found"})
    )
    install(Wanted(right, "1.0.0", tmp_path / "data"), timeout_s=60)


@pytest.mark.parametrize("change", ["add", "remove", "grow", "mode"])
def test_what_was_changed_since_is_refused(change: str, calls: Path, tmp_path: Path) -> None:
    folder = install(wanted(tmp_path), timeout_s=60)
    program = folder / "node_modules" / "thing" / "run"
    if change == "add":
        (folder / "more").write_text("x")
    elif change == "remove":
        program.unlink()
    elif change == "grow":
        program.write_text("program and more\n")
    else:
        program.chmod(0o644)
    with pytest.raises(
        DamagedInstall, match=r"no longer what was installed[^$]*agent remove thing"
    ):
        installed(wanted(tmp_path))


@pytest.mark.parametrize("text", ["", "{", '{"schema": "agent-install/9"}', "[1]"])
def test_a_manifest_that_says_nothing_is_refused(text: str, calls: Path, tmp_path: Path) -> None:
    folder = install(wanted(tmp_path), timeout_s=60)
    (folder / MANIFEST).write_text(text)
    with pytest.raises(DamagedInstall):
        installed(wanted(tmp_path))
    assert [one.version for one in installed_agents(tmp_path / "data")] == [""]


def test_what_a_killed_install_left_is_cleared_by_the_next(calls: Path, tmp_path: Path) -> None:
    left = wanted(tmp_path).home / ".partial-abc"
    (left / "node_modules").mkdir(parents=True)
    install(wanted(tmp_path), timeout_s=60)
    assert not left.exists()


def test_a_removed_version_is_gone_and_can_be_installed_again(calls: Path, tmp_path: Path) -> None:
    install(wanted(tmp_path), timeout_s=60)
    (one,) = installed_agents(tmp_path / "data")
    remove_agent(one)
    assert installed(wanted(tmp_path)) is None
    install(wanted(tmp_path), timeout_s=60)
    assert len(calls.read_text().splitlines()) == 2


@pytest.mark.integration
def test_processes_that_want_it_at_once_install_it_once(
    calls: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NAP", "1")
    program = (
        "import sys; from pathlib import Path\n"
        "from tests.harnesses.cli_agent.test_cache import wanted\n"
        "from steelyard.harnesses.cli_agent.cache import install\n"
        "print(install(wanted(Path(sys.argv[1])), timeout_s=60))\n"
    )
    started = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    folders = {process.communicate(timeout=60)[0] for process in started}
    assert [process.returncode for process in started] == [0, 0, 0]
    assert len(folders) == 1
    assert len(calls.read_text().splitlines()) == 1


def test_files_of_a_package_are_another_install_when_they_change(tmp_path: Path) -> None:
    source = tmp_path / "files"
    source.mkdir()
    (source / "run").write_text("one")
    agent = replace(STAND_IN, source=Files(source))
    first = install(Wanted(agent, "1.0.0", tmp_path / "data"), timeout_s=60)
    (source / "run").write_text("two")
    assert installed(Wanted(agent, "1.0.0", tmp_path / "data")) is None
    second = install(Wanted(agent, "1.0.0", tmp_path / "data"), timeout_s=60)
    assert first != second
    assert (first / "run").read_text() == "one"


def test_a_lock_is_for_its_own_version_alone(tmp_path: Path) -> None:
    lock = tmp_path / "lock.txt"
    lock.write_text("thing==1.0.0 --hash=sha256:00\n")
    source = PyPI("thing", lock, "1.0.0")
    assert source.lock_of("1.0.0") == lock
    assert source.lock_of("1.0.1") is None
    assert source.recipe("1.0.0") != source.recipe("1.0.1")
