"""Words of models, packs and endpoints cannot take over a terminal, a log or a page."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from steelyard.config import printable
from tests.security.leaking import HOSTILE
from tests.security.test_canary import PLUGINS, ROOT

UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def launched(
    folder: Path, mode: str, *arguments: str, stderr: int = subprocess.PIPE, **env: str
) -> Any:
    request = {
        "name": "hostile",
        "benchmark": {"id": f"{PLUGINS}:Tasks", "hostile": True, "tasks": 3},
        "harness": {"id": f"{PLUGINS}:Leaky", "mode": mode, "hostile": True},
        "environment": {"id": "host_process"},
        "model": {"id": "m", "base_url": "http://127.0.0.1:9/v1", "api_key": None},
    }
    document = {"requests": [request], "task_concurrency": 1, "runtime": {"results_dir": "results"}}
    (folder / "o.json").write_text(json.dumps(document))
    return subprocess.run(
        [sys.executable, "-m", "steelyard", "launch", "o.json", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), **env},
        stdout=subprocess.PIPE,
        stderr=stderr,
        timeout=60,
        check=False,
    )


@pytest.mark.integration
@pytest.mark.parametrize("mode", ["raise", "fault", "log"])
def test_hostile_words_reach_no_terminal_log_or_summary(tmp_path: Path, mode: str) -> None:
    ended = launched(tmp_path, mode, "--progress", "plain")
    (run,) = tmp_path.glob("results/hostile/*")
    summary = subprocess.run(
        [sys.executable, "-m", "steelyard", "summary", str(run)], capture_output=True, check=True
    )
    texts = {
        "stdout": ended.stdout,
        "stderr": ended.stderr,
        "summary": summary.stdout,
        "run.log": (run / "run.log").read_bytes(),
        "summary.md": (run / "summary.md").read_bytes(),
    }
    for name, data in texts.items():
        assert not UNSEEN.findall(data.decode()), (name, data)
    assert b"evil" in texts["run.log"] + texts["stderr"]
    assert not re.search(rb"^20..-..-..T\S+ ERROR steelyard: forged", texts["run.log"], re.M)
    page = texts["summary.md"].decode()
    assert "<script" not in page.replace("\\<script", "")
    assert "\n# owned" not in page


@pytest.mark.integration
def test_json_output_holds_hostile_words_as_escapes(tmp_path: Path) -> None:
    ended = launched(tmp_path, "fault", "--json")
    assert not UNSEEN.findall(ended.stdout.decode())
    (request,) = json.loads(ended.stdout)["requests"]
    assert request["reason"] == HOSTILE, "the escapes are JSON's own: nothing is lost"


@pytest.mark.integration
@pytest.mark.parametrize("term", ["xterm", "dumb"])
def test_the_live_view_draws_itself_and_nobody_else(tmp_path: Path, term: str) -> None:
    master, slave = pty.openpty()
    try:
        launched(tmp_path, "fault", "--progress", "auto", stderr=slave, TERM=term)
        os.set_blocking(master, False)
        drawn = os.read(master, 1 << 20).decode()
    finally:
        os.close(master)
        os.close(slave)
    assert "evil" in drawn
    assert "\x1b]0;" not in drawn
    assert "\x1b[2J" not in drawn
    assert "\x9b" not in drawn
    assert ("\x1b" in drawn) is (term == "xterm")


def test_what_is_shown_keeps_words_and_escapes_the_rest() -> None:
    assert printable.one_line("naïve 日本\u3000語 👩\u200d🔬") == "naïve 日本\u3000語 👩\u200d🔬"
    assert printable.one_line("a\nb\x1b") == "a\\nb\\x1b"
    assert printable.lines("a\nb\tc\r") == "a\nb\tc\\r"
    assert printable.spaced("a\u202e\x00b") == "a b"
    hostile = json.dumps({"x": HOSTILE + "\U000e0041"}, ensure_ascii=False)
    assert json.loads(printable.json_lines(hostile)) == json.loads(hostile)
