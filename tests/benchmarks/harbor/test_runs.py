"""Task folders through the command line and over the executor's seam."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from steelyard.components.benchmark import Task
from steelyard.engine.spec import ComponentSpec, ExecutionSpec, RequestSpec
from steelyard.engine.spec_json import result_from_bytes, spec_to_bytes
from tests.benchmarks.harbor.task_folders import PASSES, REWARD, write_task
from tests.benchmarks.harbor.test_steps import FILES, toml

pytestmark = pytest.mark.integration


def run(folder: Path, *words: str, **variables: str) -> tuple[int, str, list[dict[str, Any]]]:
    """Run `oracle` on the tasks below a folder; status, words, the newest run's records."""
    command = [sys.executable, "-m", "steelyard", "run", "harbor", "oracle", "none"]
    more = ["--env", "host_process", "-P", "benchmark.path=tasks", "-P", "benchmark.images=none"]
    done = subprocess.run(
        [*command, *more, *words],
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=120,
    )
    files = sorted(folder.glob("results/*/*/attempts.jsonl"), key=lambda file: file.stat().st_mtime)
    lines = files[-1].read_text().split("\n") if files else []
    records = [json.loads(line.partition("\t")[0]) for line in lines if line]
    return done.returncode, done.stdout + done.stderr, records


SEPARATE = (
    'artifacts = ["done"]\n[environment]\nnetwork_mode = "no-network"\n'
    '[verifier]\nenvironment_mode = "separate"\n'
)


def test_changed_tests_score_saved_work_again_and_a_changed_solution_does_nothing(
    tmp_path: Path,
) -> None:
    task = write_task(tmp_path / "tasks", toml=SEPARATE)
    status, said, first = run(tmp_path)
    assert (status, first[0]["metrics"]["reward"]) == (0, 1.0), said
    (task / "solution/solve.sh").write_text("#!/bin/sh\nexit 1\n")
    _, said, same = run(tmp_path, "--reuse")
    assert "1 of 1 attempts taken" in said
    assert same[0]["metrics"]["reward"] == 1.0
    (task / "tests/test.sh").write_text(f"#!/bin/sh\ntest -f done && echo 0.5 >{REWARD}\n")
    _, said, again = run(tmp_path, "--reuse")
    assert "1 scored again" in said
    assert again[0]["metrics"]["reward"] == 0.5
    (task / "instruction.md").write_text("Make it differently.")
    _, said, anew = run(tmp_path, "--reuse")
    assert "1 run" in said
    assert anew[0]["metrics"] == {}  # the solution no longer solves: the tests leave no verdict


def test_what_is_wrong_with_tasks_is_said_before_anything_runs(tmp_path: Path) -> None:
    write_task(tmp_path / "tasks", toml="[agent]\ntimeout = 5\n[environment]\nnetwork = 1\n")
    status, said, records = run(tmp_path)
    assert (status, records) == (2, [])
    assert "tasks/one/task.toml:2:1 agent.timeout: unknown field 'timeout'" in said
    assert "tasks/one/task.toml:4:1 environment.network: unknown field 'network'" in said
    assert "did you mean timeout_sec?" in said
    assert not (tmp_path / "results").exists()


def test_a_secret_that_a_task_is_given_stands_in_no_file(tmp_path: Path) -> None:
    secret = f"canary-{secrets.token_hex(12)}"
    text = '[environment.env]\nTOKEN = "${MY_TOKEN}"\n[environment]\nnetwork_mode = "no-network"\n'
    write_task(
        tmp_path / "tasks",
        toml=text,
        solve='echo "$TOKEN" >done; echo "$TOKEN"',
        test=f'echo "$TOKEN"; cat done; {PASSES}',
    )
    launch = tmp_path / "launch.yaml"
    launch.write_text(
        "requests:\n  - name: one\n    harness: {id: oracle}\n    model: {id: none}\n"
        "    environment: {id: host_process}\n    benchmark:\n      id: harbor\n      path: tasks\n"
        "      images: none\n      variables: {MY_TOKEN: '${CANARY}'}\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "steelyard", "launch", str(launch)],
        cwd=tmp_path,
        env={**os.environ, "CANARY": secret},
        capture_output=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    files = [path for path in (tmp_path / "results").rglob("*") if path.is_file()]
    texts = [done.stdout, done.stderr, *(path.read_bytes() for path in files)]
    assert any(b'"passed":true' in text.replace(b" ", b"") for text in texts)
    assert not any(secret.encode() in text for text in texts)


@pytest.mark.parametrize("published", [False, True])
def test_a_worker_elsewhere_scores_the_same(tmp_path: Path, published: bool) -> None:
    task = write_task(tmp_path / "tasks", toml=toml(), test=None, files=FILES)
    params: dict[str, Any] = {"images": "none"}
    if published:
        params["source"] = str(task.parent)
    else:
        params["path"] = str(task)
    request = RequestSpec(
        "r",
        ComponentSpec("terminal_bench_2" if published else "harbor", params),
        ComponentSpec("oracle"),
        ComponentSpec("host_process"),
        None,
        data_dir=str(tmp_path / "data"),
    )
    token = f"test-{secrets.token_hex(8)}"
    done = subprocess.run(
        [sys.executable, "-m", "steelyard.engine.worker"],
        input=spec_to_bytes(ExecutionSpec(request, Task("one", {"step": None}), 1, 1, token, 1)),
        capture_output=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    result = result_from_bytes(done.stdout)
    assert result.issues == ()
    assert result.metrics == {"passed": False, "reward": 0.75}
    assert (tmp_path / "data/benchmarks/terminal_bench_2").exists() is published


def test_a_misspelt_task_and_a_missing_path_are_said_before_anything_is_created(
    tmp_path: Path,
) -> None:
    write_task(tmp_path / "tasks", "count-words")
    write_task(tmp_path / "tasks", "sort-lines")
    for option in ("--sample-ids", "--exclude-ids"):
        status, said, records = run(tmp_path, option, "count-wrods")
        assert (status, records) == (2, []), said
        assert f"{option}: there is no task 'count-wrods'" in said
        assert "did you mean count-words?" in said
    command = [sys.executable, "-m", "steelyard", "run", "harbor", "oracle", "none"]
    bare = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert bare.returncode == 2
    assert "add -P benchmark.path=…" in bare.stderr
    assert not (tmp_path / "results").exists()
