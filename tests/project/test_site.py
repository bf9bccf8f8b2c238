"""The documentation site is built whole, from the schemas and commands, and names no host."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from steelyard.benchmarks.pack.schema_validators import VALIDATOR_MODELS
from steelyard.cli.main import COMMANDS
from steelyard.cli.schema import SCHEMAS
from tests.project.checkout import ROOT, run

_LOADED = re.compile(
    r"<(?:script|img|iframe|source|video)[^>]+src=\"([^\"]+)\""
    r"|<link[^>]+rel=\"?(?:stylesheet|preload|icon|preconnect)[^>]+href=\"([^\"]+)\""
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` builds it; any broken link or page outside the menu fails."""
    folder = tmp_path_factory.mktemp("site")
    done = run([sys.executable, "-m", "mkdocs", "build", "--strict", "-d", folder], cwd=ROOT)
    assert done.returncode == 0, done.stdout
    return folder


@pytest.mark.integration
def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        for found in _LOADED.findall(page.read_text()):
            target = found[0] or found[1]
            assert not re.match(r"(?:[a-z]+:)?//", target), f"{page.name} loads {target}"


@pytest.mark.integration
def test_every_command_setting_and_validator_has_its_place_in_the_reference(site: Path) -> None:
    commands = (site / "reference/commands.html").read_text()
    for name in COMMANDS:
        assert f"<code>steelyard {name}</code>" in commands, name
    packs = (site / "reference/packs.html").read_text()
    for kind in VALIDATOR_MODELS:
        assert f"Validator <code>{kind}</code>" in packs, kind
    settings = (site / "reference/settings.html").read_text()
    for key in ("budget.attempt_usd", "task_concurrency", "requests"):
        assert key in settings
    for name in SCHEMAS:
        assert (site / f"reference/{name}.schema.json").is_file()


@pytest.mark.integration
def test_the_files_at_the_top_are_pages_with_links_that_stay_inside(site: Path) -> None:
    read_me = (site / "readme.html").read_text()
    assert 'href="results.html"' in read_me
    assert 'href="changelog.html"' in read_me
    assert 'href="threat-model.html"' in (site / "security.html").read_text()
