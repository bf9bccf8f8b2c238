"""A project with a small pack."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bad_input.command import make_project


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project")
