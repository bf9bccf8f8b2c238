"""A small repository, a candidate of it and a trial of that: for tests of sealing and trials."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from steelyard.fix.checkout import Checkout, read_checkout
from steelyard.fix.local_runner import LocalRunner
from steelyard.fix.manifest import TreeManifest
from steelyard.fix.sealed_tree import SealedTree, lay_out
from steelyard.fix.sealing import PathRules, Sealed, seal
from steelyard.fix.store_git import Store
from steelyard.fix.trial import Limits, Program, TrialPlan, TrialResult, run_trial

PYTHON = str(Path(sys.base_prefix) / "bin" / "python3")

BENCHMARK = """
import json, os, sys
sys.path.insert(0, "src")
import app
with open(os.environ["STEELYARD_RESULT_PATH"], "w") as file:
    json.dump({"metrics": {"answer": app.answer()}}, file)
"""
FILES: Mapping[str, str] = {
    "src/app.py": "def answer():\n    return 1\n",
    "bench/benchmark.py": BENCHMARK,
    "bench/expected.txt": "the expected output\n",
    "tests/test_app.py": "import sys\nsys.path.insert(0, 'src')\nimport app\n"
    "def test_answer():\n    assert app.answer() == 1\n",
    ".gitignore": "*.log\nbuild/\n",
}
RULES = PathRules(("src",), ("bench", "tests"))


def run_git(folder: Path, *words: str, env: Mapping[str, str] | None = None) -> str:
    """Run Git as a user would."""
    done = subprocess.run(
        ["git", "-c", "user.name=T", "-c", "user.email=t@t", "-C", str(folder), *words],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **(env or {})},
    )
    return done.stdout


def make_repository(folder: Path, files: Mapping[str, str] = FILES) -> Path:
    """Make a repository with one commit."""
    folder.mkdir(parents=True)
    run_git(folder, "init", "-q", "-b", "main")
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    run_git(folder, "add", "-A")
    run_git(folder, "commit", "-q", "-m", "one")
    return folder


class World:
    """A checkout, its state, and whatever a test makes of it."""

    def __init__(
        self, folder: Path, files: Mapping[str, str] | None = None, rules: PathRules = RULES
    ) -> None:
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)
        self.origin = make_repository(folder / "app", {**FILES, **(files or {})})
        self.checkout: Checkout = read_checkout(self.origin)
        self.state = self.origin / ".steelyard"
        self.store = Store(self.state / "store.git")
        self.base_tree = self.store.take_tree(self.checkout.repository, self.checkout.commit)
        self.base: TreeManifest = self.store.manifest_of(self.base_tree)
        self.rules = rules
        (self.state / "candidates").mkdir()
        self._count = 0

    def candidate(self, edits: Mapping[str, str | None] | None = None) -> Path:
        """Make a candidate's worktree and edit it; None removes a file."""
        self._count += 1
        folder = self.state / "candidates" / f"c{self._count}"
        self.store.add_worktree(folder, self.base_tree, self.base)
        for name, text in (edits or {}).items():
            path = folder / name
            if text is None:
                path.unlink()
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return folder

    def seal(self, worktree: Path, **more: Any) -> Sealed:
        """Seal a candidate."""
        return seal(worktree, self.store, self.base_tree, self.base, self.rules, **more)

    def laid_out(self, sealed: Sealed, *, owner: int | None) -> SealedTree:
        """Lay a sealed tree out."""
        base = self.state / "trials" / "sealed"
        return lay_out(self.store, sealed.tree_id, sealed.manifest, base, owner=owner)

    def runner(self, **more: Any) -> LocalRunner:
        """Make a runner, not prepared yet."""
        return LocalRunner(self.origin, self.state / "trials", **more)

    async def plan(
        self, runner: LocalRunner, edits: Mapping[str, str | None], **more: Any
    ) -> TrialPlan:
        """Seal edits and plan a trial of them."""
        sealed = self.seal(self.candidate(edits))
        tree = await asyncio.to_thread(self.laid_out, sealed, owner=runner.owner)
        plan = TrialPlan(
            "t1",
            tree,
            self.rules,
            Program((PYTHON, "bench/benchmark.py")),
            ("answer",),
            7,
            limits=Limits(timeout_s=30.0),
        )
        return replace(plan, **more)


def try_out(
    world: World, edits: Mapping[str, str | None], *, isolation: str = "standard", **more: Any
) -> TrialResult:
    """Seal edits and run one trial of them."""

    async def main() -> TrialResult:
        runner = world.runner(isolation=isolation)
        await runner.prepare()
        try:
            return await run_trial(await world.plan(runner, edits, **more), runner)
        finally:
            runner.close()

    return asyncio.run(main())


def undefended(
    folder: Path, argv: Sequence[str], *, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a benchmark as an undefended runner would: a plain process in a checkout."""
    return subprocess.run(
        list(argv),
        cwd=folder,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
