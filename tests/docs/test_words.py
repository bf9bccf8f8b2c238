"""Every option, setting, file format and word that the documents name is one that exists."""

from __future__ import annotations

import importlib
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from steelyard.benchmarks.pack.schema import PackFile
from steelyard.cli.main import COMMANDS, cli
from steelyard.components.issues import SEVERITY, Outcome
from steelyard.components.known import REGISTRY
from steelyard.config.errors import Problem
from steelyard.config.reference import settings_of
from steelyard.config.resolve import resolve_config, resolve_orchestration
from steelyard.config.schema.orchestration import Orchestration
from steelyard.config.schema.written import ConfigFile, OrchestrationFile
from steelyard.config.source import read_file
from steelyard.config.validation import conform
from steelyard.evalset.expansion import expand
from steelyard.evalset.manifest import read_manifest
from steelyard.results.records import AttemptRecord
from steelyard.scanners.rule_files.loading import read_rules
from tests.docs.blocks import DOCUMENTS, Block, all_blocks, write
from tests.project.checkout import ROOT

RESULTS = (ROOT / "docs/results.md").read_text()
SHELL = ("sh", "console", "text")
OF_OTHERS = {"--user"}
"""Options of other programs in running text."""


def _command(words: list[str]) -> tuple[click.Command, list[str]]:
    """Find the command that the words begin with, and what is left of them."""
    row = COMMANDS[words[0]]
    module, _, attribute = row.target.partition(":")
    command = getattr(importlib.import_module(module), attribute)
    rest = words[1:]
    if isinstance(command, click.Group) and rest:
        member = command.get_command(click.Context(command), rest[0])
        if member is not None:
            return member, rest[1:]
    return command, rest


def _options(command: click.Command) -> set[str]:
    return {
        name
        for parameter in [*command.params, *cli.params]
        for name in (*parameter.opts, *parameter.secondary_opts)
    } | {"--help", "-h"}


def _all_options() -> set[str]:
    found: set[str] = set()
    for name in COMMANDS:
        command, _ = _command([name])
        members = [command]
        if isinstance(command, click.Group):
            names = command.list_commands(click.Context(command))
            members = [_command([name, one])[0] for one in names]
        found |= {option for member in members for option in _options(member)}
    return found


def _command_lines(text: str) -> Iterator[list[str]]:
    """Every use of the product in a shell block, as words."""
    # `mock-model … -- steelyard …` is two uses.
    for line in re.split(r"\n| -- ", text.replace("\\\n", " ")):
        found = re.match(r"\s*(?:\$ )?steelyard (.*)", line)
        if found:
            yield shlex.split(re.sub(r"    \(.*\)$", "", found[1]), comments=True)


@pytest.mark.parametrize("block", all_blocks(*SHELL), ids=lambda block: block.place)
def test_every_command_line_names_commands_and_options_that_exist(block: Block) -> None:
    for words in _command_lines(block.text):
        assert words[0] in COMMANDS or words[0].startswith("-"), f"{block.place}: {words}"
        if words[0] in COMMANDS:
            command, rest = _command(words)
            given = {word.partition("=")[0] for word in rest if re.match(r"--?[a-zA-Z]", word)}
            assert given <= _options(command), f"{block.place}: {words}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_option_in_running_text_exists(document: Path) -> None:
    known = _all_options()
    text = re.sub(r"^```.*?^```$", "", document.read_text(), flags=re.M | re.S)
    named = {
        option
        for code in re.findall(r"`([^`\n]+)`", text)
        if not code.startswith(("pip", "uv", "apt", "git", "bwrap"))
        for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", code)
    }
    assert named - known - OF_OTHERS == set()


SECTIONS = ("execution", "runtime", "model", "output", "budget", "scoring", "harness", "benchmark")


def _setting_names() -> set[str]:
    whole = {
        setting.key
        for model in (ConfigFile, OrchestrationFile, Orchestration, PackFile)
        for setting in settings_of(model)
    }
    names = set()
    for key in whole:
        steps = re.sub(r"\[[^\]]*\]", "", key).split(".")
        for start in range(len(steps)):
            for end in range(start + 1, len(steps) + 1):
                names.add(".".join(steps[start:end]))
    return names


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_setting_in_running_text_exists(document: Path) -> None:
    known = _setting_names()
    assert "execution.attempts.k" in known
    named = {
        code
        for code in re.findall(r"`([a-z_]+(?:\.[a-z_]+)+)`", document.read_text())
        if code.split(".")[0] in SECTIONS and code not in ("run.json",)
    }
    assert named - known == set()


VARIABLES = {"MODEL_URL": "http://127.0.0.1:1/v1", "MODEL_KEY": "a-key-of-the-documents"}


@pytest.mark.parametrize("block", all_blocks("yaml"), ids=lambda block: block.place)
def test_every_yaml_example_is_of_a_published_format(block: Block, tmp_path: Path) -> None:
    for other in all_blocks("yaml"):  # files that orchestrations name must be there
        if other.file_name is not None:
            write(tmp_path, other)
    path = tmp_path / "example.yaml"
    path.write_text(block.text)
    if "schema: pack/v1" in block.text:
        problems: list[Problem] = []
        conform(read_file(path, layer="example", shown=block.place), PackFile, problems)
        assert problems == []
    elif "schema: scan-rules/1" in block.text:
        assert read_rules(path, shown=block.place).file.rules
    elif "schema: evalset/v1" in block.text:
        assert expand(read_manifest(path, shown=block.place)).cells
    elif re.search(r"^requests:", block.text, re.M):
        found = resolve_orchestration(path, environ=VARIABLES, cwd=tmp_path, components=REGISTRY)
        assert found.orchestration.requests
    else:
        resolve_config(config_files=[path], environ=VARIABLES, cwd=tmp_path, components=REGISTRY)


@pytest.mark.parametrize("block", all_blocks("jsonl"), ids=lambda block: block.place)
def test_every_example_of_json_lines_is_lines_of_objects(block: Block) -> None:
    for line in block.text.strip().split("\n"):
        assert isinstance(json.loads(line), dict), f"{block.place}: {line}"


def _rows(heading: str) -> list[list[str]]:
    section = RESULTS.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.split("\n") if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_table_of_issues_has_every_code_with_its_severity() -> None:
    shown = {row[0].strip("`"): row[1] for row in _rows("Issues")}
    assert shown == {code.value: severity.value for code, severity in SEVERITY.items()}


def test_the_table_of_outcomes_has_every_outcome() -> None:
    assert sorted(row[0].strip("`") for row in _rows("Outcomes")) == sorted(Outcome)


def test_the_table_of_fields_has_every_field_of_a_record() -> None:
    shown = {
        name for row in _rows("A record, field by field") for name in re.findall(r"`(\w+)`", row[0])
    }
    fields = set(AttemptRecord.__slots__)
    assert shown == fields | {"schema"}


def test_every_command_is_in_the_table_of_the_readme() -> None:
    table = (ROOT / "README.md").read_text().partition("\n## Commands\n")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `steelyard ([a-z-]+)", table, re.M)) == set(COMMANDS)
