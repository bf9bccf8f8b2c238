"""What a trial of `fix` costs beyond its benchmark's own process.

A small repository, and one of 5,000 files and 100 MB: by overlay, and by copy against `cp -a`. Each
figure is a median, the floor taken in the same run.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median

from benchmarks.measures import Figure
from benchmarks.processes import CommandFailed
from steelyard.fix.checkout import read_checkout
from steelyard.fix.local_runner import LocalRunner
from steelyard.fix.sealed_tree import SealedTree, lay_out
from steelyard.fix.sealing import PathRules
from steelyard.fix.store_git import Store
from steelyard.fix.trial import Outcome, Program, TrialPlan, run_trial
from steelyard.fix.trial_tree import TreeMethod, make_tree

PYTHON = str(Path(sys.base_prefix) / "bin" / "python3")
BENCHMARK = """
import json, os
with open(os.environ["STEELYARD_RESULT_PATH"], "w") as file:
    json.dump({"metrics": {"answer": 1}}, file)
"""
FILES = 5_000
BYTES = 100_000_000


def write_repository(folder: Path, files: int, size: int) -> None:
    """Make a repository with one commit: a benchmark, and files of random bytes."""
    (folder / "bench").mkdir(parents=True)
    (folder / "bench" / "benchmark.py").write_text(BENCHMARK)
    for number in range(files):
        path = folder / "src" / f"part{number // 100}" / f"file{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.urandom(size // max(1, files)))
    git = ["git", "-C", str(folder), "-c", "user.name=b", "-c", "user.email=b@b"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "one"]):
        subprocess.run([*git, *words], check=True, capture_output=True)


def sealed_tree(origin: Path, runner: LocalRunner) -> SealedTree:
    """Take the commit as a sealed tree."""
    checkout = read_checkout(origin)
    store = Store(origin / ".steelyard" / "store.git")
    tree = store.take_tree(checkout.repository, checkout.commit)
    base = runner.sealed_base
    return lay_out(store, tree, store.manifest_of(tree), base, owner=runner.owner)


async def trial_costs(origin: Path, times: int) -> tuple[float, float, str]:
    """Run trials; the median of a whole one, of the bare process, and the tree's method.

    Raises:
        CommandFailed: a trial did not complete.
    """
    runner = LocalRunner(origin, origin / ".steelyard" / "trials")
    await runner.prepare()
    try:
        sealed = await asyncio.to_thread(sealed_tree, origin, runner)
        plan = TrialPlan(
            "t0",
            sealed,
            PathRules(("src",), ("bench",)),
            Program((PYTHON, "bench/benchmark.py")),
            ("answer",),
            1,
        )
        whole, bare = [], []
        for number in range(times + 1):
            began_s = time.perf_counter()
            result = await run_trial(replace(plan, trial=f"t{number}"), runner)
            whole.append(time.perf_counter() - began_s)
            if result.outcome is not Outcome.COMPLETED:
                raise CommandFailed(f"a trial ended {result.outcome}: {result.reason}")
            bare.append(await asyncio.to_thread(bare_s, origin))
        return median(whole[1:]), median(bare[1:]), result.tree_method
    finally:
        runner.close()


def bare_s(origin: Path) -> float:
    """Run the benchmark's process alone; its seconds."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        variables = {"PATH": os.environ["PATH"], "STEELYARD_RESULT_PATH": f"{name}/result"}
        began_s = time.perf_counter()
        subprocess.run([PYTHON, "-B", "bench/benchmark.py"], cwd=origin, env=variables, check=True)
        return time.perf_counter() - began_s


def copy_ratio(origin: Path, times: int) -> tuple[float, float]:
    """Make trees by copy, beside `cp -a`; the medians of both."""
    runner = LocalRunner(origin, origin / ".steelyard" / "copies")
    runner.base.mkdir(parents=True, exist_ok=True)
    sealed = sealed_tree(origin, runner)
    ours, theirs = [], []
    for number in range(times + 1):
        began_s = time.perf_counter()
        subprocess.run(
            ["cp", "-a", str(sealed.folder), str(runner.base / f"cp{number}")], check=True
        )
        theirs.append(time.perf_counter() - began_s)
        shutil.rmtree(runner.base / f"cp{number}")
        began_s = time.perf_counter()
        tree = make_tree(runner.base, f"t{number}", [sealed], TreeMethod.COPY, owner=None)
        ours.append(time.perf_counter() - began_s)
        tree.remove()
    return median(ours[1:]), median(theirs[1:])


def measure(*, scale: float) -> Iterator[Figure]:
    """A trial beyond its benchmark's process, small and large, by overlay and by copy."""
    times = max(3, int(11 * scale))
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        for title, files, size, bound_s in (
            ("a small repository", 20, 20_000, 0.060),
            (f"{FILES:,} files, 100 MB", int(FILES * min(scale, 1)), BYTES, 0.080),
        ):
            origin = folder / f"of-{files}"
            write_repository(origin, files, int(size * min(scale, 1)))
            whole_s, floor_s, method = asyncio.run(trial_costs(origin, times))
            yield Figure(
                f"a trial beyond its benchmark, {title}",
                whole_s - floor_s,
                "s",
                bound_s,
                note=f"by {method}; whole {whole_s:.3f} s, the benchmark alone {floor_s:.3f} s",
            )
        ours_s, theirs_s = copy_ratio(origin, max(3, times // 2))
        yield Figure(
            f"a trial's tree by copy, {FILES:,} files, 100 MB",
            ours_s / theirs_s,
            "× cp -a",
            1.3,
            floor=1.0,
            note=f"{ours_s:.2f} s against {theirs_s:.2f} s; hashed while it is made",
        )
