"""The lock: whole, with hashes, and silent about where packages come from."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator

import pytest

from tests.project.checkout import ROOT

LOCK = (ROOT / "requirements.lock").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def _name(requirement: str) -> str:
    found = re.match(r"[A-Za-z0-9][A-Za-z0-9._-]*", requirement)
    assert found, requirement
    return re.sub(r"[-_.]+", "-", found.group()).lower()


def _entries() -> list[str]:
    """One requirement with its hashes each."""
    return re.findall(r"^[A-Za-z0-9][^\n]*\n(?:[ \t]+[^\n]*\n)*", LOCK, flags=re.MULTILINE)


def _declared() -> Iterator[str]:
    project = PROJECT["project"]
    yield from project["dependencies"]
    for extra in project["optional-dependencies"].values():
        yield from extra
    for group in PROJECT["dependency-groups"].values():
        yield from group
    yield from PROJECT["build-system"]["requires"]


def test_the_lock_names_no_host_and_no_folder() -> None:
    assert not re.search(r"https?:|file:|index-url|find-links|@ |\.(org|com|net)\b", LOCK)


def test_every_entry_of_the_lock_is_pinned_and_carries_a_hash() -> None:
    entries = _entries()
    assert len(entries) > 30
    bad = [e.splitlines()[0] for e in entries if "==" not in e or "--hash=sha256:" not in e]
    assert bad == []


@pytest.mark.parametrize("requirement", sorted(_declared()))
def test_every_declared_dependency_is_in_the_lock(requirement: str) -> None:
    locked = {_name(entry) for entry in _entries()}
    assert _name(requirement) in locked, "run `make lock`"


@pytest.mark.parametrize("requirement", PROJECT["project"]["dependencies"])
def test_every_dependency_has_a_lower_bound_and_a_reason(requirement: str) -> None:
    assert ">=" in requirement
    rows = (ROOT / "docs/design/dependencies.md").read_text().splitlines()
    named = {
        _name(cell) for row in rows for cell in re.split(r"[|,( ]+", row)[1:8] if cell[:1].isalnum()
    }
    assert _name(requirement) in named
