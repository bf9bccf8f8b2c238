"""What the documents say is there, is there."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.project.checkout import ROOT, run, tracked_texts

README = (ROOT / "README.md").read_text()
IN_PACKS = ROOT / "catalog"  # what agents work on holds broken links on purpose
DOCUMENTS = sorted(
    p
    for p in tracked_texts()
    if p.suffix == ".md" and not (IN_PACKS in p.parents and "cases" in p.parts)
)
STEELYARD = [sys.executable, "-m", "steelyard"]


def _anchors(text: str) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).strip().replace(" ", "-") for h in headings}


def _prose(text: str) -> str:
    return re.sub(r"```.*?```", "", text, flags=re.DOTALL)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_link_of_a_document_leads_somewhere(document: Path) -> None:
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", _prose(document.read_text())):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        path = (document.parent / name).resolve() if name else document
        if not path.exists() or (anchor and anchor not in _anchors(path.read_text())):
            broken.append(target)
    assert broken == []


def test_the_changelog_has_entries_for_what_is_not_released_yet() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text()
    unreleased = changelog.partition("## Unreleased")[2].partition("\n## ")[0]
    assert unreleased.count("\n- ") >= 1


def test_every_make_target_of_the_documents_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {
        name
        for document in (README, (ROOT / "CONTRIBUTING.md").read_text())
        for name in re.findall(r"(?:^|`)make ([a-z]+)", document, re.MULTILINE)
    }
    assert {"demo", "test"} <= named <= targets


def test_the_first_screen_of_the_readme_shows_both_commands() -> None:
    first_screen = "\n".join(README.splitlines()[:30])
    assert "make demo" in first_screen
    assert "make test" in first_screen


def _commands() -> list[str]:
    found = re.findall(r"(?:^|`)steelyard ([a-z][a-z-]*(?: (?:init|check)\b)?)", README, re.M)
    return sorted(set(found))


@pytest.mark.integration
@pytest.mark.parametrize("command", _commands())
def test_every_command_of_the_readme_exists(command: str) -> None:
    answer = run([*STEELYARD, *command.split(), "--help"])
    assert answer.returncode == 0, answer.stdout


@pytest.mark.integration
@pytest.mark.parametrize("command", ["run", "launch"])
def test_every_option_of_the_readme_exists(command: str) -> None:
    shown = run([*STEELYARD, command, "--help"]).stdout
    lines = [line for line in README.splitlines() if re.search(rf"steelyard {command} ", line)]
    options = {option for line in lines for option in re.findall(r"--[a-z][a-z-]*", line)}
    assert options
    assert {option for option in options if option not in shown} == set()


@pytest.mark.integration
def test_the_pack_of_the_readme_passes_its_own_check(tmp_path: Path) -> None:
    block = re.search(r"```yaml\n(# my-pack/pack\.yaml\n.*?)```", README, re.DOTALL)
    assert block
    folder = tmp_path / "my-pack"
    folder.mkdir()
    (folder / "pack.yaml").write_text(block.group(1))
    answer = run([*STEELYARD, "pack", "check", "./my-pack"], cwd=tmp_path)
    assert answer.returncode == 0, answer.stdout
