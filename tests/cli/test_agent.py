"""`steelyard agent`, and agents that a run installs for itself where it may."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from steelyard.testing.endpoint import MockEndpoint

Run = Callable[..., Any]

AGENTS = Path(__file__).parents[1] / "harnesses" / "cli_agent"
HARNESS = f"{AGENTS / 'stand_ins.py'}:StandIn"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[MockEndpoint]:
    with MockEndpoint("--text", "done", "--model", "m") as served:
        yield served


@pytest.fixture
def words(project: Path, endpoint: MockEndpoint) -> list[str]:
    """Of `run`: a job for the stand-in, in the sandbox, its data below the project."""
    return [
        "run", str(AGENTS / "pack"), HARNESS, "m", "--env", "sandbox",
        "--model-base-url", endpoint.url, "--harness-params", '{"args": ["work"]}',
        "--data-dir", "data", "--progress", "none",
    ]  # fmt: skip


def outcomes(project: Path) -> list[str]:
    (records,) = (project / "results").glob("**/attempts.jsonl")
    lines = [line.split("\t")[0] for line in records.read_text().splitlines()]
    return [json.loads(line)["outcome"] for line in lines]


def test_a_program_is_installed_listed_and_removed(steelyard: Run, project: Path) -> None:
    assert "no agent's program" in steelyard("agent", "list", "--data-dir", "data").out
    ran = steelyard("agent", "install", HARNESS, "--data-dir", "data")
    assert (ran.status, "installed stand_in 1.0.0" in ran.out) == (0, True), ran.err
    assert "already" in steelyard("agent", "install", HARNESS, "--data-dir", "data").out
    (row,) = steelyard("agent", "list", "--data-dir", "data", "--json").json["agents"]
    assert (row["id"], row["version"]) == ("stand_in", "1.0.0")
    assert row["bytes"] > 0
    assert Path(row["folder"]).is_dir()
    assert "stand_in" in steelyard("agent", "list", "--data-dir", "data").out
    gone = steelyard("agent", "remove", "stand_in", "--data-dir", "data", "--json").json
    assert [one["folder"] for one in gone["removed"]] == [row["folder"]]
    assert not Path(row["folder"]).exists()
    again = steelyard("agent", "remove", "stand_in", "--data-dir", "data")
    assert again.status == 2
    assert "is not installed below" in again.err


def test_the_settings_say_where_programs_lie(steelyard: Run, project: Path) -> None:
    (project / "steelyard.yaml").write_text("runtime: {data_dir: mine}\n")
    steelyard("agent", "install", HARNESS)
    assert list((project / "mine" / "agents" / "stand_in").iterdir())
    assert len(steelyard("agent", "list", "--json").json["agents"]) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["install", "chat"], "has no program to install"),
        (["install", "codx"], "did you mean codex?"),
        (["install", "codex", "--version", "latest"], "--version: 'latest' is no exact version"),
        (["remove", "codex", "--version", "0.1.0"], "codex 0.1.0 is not installed"),
    ],
)
def test_what_cannot_be_meant_is_said(steelyard: Run, arguments: list[str], said: str) -> None:
    ran = steelyard("agent", *arguments, "--data-dir", "data")
    assert (ran.status, said in ran.err) == (2, True), ran.err


@pytest.mark.integration
def test_a_run_without_the_program_says_the_command_and_starts_nothing(
    steelyard: Run, project: Path, words: list[str]
) -> None:
    planned = steelyard(*words, "--dry-run")
    assert planned.status == 0
    ran = steelyard(*words)
    command = "steelyard agent install stand_in --data-dir"
    for said in (planned, ran):
        assert "its program, version 1.0.0, is not installed" in said.err
        assert command in said.err
    assert ran.status == 2
    assert not (project / "results").exists()


@pytest.mark.integration
def test_a_run_installs_the_program_where_it_may_and_then_finds_it(
    steelyard: Run, project: Path, words: list[str]
) -> None:
    ran = steelyard(*words, "--auto-install-dependencies", "--json")
    assert ran.status == 0, ran.err
    assert list((project / "data" / "agents" / "stand_in").glob("1.0.0-*"))
    assert outcomes(project) == ["scored"]
    assert steelyard(*words, "--reuse").status == 0


@pytest.mark.integration
def test_the_program_that_is_lacking_is_not_installed_where_anything_else_lacks(
    steelyard: Run, project: Path, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from steelyard.environments import bubblewrap

    monkeypatch.setattr(bubblewrap, "unavailable", lambda: "bubblewrap is not installed")
    ran = steelyard(*words, "--auto-install-dependencies")
    assert ran.status == 2
    assert "bubblewrap is not installed" in ran.err
    assert not (project / "data").exists()


@pytest.mark.integration
def test_a_package_adds_an_agent_by_an_entry_and_a_class(
    project: Path, endpoint: MockEndpoint
) -> None:
    """As an installed package does: metadata with an entry point, and a module."""
    site = project / "site"
    shutil.copytree(AGENTS / "stand_in", site / "stand_in")
    shutil.copy(AGENTS / "stand_ins.py", site / "my_agents.py")
    info = site / "my_agents-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-agents\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[steelyard.harnesses]\nstand_in = my_agents:StandIn\n")

    def steelyard(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "steelyard", *arguments], cwd=project, check=False,
            env={**os.environ, "PYTHONPATH": str(site)}, capture_output=True, text=True,
            timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "my-agents" in steelyard("list", "harnesses")
    steelyard("agent", "install", "stand_in", "--data-dir", "data")
    steelyard(
        "run", str(AGENTS / "pack"), "stand_in", "m", "--env", "sandbox", "--model-base-url",
        endpoint.url, "--harness-params", '{"args": ["work"]}', "--data-dir", "data",
    )  # fmt: skip
    assert outcomes(project) == ["scored"]
