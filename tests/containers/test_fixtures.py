"""The engine of a test run and its images are there, and go."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.containers.fixtures import Engine

REPOSITORY = Path(__file__).parents[2]

INNER = """
def test_inner(container_engine, busybox_image):
    words = ["run", "-d", busybox_image, "sleep", "600"]
    container_engine.podman(*words)
    print("FOLDER", container_engine.folder)
"""


@pytest.mark.integration
def test_both_images_run(container_engine: Engine, busybox_image: str, debian_image: str) -> None:
    run = ["run", "--rm", "--network=none"]
    assert container_engine.podman(*run, busybox_image, "echo", "small") == "small\n"
    words = [
        "bash",
        "-c",
        "python3 -c 'import json, ssl; print(1)'; git --version; tmux -V; id agent",
    ]
    said = container_engine.podman(*run, debian_image, *words)
    assert said.startswith("1\ngit version"), said
    assert "uid=1000(agent)" in said


@pytest.mark.integration
def test_the_engine_of_a_test_run_goes_with_it(tmp_path: Path) -> None:
    test = REPOSITORY / "tests" / "containers" / f"test_inner_{tmp_path.name}.py"
    test.write_text(INNER)
    alone = {name: value for name, value in os.environ.items() if "XDIST" not in name}
    try:
        ran = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", str(test)],
            cwd=REPOSITORY, env=alone, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
    finally:
        test.unlink()
    assert ran.returncode == 0, ran.stdout
    folder = Path(ran.stdout.split("FOLDER ", 1)[1].split()[0])
    deadline = time.monotonic() + 60
    while folder.exists():
        assert time.monotonic() < deadline, f"{folder} stays"
        time.sleep(0.1)
    assert str(folder) not in Path("/proc/mounts").read_text()
