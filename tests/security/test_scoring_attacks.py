"""What an agent leaves behind neither makes it pass, nor reaches the host, nor spoils the run."""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path
from typing import Any

import pytest

from steelyard.components.issues import Outcome
from steelyard.components.values import Trust
from steelyard.environments.process_trees import live_pids
from steelyard.results.records import AttemptRecord
from tests.benchmarks.scoring import write_pack
from tests.engine.launching import records, run_all

pytestmark = pytest.mark.integration
VANDAL = f"{Path(__file__).with_name('vandal.py')}:Vandal"
CHECK = "import pathlib, sys\nsys.exit(pathlib.Path('answer.txt').read_text() != '42')\n"


def attacked(tmp_path: Path, script: str, *, answer: str = "done", **more: Any) -> AttemptRecord:
    """Let an agent run `script`, then score by a hidden check of `answer.txt`."""
    pack = write_pack(
        tmp_path / "pack",
        "[{type: command, run: [python3, -I, tests/check.py], files: hidden, timeout_seconds: 20}]",
        more='prompt: "{{ q }}"\nworkspace: workspace',
    )
    for path, text in {
        "hidden/tests/check.py": CHECK,
        "hidden/canary.txt": "hidden-canary",
        "workspace/answer.txt": "0",
    }.items():
        (pack / path).parent.mkdir(parents=True, exist_ok=True)
        (pack / path).write_text(text)
    one = {
        "name": "attack",
        "benchmark": {"id": str(pack)},
        "harness": {"id": VANDAL, "script": script, "answer": answer},
        "model": {"id": "none"},
        "environment": {"id": "sandbox", **more},
    }
    (record,) = records(run_all(tmp_path, one))
    return record


def test_an_honest_agent_passes_and_its_trust_is_contained(tmp_path: Path) -> None:
    record = attacked(tmp_path, "printf 42 > answer.txt")
    assert record.outcome is Outcome.SCORED, record.issues
    assert record.metrics["score"] == 1
    assert record.trust is Trust.CONTAINED, "the check shares its process with the work"


SQUATTERS = {
    "a file of its own": "mkdir tests; echo > tests/check.py",
    "a folder in the file's place": "mkdir -p tests/check.py/deep; touch tests/check.py/deep/x",
    "a file in the folder's place": "echo > tests",
    "a link out of the file's place": "mkdir tests; ln -s /etc/passwd tests/check.py",
    "a link out of the folder's place": "ln -s /usr tests",
    "a link to a folder of its own": "mkdir mine; ln -s mine tests",
    "a dangling link": "ln -s nowhere tests",
    "a pipe": "mkdir tests; mkfifo tests/check.py",
    "a folder it may not enter": "mkdir tests; chmod 0 tests",
    "a folder it may not write": "mkdir tests; echo > tests/check.py; chmod 555 tests",
    "a module that the check imports": (
        "printf 'import os; os._exit(0)' > pathlib.py; cp pathlib.py sitecustomize.py"
    ),
    "a startup file": "mkdir -p .config; echo 'exit 0' > .bashrc; cp .bashrc .profile",
    "an answer that is a link to the host": "ln -sf /proc/self/root/etc/hostname answer.txt",
    "an answer that is a device": "rm answer.txt; mkfifo answer.txt",
    "an absurd tree": "i=0; while [ $i -lt 60 ]; do mkdir d; cd d; i=$((i+1)); done; touch x",
    "a tree too deep to copy": "for i in $(seq 150); do mkdir d; cd d; done; touch x",
    "a huge hole": "truncate -s 900M hole; rm answer.txt",
    "names that are none": (
        "touch \"$(printf 'a\\nb')\" \"$(printf '\\033[2J')\" \"$(printf '\\377')\" -- -rf"
    ),
}


@pytest.mark.parametrize("script", SQUATTERS.values(), ids=SQUATTERS.keys())
def test_what_stands_in_the_place_of_hidden_files_gives_way(tmp_path: Path, script: str) -> None:
    record = attacked(tmp_path, script)
    said = [f"{issue.code}: {issue.message}" for issue in record.issues]
    assert record.outcome is Outcome.SCORED, said
    assert record.metrics["score"] == 0
    assert (tmp_path / "pack/hidden/tests/check.py").read_text() == CHECK


CHEAT = """
import os, sys
frame = sys._getframe()
while "word_fd" not in frame.f_locals:
    frame = frame.f_back
word = os.read(frame.f_locals["word_fd"], 256)
os.write(frame.f_locals["out_fd"], b"\\n" + word + b"\\n")
os._exit(0)
"""


def test_a_program_that_takes_over_its_scorers_process_is_never_called_isolated(
    tmp_path: Path,
) -> None:
    # As HumanEval is published, code and tests share a process: a determined program can lie
    # about itself. What cannot happen is that the record says nobody could have.
    one = {
        "name": "cheat",
        "benchmark": {"id": "humaneval"},
        "harness": {"id": VANDAL, "script": "true", "answer": f"```python\n{CHEAT}```"},
        "model": {"id": "none"},
        "environment": {"id": "sandbox"},
        "execution": {"limit": 1},
    }
    result = run_all(tmp_path, one)
    (record,) = records(result)
    assert record.outcome is Outcome.SCORED
    assert record.trust is Trust.CONTAINED
    assert "contained" in (result.requests[0].run_dir / "summary.md").read_text()


def test_hidden_files_are_not_there_while_the_agent_works(tmp_path: Path) -> None:
    script = (
        "cat answer.txt; grep -rs hidden-canary / --include='*.txt' -l --exclude-dir=proc | head"
    )
    record = attacked(tmp_path, script, answer="said")
    assert record.answer is not None
    assert record.answer.strip() == "0"


def test_what_an_agent_leaves_running_is_gone_before_scoring(tmp_path: Path) -> None:
    mark = f"mark-{secrets.token_hex(6)}"
    script = (
        f"(setsid sh -c 'trap \"\" TERM HUP; exec -a {mark} sleep 300' >/dev/null 2>&1 &)\n"
        "(while :; do printf 42 > answer.txt; done) >/dev/null 2>&1 &\n"
        f"exec {{}} 2>/dev/null; echo {mark}"
    )
    before = live_pids()
    record = attacked(tmp_path, script)
    assert record.outcome is Outcome.SCORED
    for pid in live_pids() - before:
        try:
            assert mark.encode() not in Path(f"/proc/{pid}/cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue


def test_an_agent_that_kills_everything_it_can_see_harms_itself_alone(tmp_path: Path) -> None:
    # In the sandbox's own process namespace: everything it can see is its own.
    record = attacked(tmp_path, "kill -9 -1; kill -9 1; kill -9 $PPID")
    assert record.outcome is Outcome.SCORED
    assert record.metrics["score"] == 0


def test_fifty_megabytes_of_output_end_in_a_record_of_readable_size(tmp_path: Path) -> None:
    flood = "head -c 50000000 /dev/zero | tr '\\0' '\\033'"
    record = attacked(tmp_path, flood, answer="said")
    assert record.outcome is Outcome.SCORED
    (line,) = (tmp_path / "results").rglob("attempts.jsonl")
    assert line.stat().st_size < 100_000
    assert record.answer_file is not None


def test_the_host_is_out_of_the_agents_sight(tmp_path: Path) -> None:
    secret = tmp_path / "only-root.txt"
    secret.write_text("only-for-root")
    secret.chmod(0o600)
    script = (
        f"cat {secret} /proc/self/root{secret} /proc/1/root{secret} /etc/shadow; "
        f"tr '\\0' '\\n' < /proc/1/environ; env; ls /proc | grep -c '^[0-9]'; "
        f"cat /proc/{os.getpid()}/environ; ls -a /root /home /run /sys"
    )
    record = attacked(tmp_path, script, answer="said")
    said = record.answer or ""
    assert "only-for-root" not in said
    assert "root:x" not in said
    assert "PYTEST" not in said, "no variable of ours is inherited"
    assert json.dumps(said)
