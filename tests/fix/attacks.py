"""Runners that defend nothing, and the forms of benchmark that the attacks are tried on."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from steelyard.components.values import Trust
from steelyard.environments import bubblewrap
from steelyard.fix.trial import Program, TrialResult
from tests.fix.world import FILES, PYTHON, World, try_out

HONEST = 1.0
CHEAT = 999.0

SERVE = """
import json, sys
sys.path.insert(0, "src")
import app
for line in sys.stdin:
    print(json.dumps(app.answer()), flush=True)
"""
SUBJECT_BENCHMARK = """
import json, os, socket, time
speaker = socket.socket(socket.AF_UNIX)
speaker.connect(os.environ["STEELYARD_SUBJECT"])
file = speaker.makefile("rw")
began = time.perf_counter()
file.write("answer\\n")
file.flush()
said = file.readline()
seconds = time.perf_counter() - began
answer = json.loads(said) if said else None
metrics = {
    "answer": float(answer) if isinstance(answer, (int, float)) else -1.0,
    "correct": 1.0 if answer == 42 else 0.0,
    "seconds": seconds,
}
with open(os.environ["STEELYARD_RESULT_PATH"], "w") as out:
    json.dump({"metrics": metrics}, out)
"""
SUBJECT_FILES = {"bench/talk.py": SUBJECT_BENCHMARK, "src/serve.py": SERVE}


def are_held() -> bool:
    """True where this machine lets programs be held in namespaces."""
    return bubblewrap.unavailable() is None


def expected_trust(*, has_subject: bool = False) -> Trust:
    """Give the trust a trial must say here."""
    if not are_held():
        return Trust.HOST
    return Trust.ISOLATED if has_subject else Trust.CONTAINED


def naive(
    folder: Path,
    edits: Mapping[str, str],
    *,
    files: Mapping[str, str] | None = None,
    argv: Sequence[str] = (PYTHON, "bench/benchmark.py"),
    before: Sequence[Sequence[str]] = (),
    env: Mapping[str, str] | None = None,
    keep: bool = False,
) -> float:
    """Score as an undefended runner does: plain processes in a checkout, then the file is read.

    Every trick must fool this one, or its test proves nothing.
    """
    if not keep:
        shutil.rmtree(folder, ignore_errors=True)
    for name, text in {**FILES, **(files or {}), **edits}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "home").mkdir(exist_ok=True)
    result = folder / "result.json"
    result.unlink(missing_ok=True)
    variables = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder / "home"),
        "STEELYARD_RESULT_PATH": str(result),
        "STEELYARD_SEED": "7",
        **(env or {}),
    }
    for words in (*before, argv):
        subprocess.run(
            list(words), cwd=folder, env=variables, capture_output=True, timeout=60, check=False
        )
    return float(json.loads(result.read_text())["metrics"]["answer"])


def with_subject(world: World, edits: Mapping[str, str | None], **more: Any) -> TrialResult:
    """Run a trial in the subject form; the world must have `SUBJECT_FILES`."""
    return try_out(
        world,
        edits,
        benchmark=Program((PYTHON, "bench/talk.py")),
        subject=Program((PYTHON, "src/serve.py")),
        metrics=("answer", "correct", "seconds"),
        **more,
    )


def running(marker: str) -> list[int]:
    """List processes whose command line holds a marker."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if marker.encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


FOUND = 999.0
"""What a candidate answers that reached what it should not."""


def reaches(code: str) -> dict[str, str]:
    """Give a candidate whose answer is 999 where `code` raises nothing and sets no `found = 0`."""
    body = textwrap.indent(textwrap.dedent(code), "        ")
    return {
        "src/app.py": f"def answer():\n    found = 1\n    try:\n{body}\n"
        "    except Exception as error:\n        import sys\n"
        "        print(repr(error), file=sys.stderr)\n        return 1\n"
        "    return 999 if found else 1\n"
    }
