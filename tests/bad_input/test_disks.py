"""A real disk that is full, read-only or gone: what is told is true, and it is gone on from."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from steelyard.components.artifacts import ArtifactSpec
from steelyard.components.harness import HarnessContext
from steelyard.components.issues import IssueCode, Outcome
from steelyard.engine.events import RunOutcome
from steelyard.environments.files import Confined
from steelyard.environments.tree_copy import TargetFailed
from steelyard.results.lock import is_alive
from steelyard.results.reader import RunReader
from tests.bad_input.command import HEAD, steelyard
from tests.engine.launching import request, run_all
from tests.engine.test_modes import played

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]


def in_own_mounts(folder: Path, script: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a shell script with mounts that nobody else sees; `$0` is Python."""
    return subprocess.run(
        ["unshare", "-m", "sh", "-ec", script, sys.executable, *words],
        cwd=folder, capture_output=True, text=True, timeout=100, check=False,
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(folder), "PYTHONPATH": str(ROOT)},
    )  # fmt: skip


FILLING = """
import json, sys
from pathlib import Path
from tests.bad_input.test_disks import full_disk
print(json.dumps(full_disk(Path(sys.argv[1]), sys.argv[2])))
"""


def full_disk(place: Path, what: str) -> dict[str, Any]:
    """Let an agent leave more than the disk of its run takes; tell what the attempt came to."""

    async def agent(context: HarnessContext) -> str:
        session = await context.session()
        for number in range(4):
            await session.write_file(f"out/{number}", bytes(300_000))
        return "right"

    async def scorer(context: Any) -> None:
        Path(place.parent / "scored").write_text(str(len(context.artifacts)))

    found = ArtifactSpec(globs=("out/**",))
    kinds: dict[str, dict[str, Any]] = {
        "inputs": {"artifacts": found},
        "folder": {"collect": ("out",)},
    }
    changes = kinds.get(what, {})
    wanted = (found,) if what == "artifacts" else ()
    result = played(place, changes, agent, scorer, wanted=wanted)
    return {
        "outcome": result.outcome.value,
        "codes": [issue.code.value for issue in result.issues],
        "said": " ".join(issue.message for issue in result.issues),
        "metrics": dict(result.metrics),
        "scored": Path(place.parent / "scored").exists(),
    }


@pytest.mark.parametrize("what", ["inputs", "folder", "artifacts"])
def test_what_a_full_disk_did_not_take_is_never_scored(tmp_path: Path, what: str) -> None:
    (tmp_path / "small").mkdir()
    script = 'mount -t tmpfs -o size=700k none small; exec "$0" -c "$1" small "$2"'
    done = in_own_mounts(tmp_path, script, FILLING, what)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["outcome"] == Outcome.FAILED_FATAL.value
    assert told["codes"] == [IssueCode.COLLECT_FAILED.value]
    assert "No space left on device" in told["said"]
    assert (told["metrics"], told["scored"]) == ({}, False)


COPYING = """
import sys
from pathlib import Path
from tests.bad_input.test_disks import half_a_file
half_a_file(Path(sys.argv[1]))
"""


def half_a_file(place: Path) -> None:
    """Collect a file that the disk takes half of: no half may be left."""
    work = place.parent / "work"
    work.mkdir()
    (work / "big").write_bytes(b"x" * 1_000_000)
    with pytest.raises(TargetFailed, match="No space left"):
        Confined({"/w": work}, workdir="/w").collect(ArtifactSpec(paths=("big",)), place)
    assert list(place.iterdir()) == []


def test_half_a_file_is_not_left_as_a_whole_one(tmp_path: Path) -> None:
    (tmp_path / "small").mkdir()
    script = 'mount -t tmpfs -o size=500k none small; exec "$0" -c "$1" small'
    done = in_own_mounts(tmp_path, script, COPYING)
    assert done.returncode == 0, done.stderr


CHECKPOINT = """
import sys
from pathlib import Path
from tests.bad_input.test_disks import no_checkpoint
no_checkpoint(Path(sys.argv[1]))
"""


def no_checkpoint(place: Path) -> None:
    """A disk that takes the inputs and no checkpoint of 400 KB: scored all the same."""

    async def agent(context: HarnessContext) -> str:
        await (await context.session()).write_file("out", bytes(100_000))
        return "right" + " " * 400_000

    async def scorer(context: Any) -> Any:
        assert len(context.artifacts["out"].read_bytes()) == 100_000
        context._work.answer = "right"

    result = played(place, {"collect": ("out",)}, agent, scorer)
    assert (result.outcome, result.checkpoint) == (Outcome.SCORED, None), result.issues
    left = [path.name for path in place.rglob("*") if path.is_file()]
    assert left == ["0"], left


def test_a_disk_that_takes_no_checkpoint_holds_up_no_score(tmp_path: Path) -> None:
    (tmp_path / "small").mkdir()
    script = 'mount -t tmpfs -o size=300k none small; exec "$0" -c "$1" small'
    done = in_own_mounts(tmp_path, script, CHECKPOINT)
    assert done.returncode == 0, done.stderr


READING = """
mount --bind results results; mount -o remount,ro,bind results
for words in "summary $1" "analysis $1" "show $1" "compare $1 $2" "du results" \\
    "upgrade results" "explain-reuse $1 --with o.yaml" "prune results --keep-last 0 --yes" \\
    "launch o.yaml" "launch o.yaml --reuse" "run ./p oracle none"; do
  set +e; "$0" -m steelyard $words > out 2> err; status=$?; set -e
  grep -l Traceback out err && cat err && exit 99
  echo "$words: $status"
done
"""


def test_a_read_only_results_folder_can_be_read_and_nothing_else(project: Path) -> None:
    (project / "o.yaml").write_text(HEAD + "  - name: a\n")
    for _ in range(2):
        steelyard(project, "launch", "o.yaml", status=0)
    run, other = sorted((project / "results" / "a").iterdir())
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    done = in_own_mounts(project, READING, *(str(one.relative_to(project)) for one in (run, other)))
    assert done.returncode == 0, done.stderr + done.stdout
    statuses = dict(line.rsplit(": ", 1) for line in done.stdout.splitlines())
    by_command = [(words.split()[0], status) for words, status in statuses.items()]
    assert by_command == [
        ("summary", "1"), ("analysis", "1"), ("show", "0"), ("compare", "0"), ("du", "0"),
        ("upgrade", "0"), ("explain-reuse", "2"), ("prune", "1"),
        ("launch", "2"), ("launch", "2"), ("run", "2"),
    ]  # fmt: skip
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


def test_a_results_folder_that_vanishes_ends_the_run_and_says_so(tmp_path: Path) -> None:
    class Vanishes:
        def tick(self, progress: Any) -> None:
            if progress[0].outcomes.get(Outcome.SCORED, 0) >= 2:
                shutil.rmtree(tmp_path / "results", ignore_errors=True)

        def notice(self, *_: Any) -> None: ...

        def request_ended(self, *_: Any) -> None: ...

    slow = {"sleep_s": 0.2, "execs": "touch out"}
    one = request(benchmark={"tasks": 40, "collects": True}, harness=slow)
    result = run_all(tmp_path, one, observer=Vanishes(), task_concurrency=2)
    (ended,) = result.requests
    assert (ended.outcome, result.exit_status) == (RunOutcome.FAILED, 1)
    assert "No such file or directory" in (ended.reason or "")
    assert sum(ended.counts.values()) == 40
    assert ended.counts[Outcome.NOT_STARTED] + ended.counts[Outcome.CANCELLED] > 0
    again = run_all(tmp_path, request(benchmark={"tasks": 3}, runtime={"reuse": True}))
    assert again.outcome is RunOutcome.COMPLETED
    assert not is_alive(ended.run_dir / "lock")
    assert len(list(RunReader(again.requests[0].run_dir).records())) == 3
