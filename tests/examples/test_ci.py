"""The examples for CI are what their systems read, and every command in them is one of ours."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import click
import pytest
from ruamel.yaml import YAML

from steelyard.cli.main import cli
from tests.project.checkout import ROOT

FILES = sorted((ROOT / "examples" / "ci").glob("*.y*ml"))


def steps_of(file: Path) -> list[dict[str, Any]]:
    document = YAML(typ="safe").load(file.read_text())
    return [step for job in document["jobs"].values() for step in job["steps"]]


def commands_of(file: Path) -> list[list[str]]:
    """Every command of ours, as words."""
    found = []
    for step in steps_of(file):
        script = str(step.get("run", "")).replace("\\\n", " ")
        found += [
            shlex.split(line.strip())[1:]
            for line in script.splitlines()
            if line.strip().startswith("steelyard ")
        ]
    return found


def command_of(words: list[str]) -> tuple[click.Command, list[str]]:
    """Find the command that the words name, and the words that are left for it."""
    command: click.Command = cli
    while isinstance(command, click.Group):
        context = click.Context(command)
        found = command.get_command(context, words[0])
        assert found is not None, f"no command {words[0]!r}"
        command, words = found, words[1:]
    return command, words


def test_there_is_an_example() -> None:
    assert [file.name for file in FILES] == ["github-actions.yml"]
    assert len(commands_of(FILES[0])) >= 5


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_command_takes_what_it_is_given(file: Path) -> None:
    for words in commands_of(file):
        command, rest = command_of(words)
        command.make_context(command.name, list(rest), resilient_parsing=False)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_secret_comes_from_the_system_and_rights_are_named(file: Path) -> None:
    text = file.read_text()
    document = YAML(typ="safe").load(text)
    assert document["permissions"]["contents"] == "read"
    for job in document["jobs"].values():
        assert job["timeout-minutes"] <= 60
        for name, value in job["env"].items():
            assert re.fullmatch(r"\$\{\{ secrets\.\w+ \}\}", value), name
    # A pull request's title or branch in a script would be run by its shell.
    scripts = "\n".join(str(step.get("run", "")) for step in steps_of(file))
    named = set(re.findall(r"\$\{\{\s*([\w.]+)", scripts))
    assert named <= {"github.event.pull_request.number"}
