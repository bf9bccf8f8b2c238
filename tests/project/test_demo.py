"""The demo runs on a machine that reaches nothing: its own loopback is all it has."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from tests.project.checkout import ROOT, run

pytestmark = pytest.mark.integration

# Brings up `lo` of an empty network namespace, then becomes the command.
WITH_LOOPBACK = """
import fcntl, os, socket, struct, sys
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
with socket.socket() as any_socket:
    fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))
os.execvp(sys.argv[1], sys.argv[1:])
"""


def test_the_demo_needs_no_network_and_shows_ceiling_and_floor(tmp_path: Path) -> None:
    example = (ROOT / "examples/orchestrations/humaneval.yaml").read_text()
    assert example.count("\ndefaults:") == 1
    small = tmp_path / "small.yaml"
    small.write_text(example.replace("\ndefaults:", "\ndefaults:\n  execution: {limit: 6}\n", 1))
    results = tmp_path / "results"
    alone = ["unshare", "--net", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    demo = [ROOT / "scripts/demo.sh", results, small, "--limit", "6"]

    answer = run([*alone, sys.executable, "-c", WITH_LOOPBACK, *demo], cwd=tmp_path)

    assert answer.returncode == 0, answer.stdout
    outcomes = {}
    for records in results.rglob("attempts.jsonl"):
        name = str(records.relative_to(results))
        lines = records.read_bytes().split(b"\n")[:-1]
        outcomes[name] = [json.loads(line.rpartition(b"\t")[0]) for line in lines]
    assert len(outcomes) == 4, sorted(outcomes)
    assert {r["outcome"] for some in outcomes.values() for r in some} <= {
        "scored",
        "skipped_passed",
    }
    [ceiling] = [some for name, some in outcomes.items() if "oracle" in name]
    [floor] = [some for name, some in outcomes.items() if "nop" in name]
    assert [next(iter(r["metrics"].values())) for r in ceiling] == [1] * 6
    assert [next(iter(r["metrics"].values())) for r in floor] == [0] * 6
    assert "summary.md" not in answer.stdout  # folders are named, one a run
    assert str(results) in answer.stdout
