"""Work that breaks while it is taken, a scorer that never waits, files that only seem whole."""

from __future__ import annotations

import asyncio
import os
import stat
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from steelyard.components.artifacts import ArtifactSpec, Collected
from steelyard.components.issues import Outcome
from steelyard.components.registry import Kind, find
from steelyard.engine.attempt import execute
from steelyard.engine.spec import AttemptPlace
from steelyard.environments import collecting
from steelyard.environments.files import Confined
from steelyard.environments.tree_copy import remove_tree
from steelyard.results.artifacts import TreeDamaged, digest_tree
from steelyard.results.kept_artifacts import ArtifactChanged
from steelyard.results.reuse import ReuseSource
from tests.bad_input.test_damaged_runs import asked
from tests.bad_input.weighing import KINDS, weight, work_of
from tests.engine.fakes import FakeBenchmark, Watch, services, spec
from tests.engine.launching import records, run_all
from tests.environments.people import ordinary_user

pytestmark = pytest.mark.integration


def test_what_breaks_while_it_is_taken_leaves_nothing_to_the_agent_that_runs_instead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An earlier agent left four files more: the scorer must not see them, nor the record."""
    (tmp_path / "stamp").write_text("first")
    first = run_all(tmp_path, asked(tmp_path))
    source = first.requests[0].run_dir
    carried = ReuseSource.carry_files

    def breaks(self: ReuseSource, record: Any, target: Path, **more: Any) -> Any:
        carried(self, record, target, **more)
        folder = target / "tasks" / record.task_id / "attempt-1"
        for kept in (folder / "inputs-1" / "matched", folder / "artifacts"):
            if kept.is_dir():
                (kept / "found").mkdir(exist_ok=True)
                (kept / "found" / "of-the-earlier-agent").write_text("first")
        raise ArtifactChanged("an artifact changed while it was taken")

    monkeypatch.setattr(ReuseSource, "carry_files", breaks)
    (tmp_path / "stamp").write_text("second")
    again = run_all(tmp_path, asked(tmp_path, "2", runtime={"reuse_run_id": source.name}))
    found = {record.task_id: record for record in records(again)}
    assert set(found) == set(KINDS)
    for kind, record in found.items():
        assert record.metrics == {"weight": weight("2", *work_of(kind, "second"))}
        assert record.reused_from is None
        names = {Path(one["path"]).name for one in record.artifacts}
        assert "of-the-earlier-agent" not in names
    left = again.requests[0].run_dir.rglob("of-the-earlier-agent")
    assert list(left) == []


def test_a_scorer_that_never_waits_gets_its_checkpoints_from_the_second_attempt_on(
    tmp_path: Path,
) -> None:
    """No timer fires while it computes: that it does so is seen once it has."""
    found = []

    async def scorer(context: Any) -> None:
        found.append(any(tmp_path.rglob("checkpoint.json")))
        time.sleep(0.2)

    made = services(FakeBenchmark(on_evaluate=scorer))
    for attempt in (1, 2):
        one = replace(spec(), attempt=attempt, place=AttemptPlace(str(tmp_path), "g"))
        result = asyncio.run(execute(one, made, Watch()))
        assert result.outcome is Outcome.SCORED
        assert (result.checkpoint is None) == (attempt == 1)
    assert found == [False, True]


def collected(work: Path, target: Path, wanted: ArtifactSpec) -> tuple[Collected, list[Path]]:
    target.mkdir()
    found = Confined({"/inside": work}, workdir="/inside").collect(wanted, target)
    return found, sorted(path for path in target.rglob("*") if path.is_file())


def test_an_agents_strangest_folder_is_bounded_and_told(tmp_path: Path) -> None:
    """Devices, loops, a thousand folders deep, a terabyte of holes, a link to a host's file."""
    work, outside = tmp_path / "work", tmp_path / "outside"
    work.mkdir()
    outside.write_text("of the host")
    os.mknod(work / "zero", stat.S_IFCHR | 0o666, os.makedev(1, 5))
    os.mknod(work / "disk", stat.S_IFBLK | 0o666, os.makedev(7, 200))
    os.mkfifo(work / "fifo")
    (work / "a").symlink_to("b")
    (work / "b").symlink_to("a")
    (work / "up").symlink_to("..")
    os.link(outside, work / "hard")
    (work / "sparse").touch()
    os.truncate(work / "sparse", 2**40)
    here = os.open(work, os.O_RDONLY)
    for _ in range(1000):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(os.open("deepest", os.O_WRONLY | os.O_CREAT, dir_fd=here))
    os.close(here)
    found, taken = collected(work, tmp_path / "out", ArtifactSpec(paths=(".",)))
    assert [path.name for path in taken] == ["hard"]
    # A copy: what is kept shares nothing that a program of the host could still write to.
    assert taken[0].stat().st_nlink == 1
    assert taken[0].stat().st_ino != outside.stat().st_ino
    assert found.left_out["device"] == 2
    assert (found.left_out["link"], found.left_out["FIFO"]) == (3, 1)
    assert found.left_out["too deep"] == 1
    assert sum(count for why, count in found.left_out.items() if why.startswith("above")) == 1
    remove_tree(work)


def test_a_folder_of_more_files_than_are_looked_at_is_bounded_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bound holds before a folder's names are in memory: they may be millions."""
    monkeypatch.setattr(collecting, "MAX_ENTRIES", 100)
    work = tmp_path / "work"
    work.mkdir()
    for number in range(300):
        (work / str(number)).touch()
    looked_at = 0

    def counted(entry: Any) -> str:
        nonlocal looked_at
        looked_at += 1
        return kind_of(entry)

    kind_of = collecting._kind
    monkeypatch.setattr(collecting, "_kind", counted)
    found, taken = collected(work, tmp_path / "out", ArtifactSpec(paths=(".",)))
    assert (len(taken), looked_at) == (100, 101)
    assert found.left_out == {"behind 100 entries": 1}


GROWING = """
import sys
with open(sys.argv[1], "ab", buffering=0) as file:
    print("grows", flush=True)
    while True:
        file.write(b"x" * 65536)
"""


def test_a_file_that_another_process_makes_grow_is_read_to_an_end(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    growing = work / "log"
    with subprocess.Popen(
        [sys.executable, "-c", GROWING, str(growing)], stdout=subprocess.PIPE
    ) as writer:
        try:
            assert writer.stdout is not None
            writer.stdout.readline()
            found, taken = collected(work, tmp_path / "out", ArtifactSpec(paths=("log",)))
            assert found.files == 1
            assert taken[0].stat().st_size <= growing.stat().st_size
            before = growing.stat().st_size
            with suppress(TreeDamaged):
                assert digest_tree(growing, most_bytes=before).bytes <= before
        finally:
            writer.kill()


UNREADABLE = """
import sys
from pathlib import Path
from steelyard.components.artifacts import ArtifactSpec
from steelyard.environments.files import Confined
work, target = Path(sys.argv[1]) / "work", Path(sys.argv[1]) / "out"
(work / "shut").mkdir(parents=True)
target.mkdir()
for name in ("open", "closed", "shut/inside"):
    (work / name).write_text(name)
(work / "closed").chmod(0)
(work / "shut").chmod(0)
found = Confined({"/w": work}, workdir="/w").collect(ArtifactSpec(globs=("**",)), target)
print(sorted(p.name for p in target.rglob("*")), sum(found.left_out.values()))
(work / "shut").chmod(0o700)
"""


def test_what_an_ordinary_user_may_not_read_is_left_out_and_told() -> None:
    with ordinary_user() as (prefix, variables):
        done = subprocess.run(
            [*prefix, sys.executable, "-c", UNREADABLE, variables["HOME"]],
            env=variables, cwd=variables["HOME"], capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == "['open'] 2\n"


def test_a_pack_that_is_scored_where_its_agent_worked_copies_nothing_out(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "given").write_text("x")
    text = (
        "schema: pack/v1\nslug: s\nversion: 1\nprompt: hello\ncases: [{id: a}]\nworkspace: w\n"
        "scoring:\n  MODE\n  threshold: 1.0\n"
        '  validators: [{type: command, run: ["true"]}]\n'
    )
    collected = {}
    for mode in ("fresh", "reuse"):
        (tmp_path / "pack.yaml").write_text(text.replace("MODE", f"mode: {mode}"))
        component: Any = find(Kind.BENCHMARK, str(tmp_path), base_dir=tmp_path).component
        pack = component(component.Params.model_validate({"path": str(tmp_path)}))
        (task,) = pack.load_tasks()
        collected[mode] = pack.task_input(task, attempt=1, seed=1).collect
    assert collected == {"fresh": (".",), "reuse": ()}
