"""Every test of the SDK works in a folder of its own, with nobody's configuration."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from steelyard.testing.endpoint import MockEndpoint


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no-such-folder"))
    return tmp_path


@pytest.fixture(scope="session")
def model_url() -> Iterator[str]:
    with MockEndpoint("--text", "1") as endpoint:
        yield endpoint.url
