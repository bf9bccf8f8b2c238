"""The launch document's example: only `daytona` is unknown, and the other request really runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from steelyard.components.known import REGISTRY
from steelyard.config.errors import BadInput
from steelyard.config.resolve import resolve_orchestration
from steelyard.testing.endpoint import MockEndpoint
from tests.containers.fixtures import Engine
from tests.harnesses.terminus2.package import DATA_DIR, HOME, installed

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "tests" / "config" / "files" / "terminal-evaluations.yaml"
FUNCTION = f"{Path(__file__).with_name('solving_model.py')}:answer"
IMAGE = "docker.io/library/debian:bookworm-slim"
TASKS = ("move-home", "word-count")
KEY = "sk-canary-1be0aa3352f7c64d"


def test_it_resolves_unchanged_but_for_daytona(tmp_path: Path) -> None:
    environ = {
        "MODEL_NAME": "m",
        "MODEL_BASE_URL": "https://models.example/v1",
        "MODEL_API_KEY": KEY,
    }
    with pytest.raises(BadInput) as caught:
        resolve_orchestration(EXAMPLE, environ=environ, cwd=tmp_path, components=REGISTRY)
    (problem,) = caught.value.problems
    assert (problem.where.line, "'daytona'" in problem.message) == (39, True)


@pytest.mark.integration
def test_its_docker_request_runs_with_terminus2_on_task_folders(
    tmp_path: Path, container_engine: Engine, debian_image: str
) -> None:
    container_engine.podman("tag", debian_image, IMAGE)
    data_dir = tmp_path / "data"
    # The package's interpreter is the machine's own, the task folders are brought in beforehand.
    installed()
    agents = data_dir / HOME.parent.relative_to(DATA_DIR)
    agents.parent.mkdir(parents=True)
    agents.symlink_to(HOME.parent)
    bring = ["-P", f"benchmark.source={ROOT / 'examples' / 'harbor'}", "--limit", "1"]
    steelyard(
        tmp_path,
        ["run", "terminal_bench_2_verified", "nop", "none", "--env", "docker", *bring],
        DOCKER_HOST=container_engine.host,
    )
    first, _, second = EXAMPLE.read_text().partition("  - name: tb21\n")
    assert second
    (tmp_path / "evaluations.yaml").write_text(first)
    with MockEndpoint("--function", FUNCTION, "--model", "m", "--require-key", KEY) as endpoint:
        said = steelyard(
            tmp_path,
            ["launch", "evaluations.yaml", "--sample-ids", ",".join(TASKS), "--run-id", "seed"],
            DOCKER_HOST=container_engine.host,
            MODEL_NAME="m",
            MODEL_BASE_URL=endpoint.url,
            MODEL_API_KEY=KEY,
        )
    found = records(tmp_path / "results" / "tb2vrf" / "seed" / "attempts.jsonl")
    assert sorted((one["task_id"], one["attempt"]) for one in found) == [
        (task, attempt) for task in TASKS for attempt in (1, 2, 3)
    ], said
    for one in found:
        assert one["outcome"] == "scored", (one["issues"], said)
        assert one["metrics"]["passed"] is True, one
        assert one["environment"]["provider"] == "docker"
        assert one["usage"]["requests"] >= 3
    whole = b"".join(path.read_bytes() for path in tmp_path.rglob("results/**/*") if path.is_file())
    assert KEY.encode() not in whole


def steelyard(folder: Path, words: list[str], **variables: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "steelyard", *words, "--data-dir", "data"],
        cwd=folder, env={**os.environ, **variables}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    return done.stdout + done.stderr


def records(file: Path) -> list[dict[str, Any]]:
    lines = file.read_text().split("\n")
    return [json.loads(line.partition("\t")[0]) for line in lines if line]
