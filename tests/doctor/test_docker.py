"""A container engine is tried for real, once, and nothing of that stays."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from steelyard.components.extras import install_command
from steelyard.doctor import components
from steelyard.doctor.components import examine_docker
from steelyard.doctor.finding import Finding, State
from steelyard.environments.docker import finding
from steelyard.environments.docker.trial import write_shell
from tests.containers.fixtures import Engine


def look(host: str) -> list[Finding]:
    return list(examine_docker({"DOCKER_HOST": host}))


@pytest.mark.integration
def test_one_container_runs_a_program_and_nothing_of_it_stays(
    docker_host: str, container_engine: Engine, busybox_image: str
) -> None:
    def standing() -> list[str]:
        found = container_engine.podman("ps", "-a", "--format", "{{.Names}}").split()
        return [name for name in found if name.startswith("steelyard-doctor")]

    def images() -> set[str]:
        made = container_engine.podman("images", "-a", "--format", "{{.Repository}}:{{.Tag}}")
        return {name for name in made.split() if "import" in name}

    before = images()
    (found,) = look(docker_host)
    assert found.state is State.WORKS, found
    assert found.area == "environment docker"
    assert "a program ran in a container, trust contained" in found.message
    assert re.search(rf"; podman [0-9.]+, rootful, at {docker_host}$", found.message)
    assert standing() == []
    assert images() <= before


@pytest.mark.integration
def test_the_command_shows_an_engine_once(docker_host: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "steelyard", "doctor", "--json"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    found = [one for one in json.loads(done.stdout)["findings"] if docker_host in one["message"]]
    assert [one["area"] for one in found] == ["environment docker"]


@pytest.mark.integration
def test_a_container_that_never_starts_is_given_up_in_time(
    docker_host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(components, "_OPEN_S", 0.001)
    (found,) = look(docker_host)
    assert found.state is State.BROKEN
    assert "no container has run a program within 0.001 s" in found.message


def test_an_engine_that_is_not_there_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = f"unix://{tmp_path}/none.sock"
    monkeypatch.setenv("DOCKER_HOST", gone)
    (found,) = look(gone)
    assert (found.area, found.state) == ("container engine", State.WARNING)
    assert "does not exist" in found.message


def test_a_remote_engine_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "tcp://192.0.2.1:2376")
    (found,) = look("tcp://192.0.2.1:2376")
    assert (found.area, found.state) == ("container engine", State.ABSENT)


@pytest.mark.integration
def test_without_the_package_the_engine_is_named_and_what_installs_it(
    docker_host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finding, "has_client", lambda: False)
    engine, package = look(docker_host)
    assert (engine.area, engine.state) == ("container engine", State.WORKS)
    assert (package.area, package.state) == ("environment docker", State.ABSENT)
    assert "aiodocker is not installed" in package.message
    assert package.remedy == install_command("docker")


def test_the_shell_of_this_machine_is_a_whole_root_with_what_it_needs(tmp_path: Path) -> None:
    write_shell(tmp_path / "one.tar")
    write_shell(tmp_path / "two.tar")
    assert (tmp_path / "one.tar").read_bytes() == (tmp_path / "two.tar").read_bytes()
    with tarfile.open(tmp_path / "one.tar") as archive:
        archive.extractall(tmp_path / "root", filter="tar")
        names = archive.getnames()
    assert {"bin/sh", "bin/sleep"} <= set(names)
    assert all(not name.startswith("/") and ".." not in name for name in names)
    assert os.access(tmp_path / "root/bin/sh", os.X_OK)
