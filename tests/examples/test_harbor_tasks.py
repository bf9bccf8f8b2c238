"""The example tasks in Harbor's format: `oracle` passes and `nop` fails, on every provider."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.containers.fixtures import Engine

pytestmark = pytest.mark.integration

TASKS = Path(__file__).parents[2] / "examples" / "harbor"
NAMES = sorted(path.parent.name for path in TASKS.glob("*/task.toml"))
IMAGE_ONLY = {"move-home"}
"""Their Dockerfile does what only a build can."""
IMAGE = "docker.io/library/debian:bookworm-slim"
"""What `FROM debian:bookworm-slim` means to an engine."""


@pytest.fixture(scope="session")
def slim_image(container_engine: Engine, debian_image: str) -> Engine:
    """An engine on which `debian:bookworm-slim` is there, without a registry.

    The name stays: other workers share the engine, which ends with the test run.
    """
    container_engine.podman("tag", debian_image, IMAGE)
    return container_engine


def records(folder: Path, harness: str, *words: str, **variables: str) -> dict[str, Any]:
    """Run a harness on the examples through the command line; the records by task."""
    command = [sys.executable, "-m", "steelyard", "run", "harbor", harness, "none"]
    done = subprocess.run(
        [*command, "-P", f"benchmark.path={TASKS}", "--results-dir", str(folder), *words],
        env={**os.environ, **variables},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=500,
    )
    (file,) = folder.glob("*/*/attempts.jsonl")
    found = [json.loads(line.partition("\t")[0]) for line in file.read_text().split("\n") if line]
    assert done.returncode in (0, 1), done.stderr
    return {record["task_id"]: record for record in found}


def test_there_are_at_least_eight_and_most_need_no_image() -> None:
    assert len(NAMES) >= 8
    assert set(NAMES) >= IMAGE_ONLY
    assert len(set(NAMES) - IMAGE_ONLY) >= 8


@pytest.mark.parametrize(("harness", "passes"), [("oracle", True), ("nop", False)])
def test_in_the_sandbox_the_solutions_pass_and_doing_nothing_fails(
    harness: str, passes: bool, tmp_path: Path
) -> None:
    found = records(tmp_path, harness, "--env", "sandbox", "-P", "benchmark.images=none")
    assert set(found) == set(NAMES)
    for name in set(NAMES) - IMAGE_ONLY:
        assert found[name]["outcome"] == "scored", found[name]["issues"]
        assert found[name]["metrics"]["passed"] is passes, found[name]
    for name in IMAGE_ONLY:
        (issue,) = found[name]["issues"]
        assert issue["code"] == "task_invalid"
        assert "its Dockerfile has RUN" in issue["message"]


@pytest.mark.parametrize(("harness", "passes"), [("oracle", True), ("nop", False)])
def test_in_containers_the_solutions_pass_and_doing_nothing_fails(
    harness: str, passes: bool, tmp_path: Path, slim_image: Engine
) -> None:
    found = records(tmp_path, harness, "--env", "docker", DOCKER_HOST=slim_image.host)
    assert set(found) == set(NAMES)
    for name in NAMES:
        assert found[name]["outcome"] == "scored", (name, found[name]["issues"])
        assert found[name]["metrics"]["passed"] is passes, (name, found[name])
        assert found[name]["environment"]["provider"] == "docker"
